"""Figure 6: training examples and iterations needed, against alpha. Cost: none beyond `icl.alpha`."""

from __future__ import annotations

from iclab.core.identity import to_json
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.icl.alpha import FRACTIONS, JUDGED, SEEDS, STEPS, TARGET, a_run, figure, measure


def run(lab: Lab) -> Outcome:
    """Draw the figure."""
    results = measure(lab)
    steps, needed = results.steps[JUDGED, TARGET].mean(axis=0), results.needed.mean(axis=0)
    return Outcome(
        shown="How many examples per training prompt and how many iterations a small training loss needs.",
        paper="Both grow as fewer examples are decisive, like 1 / alpha and alpha^(-2/3).",
        measured=f"Training examples from {needed[-1]:.1f} to {needed[0]:.1f}, iterations from {steps[-1]:.0f} "
                 f"(alpha {FRACTIONS[lab.scale][-1]:g}) to {steps[0]:.0f} (alpha {FRACTIONS[lab.scale][0]:g}).",
        plots=[figure(results, "icl.fig6", lab)], seeds=lab.seeds(SEEDS[lab.scale]),
        settings={"training": to_json(a_run(0.8, 20, STEPS["iterations"]))})


ENTRY = Entry("icl.fig6", "figure", "Training examples and iterations needed", "li2024icl, figure 6", run)
