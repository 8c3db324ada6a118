"""Figure 5: score mass in the second and third layers of the three-layer Mamba during training.

Cost: no extra training.
"""

from __future__ import annotations

from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.mamba.attention import figure_outcome


def run(lab: Lab) -> Outcome:
    """Draw the figure."""
    return figure_outcome(lab, "mamba.fig5", (1, 2))


ENTRY = Entry("mamba.fig5", "figure", "Score mass during training, second and third layers", "li2025mamba, figure 5",
              run, aliases=("workshop.fig4",))
