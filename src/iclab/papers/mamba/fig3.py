"""Figure 3: score mass in the first layer of the three-layer Mamba during training. Cost: no extra training."""

from iclab.papers.mamba.attention import figure

ENTRY = figure(3, "Score mass during training, first layer", (0,), "workshop.fig2")
