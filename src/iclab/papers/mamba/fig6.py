"""Figure 6: gates by position in the second and third layers of the three-layer Mamba. Cost: no extra training."""

from __future__ import annotations

from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.deep import DEEP
from iclab.papers.mamba.gate import SAYS, figure

TITLE = "Gates by position, second and third layers"


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    return figure(lab, "mamba.fig6", TITLE, (1, 2))


ENTRY = Entry("mamba.fig6", TITLE, "li2025mamba, figure 6", run, says=SAYS, sizes=DEEP, kind="figure",
              aliases=("workshop.fig5",))
