"""Figure 6: gates by position in the second and third layers of the three-layer Mamba. Cost: no extra training."""

from iclab.papers.mamba.gate import figure

ENTRY = figure(6, "Gates by position, second and third layers", (1, 2), "workshop.fig5")
