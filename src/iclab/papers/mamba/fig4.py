"""Figure 4: gates by position in the first layer of the three-layer Mamba. Cost: no extra training."""

from __future__ import annotations

from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.mamba.gate import figure_outcome

TITLE = "Gates by position, first layer"


def run(lab: Lab) -> Outcome:
    """Draw the figure."""
    return figure_outcome(lab, "mamba.fig4", TITLE, (0,))


ENTRY = Entry("mamba.fig4", "figure", TITLE, "li2025mamba, figure 4", run, aliases=("workshop.fig3",))
