"""Figure 3: score mass in the first layer of the three-layer Mamba during training. Cost: no extra training."""

from __future__ import annotations

from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.mamba.attention import figure_outcome


def run(lab: Lab) -> Outcome:
    """Draw the figure."""
    return figure_outcome(lab, "mamba.fig3", (0,))


ENTRY = Entry("mamba.fig3", "figure", "Score mass during training, first layer", "li2025mamba, figure 3", run,
              aliases=("workshop.fig2",))
