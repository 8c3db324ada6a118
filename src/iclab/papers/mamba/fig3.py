"""Figure 3: score mass in the first layer of the three-layer Mamba during training. Cost: no extra training."""

from __future__ import annotations

from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.attention import NEGATIVE, SAYS, figure
from iclab.papers.mamba.deep import DEEP


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    return figure(lab, "mamba.fig3", (0,))


ENTRY = Entry("mamba.fig3", "Score mass during training, first layer", "li2025mamba, figure 3", run, says=SAYS,
              sizes=DEEP, notes=(NEGATIVE,), kind="figure", aliases=("workshop.fig2",))
