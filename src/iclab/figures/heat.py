"""Heat maps of a number over two settings, with the theory's number beside it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Plot, to_csv, to_svg
from iclab.figures.style import style
from iclab.probes.error_rate import UNIT, seed_interval


def heat_figure(name: str, title: str, caption: str, x: Sequence[float], y: Sequence[float],
                values: Float[np.ndarray, "seeds y x"], theory: Float[np.ndarray, "y x"], x_label: str, y_label: str
                ) -> Plot:
    """A heat map of fractions. Each cell shows the mean over seeds, as colour and as a number, ± the larger half-width
    of its 95 % interval, and the theory's value in brackets; a line bounds the region where the theory gives 1.
    """
    import matplotlib.pyplot as plt

    rows = []
    with style():
        figure, axis = plt.subplots(figsize=(1.2 + 1.15 * len(x), 1.0 + 0.7 * len(y)), layout="constrained")
        mean = values.mean(axis=0)
        image = axis.imshow(mean, origin="lower", aspect="auto", cmap="YlGn", vmin=0, vmax=1)
        axis.grid(False)
        axis.set_xticks(range(len(x)), [f"{value:g}" for value in x])
        axis.set_yticks(range(len(y)), [f"{value:g}" for value in y])
        for i, j in np.ndindex(mean.shape):
            interval = seed_interval(values[:, i, j], within=UNIT)
            half_width = max(interval.high - interval.mean, interval.mean - interval.low)
            ink = "white" if mean[i, j] > 0.65 else "#222222"
            axis.text(j, i + 0.12, f"{mean[i, j]:.2f} ± {half_width:.2f}", ha="center", va="center", fontsize=8.5,
                      color=ink)
            axis.text(j, i - 0.22, f"({theory[i, j]:.2f})", ha="center", va="center", fontsize=7.5, color=ink)
            rows.append((x[j], y[i], *(f"{v:.6g}" for v in interval), f"{theory[i, j]:.6g}", len(values)))
        if (theory < 1).any() and (theory >= 1).any():
            axis.contour(theory >= 1, levels=[0.5], colors="#0b3954", linewidths=1.8)
        axis.set(xlabel=x_label, ylabel=y_label)
        figure.colorbar(image, ax=axis, label="mean over seeds", shrink=0.9)
        text = to_svg(figure)
        plt.close(figure)
    return Plot(name, title, caption, text, to_csv(("x", "y", "mean", "low", "high", "theory", "seeds"), rows))


MARKS = {"holds": ("#2a9d5c", "holds"), "fails": ("#c8553d", "fails"), "inconclusive": ("#d9b44a", "open"),
         "outside": ("#c9ccd1", "outside")}
"""Colour and word of every verdict."""


def verdict_map(name: str, title: str, caption: str, x_label: str, x: Sequence[float], y_label: str,
                y: Sequence[float], values: Float[np.ndarray, "y x"], verdicts: Sequence[Sequence[str]]) -> Plot:
    """Where a rule holds over two settings: the measured number and the verdict of every cell, as colour and word."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    with style():
        figure, axis = plt.subplots(figsize=(1.4 + 0.78 * len(x), 1.1 + 0.52 * len(y)), layout="constrained")
        axis.grid(False)
        for i, j in np.ndindex(values.shape):
            colour, word = MARKS[verdicts[i][j]]
            axis.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=colour, alpha=0.55, edgecolor="white", lw=1.5))
            axis.text(j, i + 0.16, _two_digits(float(values[i, j])), ha="center", va="center", fontsize=8.5,
                      color="#1a1a1a")
            axis.text(j, i - 0.22, word, ha="center", va="center", fontsize=7, color="#1a1a1a")
        axis.set(xlim=(-0.5, len(x) - 0.5), ylim=(-0.5, len(y) - 0.5), xlabel=x_label, ylabel=y_label)
        axis.set_xticks(range(len(x)), [f"{value:g}" for value in x])
        axis.set_yticks(range(len(y)), [f"{value:g}" for value in y])
        text = to_svg(figure)
        plt.close(figure)
    rows = [(x[j], y[i], f"{values[i, j]:.6g}", verdicts[i][j]) for i, j in np.ndindex(values.shape)]
    return Plot(name, title, caption, text, to_csv(("x", "y", "mean", "verdict"), rows))


def _two_digits(value: float) -> str:
    return f"{value:.2g}" if abs(value) >= 5e-5 else "0"
