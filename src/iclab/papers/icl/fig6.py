"""Figure 6: training examples and iterations needed, against alpha. Cost: none beyond `icl.alpha`."""

from __future__ import annotations

from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.icl.alpha import SIZES, figure, measure


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    results, fractions = measure(lab), lab.size.fractions
    steps, needed = results.iterations.mean(axis=0), results.needed.mean(axis=0)
    return Findings(
        shown="How many examples per training prompt and how many iterations a small training loss needs.",
        numbers=f"Training examples from {needed[-1]:.1f} to {needed[0]:.1f}, iterations from {steps[-1]:.0f} "
                f"(alpha {fractions[-1]:g}) to {steps[0]:.0f} (alpha {fractions[0]:g}).",
        plots=[figure(results, "icl.fig6", lab)])


ENTRY = Entry("icl.fig6", "Training examples and iterations needed", "li2024icl, figure 6", run, kind="figure",
              sizes=SIZES, says="Both grow as fewer examples are decisive, like 1 / alpha and alpha^(-2/3).")
