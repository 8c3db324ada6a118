"""Plots, each with the numbers behind it."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.figures.style import BAYES, COLOURS, FLOOR, NAMES, SPARE, style
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
    """One model's values, a row a seed; a name that is no model's takes the next free colour."""

    model: str
    values: Float[np.ndarray, "seeds points"]
    dashed: bool = False


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
    lines: Sequence[tuple[str, Any]] = ()
    """Theory: a label and a value at each x."""
    x_label: str | None = None
    """Where it differs from the figure's."""


def error_figure(name: str, title: str, caption: str, panels: Sequence[Panel], x_label: str) -> Plot:
    """Error curves side by side: mean over seeds, 95 % band, the information floor."""
    return curve_figure(name, title, caption, panels, x_label, "error", y_range=(-0.03, 1.03))


def curve_figure(name: str, title: str, caption: str, panels: Sequence[Panel], x_label: str, y_label: str, *,
                 y_range: tuple[float, float] | None = None, log_x: bool = False, log_y: bool = False,
                 share_y: bool = True) -> Plot:
    """Curves side by side: mean over seeds with a 95 % band, references and theory as lines."""
    import matplotlib.pyplot as plt

    rows = []
    with style():
        figure, axes = plt.subplots(1, len(panels), figsize=(max(4.4, 3.4 * len(panels)), 3.1), sharey=share_y,
                                    squeeze=False)
        for axis, panel in zip(axes[0], panels, strict=True):
            spare = iter(SPARE * 2)
            for curve in panel.curves:
                intervals = [seed_interval(column[np.isfinite(column)]) if np.isfinite(column).any()
                             else (np.nan, np.nan, np.nan) for column in curve.values.T]
                mean, low, high = np.array(intervals, float).T
                colour = COLOURS.get(curve.model) or next(spare)
                axis.plot(panel.x, mean, color=colour, marker="o", markersize=3.5,
                          linestyle="--" if curve.dashed else "-", label=NAMES.get(curve.model, curve.model))
                bounds = (low, high) if y_range is None else (np.clip(low, 0, 1), np.clip(high, 0, 1))
                axis.fill_between(panel.x, *bounds, color=colour, alpha=0.2, lw=0)
                rows += [(panel.title, curve.model, x, *(f"{v:.6g}" for v in interval), len(curve.values))
                         for x, interval in zip(panel.x, intervals, strict=True)]
            references = [("Bayes", panel.bayes, BAYES), ("floor", panel.floor, FLOOR)]
            references += [(label, values, {"color": "#0b3954", "linewidth": 1.3, "linestyle": (0, (4, 2)),
                                            "label": label}) for label, values in panel.lines]
            for reference, values, line in references:
                if values is not None:
                    axis.plot(panel.x, values, **line)
                    rows += [(panel.title, reference, x, f"{y:.6g}", "", "", "")
                             for x, y in zip(panel.x, values, strict=True)]
            axis.set(title=panel.title, xlabel=panel.x_label or x_label)
            if y_range is not None:
                axis.set_ylim(*y_range)
            if log_x:
                axis.set_xscale("log")
            if log_y:
                axis.set_yscale("log")
        axes[0][0].set_ylabel(y_label)
        shown = axes[0] if not share_y or any(_labels(a) != _labels(axes[0][0]) for a in axes[0]) else axes[0][:1]
        for axis in shown:
            axis.legend(loc="best" if len(shown) > 1 else "upper left", fontsize=7.5 if len(shown) > 1 else 8.5)
        figure.tight_layout()
        text = to_svg(figure)
        plt.close(figure)
    return Plot(name, title, caption, text, to_csv(("panel", "model", "x", "mean", "low", "high", "seeds"), rows))


def _labels(axis: Any) -> list[str]:
    return axis.get_legend_handles_labels()[1]


@dataclass(frozen=True)
class Bars:
    """Two groups of bars over positions, with a line through the first."""

    title: str
    clean: Float[np.ndarray, "seeds positions"]
    poisoned: Float[np.ndarray, "seeds positions"]
    fit: Float[np.ndarray, " positions"]


def gate_figure(name: str, title: str, caption: str, panels: Sequence[Bars]) -> Plot:
    """Gate values by position as in figures 4 and 6 of li2025mamba: clean green, poisoned red, the decay fitted."""
    import matplotlib.pyplot as plt

    rows = []
    with style():
        figure, axes = plt.subplots(1, len(panels), figsize=(max(4.4, 3.4 * len(panels)), 3.1), squeeze=False)
        for axis, bars in zip(axes[0], panels, strict=True):
            places = np.arange(1, bars.clean.shape[1] + 1)
            for label, values, colour, shift in (("clean", bars.clean, "#0b6e4f", -0.2),
                                                 ("poisoned", bars.poisoned, "#b3261e", 0.2)):
                intervals = np.array([seed_interval(column[np.isfinite(column)]) if np.isfinite(column).any()
                                      else (np.nan,) * 3 for column in values.T])
                half = np.clip(np.nan_to_num((intervals[:, 2] - intervals[:, 1]) / 2), 0, None)
                axis.bar(places + shift, intervals[:, 0], width=0.4, color=colour, label=label, yerr=half,
                         error_kw={"elinewidth": 0.7, "ecolor": "#444444"})
                rows += [(bars.title, label, place, *(f"{v:.6g}" for v in interval), len(values))
                         for place, interval in zip(places, intervals, strict=True)]
            axis.plot(places, bars.fit, color="#0b3954", linewidth=1.3, linestyle=(0, (4, 2)), label="geometric fit")
            rows += [(bars.title, "fit", place, f"{y:.6g}", "", "", "")
                     for place, y in zip(places, bars.fit, strict=True)]
            axis.set(title=bars.title, xlabel="context example (the query stands right of the last)")
        axes[0][0].set_ylabel("gate value")
        axes[0][0].legend(loc="upper left", fontsize=8.5)
        figure.tight_layout()
        text = to_svg(figure)
        plt.close(figure)
    return Plot(name, title, caption, text, to_csv(("panel", "examples", "position", "mean", "low", "high", "seeds"),
                                                   rows))


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
