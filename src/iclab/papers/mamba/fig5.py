"""Figure 5: score mass in the second and third layers during training. Cost: no extra training."""

from iclab.papers.mamba.attention import figure

ENTRY = figure(5, "Score mass during training, second and third layers", (1, 2), "workshop.fig4")
