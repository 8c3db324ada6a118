"""Heat maps of a number over two settings, with the theory's number beside it, and of verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from iclab.figures.axes import add_legends, new_axes, put_labels
from iclab.figures.lettering import label
from iclab.figures.recipes import Plot, recipe, to_csv
from iclab.probes.error_rate import UNIT, seed_interval

MARKS = {"holds": ("#2a9d5c", "holds"), "fails": ("#c8553d", "fails"), "inconclusive": ("#d9b44a", "open"),
         "outside": ("#c9ccd1", "outside")}
"""Colour and word of every verdict."""
MEANINGS = {"open": "open: inconclusive", "outside": "outside the premises"}
"""What a word means that does not say it."""


def heat_figure(name: str, title: str, caption: str, x: Sequence[float], y: Sequence[float],
                values: Float[np.ndarray, "seeds y x"], theory: Float[np.ndarray, "y x"], x_label: str, y_label: str,
                quantity: str = "") -> Plot:
    """A heat map of fractions. Each cell shows the mean over seeds, as colour and as a number, ± the larger half-width
    of its 95 % interval, and the theory's value in brackets; a line bounds the region where the theory gives 1.

    `quantity` says what is drawn, beside the colours; the title in small letters if not given.
    """
    intervals = [[seed_interval(values[:, i, j], within=UNIT) for j in range(len(x))] for i in range(len(y))]
    mean = values.mean(axis=0)
    half_width = [[max(cell.high - cell.mean, cell.mean - cell.low) for cell in row] for row in intervals]
    rows = [(x[j], y[i], *(f"{v:.6g}" for v in intervals[i][j]), f"{theory[i, j]:.6g}", len(values))
            for i, j in np.ndindex(mean.shape)]
    return recipe(name, title, caption, "heat",
                  {"x": x, "y": y, "mean": mean, "half_width": half_width, "theory": theory, "x_label": x_label,
                   "y_label": y_label, "quantity": quantity or title.lower()},
                  to_csv(("x", "y", "mean", "low", "high", "theory", "seeds"), rows))


def draw_heat(title: str, x: Sequence[float], y: Sequence[float], mean: Any, half_width: Any, theory: Any,
              x_label: str, y_label: str, quantity: str) -> Any:
    """One map with its numbers, and a bar of its colours."""
    mean, half_width, theory = (np.array(of, float) for of in (mean, half_width, theory))
    width, height = max(3.6, 1.2 + 1.15 * len(x)), max(2.8, 1.0 + 0.7 * len(y))
    figure, ((axis,),) = new_axes(1, 1, width, height)
    image = axis.imshow(mean, origin="lower", aspect="auto", cmap="YlGn", vmin=0, vmax=1)
    for i, j in np.ndindex(mean.shape):
        ink = "white" if mean[i, j] > 0.65 else "#222222"
        spread = f" ± {half_width[i, j]:.2f}" if np.isfinite(half_width[i, j]) else ""
        axis.text(j, i + 0.12, f"{mean[i, j]:.2f}{spread}", ha="center", va="center", fontsize=8.5, color=ink)
        axis.text(j, i - 0.22, f"({theory[i, j]:.2f})", ha="center", va="center", fontsize=7.5, color=ink)
    _outline(axis, theory >= 1)
    _name_cells(axis, x, y)
    put_labels(axis, title, x_label, y_label, width - 1.6, height - 0.8)
    figure.colorbar(image, ax=axis, label=label(f"{quantity}, mean over seeds", 10 * height), shrink=0.9)
    return figure


def verdict_map(name: str, title: str, caption: str, x_label: str, x: Sequence[float], y_label: str,
                y: Sequence[float], values: Float[np.ndarray, "y x"], verdicts: Sequence[Sequence[str]],
                rule: str = "") -> Plot:
    """Where a rule, such as `error <= 0.01`, holds over two settings: the measured number and the verdict of every
    cell, as colour and word."""
    rows = [(x[j], y[i], f"{values[i, j]:.6g}", verdicts[i][j]) for i, j in np.ndindex(values.shape)]
    return recipe(name, title, caption, "verdicts",
                  {"x": x, "y": y, "values": values, "verdicts": verdicts, "x_label": x_label, "y_label": y_label,
                   "rule": rule}, to_csv(("x", "y", "mean", "verdict"), rows))


def draw_verdicts(title: str, x: Sequence[float], y: Sequence[float], values: Any, verdicts: Sequence[Sequence[str]],
                  x_label: str, y_label: str, rule: str) -> Any:
    """One map of coloured cells, and what the colours mean."""
    from matplotlib.patches import Rectangle

    values = np.array(values, float)
    width, height = max(4.2, 1.4 + 0.78 * len(x)), max(2.2, 1.1 + 0.52 * len(y))
    figure, ((axis,),) = new_axes(1, 1, width, height)
    axis.set(xlim=(-0.5, len(x) - 0.5), ylim=(-0.5, len(y) - 0.5))
    for i, j in np.ndindex(values.shape):
        colour, word = MARKS[verdicts[i][j]]
        axis.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=colour, alpha=0.55, edgecolor="white", lw=1.5,
                                 label=MEANINGS.get(word, word)))
        axis.text(j, i + 0.16, _two_digits(values[i, j]), ha="center", va="center", fontsize=8.5, color="#1a1a1a")
        axis.text(j, i - 0.22, word, ha="center", va="center", fontsize=7, color="#1a1a1a")
    _name_cells(axis, x, y)
    put_labels(axis, title, x_label, y_label, width - 1.3, height - 0.8)
    add_legends(figure, [axis], title=rule)
    return figure


def _outline(axis: Any, inside: Bool[np.ndarray, "y x"]) -> None:
    """A line between the cells inside a region and the others."""
    for i, j in np.argwhere(inside[:, 1:] != inside[:, :-1]):
        axis.plot([j + 0.5, j + 0.5], [i - 0.5, i + 0.5], color="#0b3954", linewidth=1.8)
    for i, j in np.argwhere(inside[1:] != inside[:-1]):
        axis.plot([j - 0.5, j + 0.5], [i + 0.5, i + 0.5], color="#0b3954", linewidth=1.8)


def _name_cells(axis: Any, x: Sequence[float], y: Sequence[float]) -> None:
    axis.grid(False)
    axis.set_xticks(range(len(x)), [f"{value:g}" for value in x])
    axis.set_yticks(range(len(y)), [f"{value:g}" for value in y])


def _two_digits(value: float) -> str:
    return f"{value:.2g}" if abs(value) >= 5e-5 else "0"
