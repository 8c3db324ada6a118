"""Figure 4: gates by position in the first layer of the three-layer Mamba. Cost: no extra training."""

from iclab.papers.mamba.gate import figure

ENTRY = figure(4, "Gates by position, first layer", (0,), "workshop.fig3")
