"""Plots, each with the numbers behind it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.figures.style import BAYES, COLOURS, FLOOR, NAMES, style
from iclab.probes.errors import seed_interval


@dataclass(frozen=True)
class Plot:
    """A picture as SVG and its numbers as CSV."""

    name: str
    title: str
    caption: str
    svg: str
    csv: str


@dataclass(frozen=True)
class Curve:
    """One model's values, a row a seed."""

    model: str
    values: Float[np.ndarray, "seeds points"]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x: Sequence[float]
    curves: Sequence[Curve]
    floor: Any = None
    """Information floor at each x."""
    bayes: Any = None
    """Error of the Bayes predictor at each x."""


def error_figure(name: str, title: str, caption: str, panels: Sequence[Panel], x_label: str) -> Plot:
    """Error curves side by side: mean over seeds, 95 % band, the information floor."""
    import matplotlib.pyplot as plt

    rows = []
    with style():
        figure, axes = plt.subplots(1, len(panels), figsize=(3.4 * len(panels), 3.1), sharey=True, squeeze=False)
        for axis, panel in zip(axes[0], panels, strict=True):
            for curve in panel.curves:
                intervals = [seed_interval(column) for column in curve.values.T]
                mean, low, high = (np.array([getattr(i, end) for i in intervals]) for end in ("mean", "low", "high"))
                colour = COLOURS[curve.model]
                axis.plot(panel.x, mean, color=colour, marker="o", markersize=3.5, label=NAMES[curve.model])
                axis.fill_between(panel.x, np.clip(low, 0, 1), np.clip(high, 0, 1), color=colour, alpha=0.2, lw=0)
                rows += [(panel.title, curve.model, x, *(f"{v:.6g}" for v in interval), len(curve.values))
                         for x, interval in zip(panel.x, intervals, strict=True)]
            for reference, values, line in (("Bayes", panel.bayes, BAYES), ("floor", panel.floor, FLOOR)):
                if values is not None:
                    axis.plot(panel.x, values, **line)
                    rows += [(panel.title, reference, x, f"{y:.6g}", "", "", "")
                             for x, y in zip(panel.x, values, strict=True)]
            axis.set(title=panel.title, xlabel=x_label, ylim=(-0.03, 1.03))
        axes[0][0].set_ylabel("error")
        axes[0][0].legend(loc="upper left", fontsize=8.5)
        figure.tight_layout()
        text = to_svg(figure)
        plt.close(figure)
    return Plot(name, title, caption, text, to_csv(("panel", "model", "x", "mean", "low", "high", "seeds"), rows))


def to_svg(figure: Any) -> str:
    """The figure as an SVG element, without the XML prologue and without a date."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None}, bbox_inches="tight")
    text = buffer.getvalue()
    return text[text.index("<svg"):]


def to_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as CSV text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()
