"""Figure 5: score mass in the second and third layers of the three-layer Mamba during training.

Cost: no extra training.
"""

from __future__ import annotations

from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.attention import NEGATIVE, SAYS, figure
from iclab.papers.mamba.deep import DEEP


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    return figure(lab, "mamba.fig5", (1, 2))


ENTRY = Entry("mamba.fig5", "Score mass during training, second and third layers", "li2025mamba, figure 5", run,
              says=SAYS, sizes=DEEP, notes=(NEGATIVE,), kind="figure", aliases=("workshop.fig4",))
