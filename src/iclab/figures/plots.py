"""Plots, each with the numbers behind it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.core.errors import require
from iclab.figures.style import BAYES, COLOURS, FLOOR, NAMES, SPARE, VOTE, style
from iclab.probes.error_rate import UNIT, seed_interval


def require_name(kind: str, name: Any) -> None:
    """Refuse a name that is not a valid file name or that leads to another folder."""
    plain = isinstance(name, str) and re.fullmatch(r"\w[\w.+-]{,99}", name, re.ASCII) is not None
    require(plain, f"name of the {kind}", name,
            "be at most 100 letters, digits and . _ + - only, and begin with a letter or digit")


@dataclass(frozen=True)
class Plot:
    """A picture as SVG and its numbers as CSV."""

    name: str
    title: str
    caption: str
    svg: str
    csv: str

    def __post_init__(self) -> None:
        require_name("plot", self.name)

    def _repr_html_(self) -> str:
        """In a notebook: the picture and what it shows."""
        return f"<figure>{self.svg}<figcaption>{escape(self.caption)}</figcaption></figure>"


@dataclass(frozen=True)
class Curve:
    """One model's values, one row per seed; a name that is not a model's takes the next free colour."""

    model: str
    values: Float[np.ndarray, "seeds points"]
    vote: Any = None
    """Error of the ideal majority vote at each x, if it differs between curves."""


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
    """Overrides the figure's label."""
    marks: Sequence[tuple[str, float]] = ()
    """Labels and the x at which something changes."""
    within: tuple[float, float] | None = None
    """The known range of its values; overrides the figure's."""


def error_figure(name: str, title: str, caption: str, panels: Sequence[Panel], x_label: str) -> Plot:
    """Error curves side by side: mean over seeds, 95 % band, the information floor."""
    return curve_figure(name, title, caption, panels, x_label, "error", y_range=(-0.03, 1.03), within=UNIT)


def curve_figure(name: str, title: str, caption: str, panels: Sequence[Panel], x_label: str, y_label: str, *,
                 y_range: tuple[float, float] | None = None, log_x: bool = False, log_y: bool = False,
                 share_y: bool = True, within: tuple[float, float] | None = None) -> Plot:
    """Curves side by side: mean over seeds with a 95 % band, references and theory as lines.

    `within` is the known range of the values, to which their intervals are clipped.
    """
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogFormatter

    rows = []
    with style():
        n_columns = 2 if len(panels) == 4 else min(len(panels), 3)
        n_rows = -(-len(panels) // n_columns)
        figure, grid = plt.subplots(n_rows, n_columns, figsize=(max(4.4, 3.4 * n_columns), 3.1 * n_rows),
                                    sharey=share_y, squeeze=False)
        axes = grid.ravel()[:len(panels)]
        for empty in grid.ravel()[len(panels):]:
            empty.set_visible(False)
        for axis, panel in zip(axes, panels, strict=True):
            spare = iter(SPARE * 2)
            for curve in panel.curves:
                intervals = [seed_interval(column[np.isfinite(column)], within=panel.within or within)
                             if np.isfinite(column).any() else (np.nan, np.nan, np.nan) for column in curve.values.T]
                known = [i for i, interval in enumerate(intervals) if np.isfinite(interval[0])]
                x, ends = [panel.x[i] for i in known], np.array([intervals[i] for i in known], float).reshape(-1, 3)
                colour = COLOURS.get(curve.model) or next(spare)
                axis.plot(x, ends[:, 0], color=colour, marker="o", markersize=3.5,
                          label=NAMES.get(curve.model, curve.model))
                never_negative = bool((curve.values[np.isfinite(curve.values)] >= 0).all())
                bounds = np.clip(ends[:, 1:], 0 if never_negative else None, None)
                axis.fill_between(x, *bounds.T, color=colour, alpha=0.2, lw=0)
                if curve.vote is not None:
                    axis.plot(panel.x, curve.vote, color=colour, **VOTE)
                    rows += [(panel.title, f"{curve.model}, vote", x, f"{y:.6g}", "", "", "")
                             for x, y in zip(panel.x, curve.vote, strict=True)]
                rows += [(panel.title, curve.model, x, *(f"{v:.6g}" for v in interval), len(curve.values))
                         for x, interval in zip(panel.x, intervals, strict=True)]
            references = [("Bayes", panel.bayes, BAYES), ("floor", panel.floor, FLOOR)]
            references += [(label, values, {"color": "#0b3954", "linewidth": 1.3, "linestyle": (0, (4, 2)),
                                            "label": label}) for label, values in panel.lines]
            for reference, values, line in references:
                if values is not None:
                    finite = np.isfinite(np.asarray(values, float))
                    axis.plot(np.asarray(panel.x)[finite], np.asarray(values)[finite], **line)
                    rows += [(panel.title, reference, x, f"{y:.6g}", "", "", "")
                             for x, y in zip(panel.x, values, strict=True)]
            if any(curve.vote is not None for curve in panel.curves):
                axis.plot([], [], color="#777777", label="ideal vote", **VOTE)
            for (label, at), dash in zip(panel.marks, ((0, (4, 3)), (0, (6, 2, 1, 2))), strict=False):
                axis.axvline(at, color="#222222", linestyle=dash, linewidth=1.0, label=label)
            axis.set(title=panel.title, xlabel=panel.x_label or x_label)
            if y_range is not None:
                axis.set_ylim(*y_range)
            if log_x:
                axis.set_xscale("log")
                if len(panel.x) <= 9:
                    axis.set_xticks(list(panel.x), [f"{value:.3g}" for value in panel.x])
                    axis.minorticks_off()
            elif len(panel.x) <= 6 and all(float(value).is_integer() for value in panel.x):
                axis.set_xticks(list(panel.x))
            if log_y and any(np.isfinite(curve.values).any() for curve in panel.curves):
                axis.set_yscale("log")
                axis.yaxis.set_major_formatter(LogFormatter())
                axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
        for axis in grid[:, 0]:
            axis.set_ylabel(y_label)
        with_legend = axes if not share_y or any(_labels(a) != _labels(axes[0]) for a in axes) else axes[:1]
        for axis in with_legend:
            axis.legend(loc="upper left" if len(with_legend) == 1 and y_range else "best",
                        fontsize=7.5 if len(with_legend) > 1 else 8.5)
        figure.tight_layout()
        text = to_svg(figure)
        plt.close(figure)
    return Plot(name, title, caption, text, to_csv(("panel", "model", "x", "mean", "low", "high", "seeds"), rows))


def _labels(axis: Any) -> list[str]:
    return axis.get_legend_handles_labels()[1]


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
