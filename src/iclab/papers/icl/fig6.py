"""Figure 6: training examples and iterations needed, against alpha. Cost: none beyond `icl.alpha`."""

from __future__ import annotations

from iclab.figures.plots import curve_figure
from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.lab.powers import law_panel
from iclab.papers.icl import iterations
from iclab.papers.icl.alpha import SIZES, a_run, length_law, measure
from iclab.theory.icl import ITERATIONS


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    results, (fractions, short) = measure(lab), (lab.size.fractions, lab.size.short)
    law, steps_law = length_law(results, lab), iterations.steps_law(iterations.measure(lab), lab)
    expected = steps_law.along(ITERATIONS.order(a_run(fraction, 20, 1), None) for fraction in fractions)
    x = "alpha, fraction of decisive training examples"
    plot = curve_figure("icl.fig6", "Training examples and iterations needed, against the decisive fraction",
                        f"Dashed: {law.words} {steps_law.words} The latter was fitted in {ITERATIONS.entry}, where "
                        "alpha is not varied.",
                        [law_panel("training examples", short, {"softmax": results.needed}, law.line("alpha"), x,
                                   "examples per prompt"),
                         law_panel("iterations", fractions, {"softmax": results.iterations}, expected, x,
                                   "iterations")],
                        "", "", log_x=True, log_y=True, share_y=False)
    steps, needed = results.iterations.mean(axis=0), results.needed.mean(axis=0)
    return Findings(
        shown="How many examples per training prompt and how many iterations a small training loss needs.",
        plots=[plot], numbers=f"Training examples from {needed[-1]:.1f} (alpha {short[-1]:g}) to {needed[0]:.1f} "
                f"(alpha {short[0]:g}), iterations from {steps[-1]:.0f} (alpha {fractions[-1]:g}) to {steps[0]:.0f} "
                f"(alpha {fractions[0]:g}).")


ENTRY = Entry("icl.fig6", "Training examples and iterations needed", "li2024icl, figure 6", run, kind="figure",
              sizes=SIZES, says="Both grow as fewer examples are decisive, like 1 / alpha and alpha^(-2/3).")
