"""Figure 6: gates by position in the second and third layers of the three-layer Mamba. Cost: no extra training."""

from __future__ import annotations

from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.mamba.gate import figure_outcome

TITLE = "Gates by position, second and third layers"


def run(lab: Lab) -> Outcome:
    """Draw the figure."""
    return figure_outcome(lab, "mamba.fig6", TITLE, (1, 2))


ENTRY = Entry("mamba.fig6", "figure", TITLE, "li2025mamba, figure 6", run, aliases=("workshop.fig5",))
