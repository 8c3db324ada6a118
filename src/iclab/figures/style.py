"""One visual language: a colour for each model, the floor always the same line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

COLOURS = {
    "mamba": "#0b6e4f", "linear": "#c8553d", "retnet": "#7a5195", "gated_retention": "#bc5090", "mamba2": "#3a7ca5",
    "mamba2_step": "#16425b", "gla": "#d9a404", "softmax": "#345995", "gpt2": "#e26d5a",
}
NAMES = {"mamba": "Mamba", "linear": "linear Transformer", "retnet": "RetNet", "gated_retention": "Gated Retention",
         "mamba2": "Mamba-2", "mamba2_step": "Mamba-2, step on input", "gla": "GLA", "softmax": "softmax Transformer",
         "gpt2": "GPT-2"}
SPARE = ("#3a7ca5", "#d9a404", "#7a5195", "#ef5675", "#4f772d", "#8d99ae", "#0b6e4f", "#c8553d",
         "#222222")
"""For names that are not a model's, in turn."""
CLEAN, POISONED = "#4f9d69", "#c1292e"
"""Examples without and with an outlier."""
FLOOR = {"color": "#555555", "linestyle": (0, (1, 1.5)), "linewidth": 1.6, "label": "information floor"}
BAYES = {"color": "#999999", "linestyle": (0, (5, 2)), "linewidth": 1.0, "label": "Bayes predictor"}
THEORY: Any = {"color": "#0b3954", "linewidth": 1.3, "linestyle": (0, (4, 2))}
VOTE: Any = {"linestyle": (0, (1, 1.2)), "linewidth": 1.5}
"""The ideal majority vote over the matching examples, in the colour of the curve that it belongs to."""
RC: Any = {
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8, "axes.axisbelow": True, "axes.edgecolor": "#888888", "xtick.color": "#555555",
    "ytick.color": "#555555", "font.size": 10, "axes.titlesize": 10.5, "legend.frameon": False, "svg.fonttype": "none",
    "svg.hashsalt": "iclab", "pdf.fonttype": 42, "font.family": "sans-serif", "figure.facecolor": "white",
    "savefig.dpi": 300,
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the house style."""
    import matplotlib

    with matplotlib.rc_context(RC):
        yield
