"""Figure 4: gates by position in the first layer of the three-layer Mamba. Cost: no extra training."""

from __future__ import annotations

from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.deep import DEEP
from iclab.papers.mamba.gate import SAYS, figure

TITLE = "Gates by position, first layer"


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    return figure(lab, "mamba.fig4", TITLE, (0,))


ENTRY = Entry("mamba.fig4", TITLE, "li2025mamba, figure 4", run, says=SAYS, sizes=DEEP, kind="figure",
              aliases=("workshop.fig3",))
