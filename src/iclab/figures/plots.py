"""Curves with bands over seeds, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.figures.axes import add_legends, new_axes, put_labels
from iclab.figures.lettering import label
from iclab.figures.recipes import Plot, recipe, to_csv
from iclab.figures.style import BAYES, COLOURS, FLOOR, NAMES, SPARE, THEORY, VOTE
from iclab.probes.error_rate import UNIT, Interval, median_interval, seed_interval

DASHES = ((0, (4, 3)), (0, (6, 2, 1, 2)))
"""Lines of marks, in turn."""


@dataclass(frozen=True)
class Curve:
    """One model's values, one row per seed; a name that is not a model's takes the next free colour."""

    model: str
    values: Float[np.ndarray, "seeds points"]
    vote: Any = None
    """Error of the ideal majority vote at each x, if it differs between curves."""
    centre: str = "mean"
    """mean, with Student's interval, or median, with that of order statistics."""


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
    y_label: str | None = None
    """Overrides the figure's label."""


def error_figure(name: str, title: str, caption: str, panels: Sequence[Panel], x_label: str,
                 log_from: float | None = None) -> Plot:
    """Error curves side by side: mean over seeds, 95 % band, the information floor. With `log_from` a second row shows
    the same on a logarithmic axis that begins there."""
    return curve_figure(name, title, caption, panels, x_label, "error", y_range=(-0.03, 1.03), within=UNIT,
                        log_from=log_from)


def curve_figure(name: str, title: str, caption: str, panels: Sequence[Panel], x_label: str, y_label: str, *,
                 y_range: tuple[float, float] | None = None, log_x: bool = False, log_y: bool = False,
                 share_y: bool = True, within: tuple[float, float] | None = None, log_from: float | None = None
                 ) -> Plot:
    """Curves side by side: mean over seeds with a 95 % band, references and theory as lines.

    `within` is the known range of the values, to which their intervals are clipped.
    """
    rows: list[tuple[Any, ...]] = []
    drawn = [_drawn(replace(panel, x_label=panel.x_label or x_label, y_label=panel.y_label or y_label,
                            within=panel.within or within), rows) for panel in panels]
    return recipe(name, title, caption, "curves",
                  {"panels": drawn, "y_range": y_range, "log_x": log_x, "log_y": log_y, "share_y": share_y,
                   "log_from": log_from},
                  to_csv(("panel", "model", "x", "mean", "low", "high", "seeds"), rows))


def _drawn(panel: Panel, rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    """What is drawn of a panel; its numbers are added to the rows of the CSV."""
    def reference(text: str, values: Any) -> None:
        rows.extend((panel.title, text, x, f"{y:.6g}", "", "", "") for x, y in zip(panel.x, values, strict=True))

    curves = []
    for curve in panel.curves:
        columns = [column[np.isfinite(column)] for column in curve.values.T]
        intervals = [_interval(curve, column, panel.within) for column in columns]
        if curve.vote is not None:
            reference(f"{curve.model}, vote", curve.vote)
        rows.extend((panel.title, curve.model, x, *(f"{v:.6g}" for v in interval), len(column))
                    for x, interval, column in zip(panel.x, intervals, columns, strict=True))
        mean, low, high = np.array(intervals, float).reshape(-1, 3).T
        least = 0.0 if all((column >= 0).all() for column in columns) else -np.inf
        curves.append({"model": curve.model, "mean": mean, "low": np.maximum(low, least), "high": high,
                       "vote": curve.vote})
    lines = [("Bayes", panel.bayes), ("floor", panel.floor), *panel.lines]
    for text, values in lines:
        if values is not None:
            reference(text, values)
    return {"title": panel.title, "x_label": panel.x_label, "y_label": panel.y_label, "x": panel.x, "curves": curves,
            "bayes": panel.bayes, "floor": panel.floor, "lines": panel.lines, "marks": panel.marks}


def _interval(curve: Curve, values: Float[np.ndarray, " seeds"], within: tuple[float, float] | None) -> Interval:
    if not len(values):
        return Interval(np.nan, np.nan, np.nan)
    return median_interval(values) if curve.centre == "median" else seed_interval(values, within=within)


def draw_curves(_: str, panels: Sequence[Mapping[str, Any]], y_range: Sequence[float] | None, log_x: bool, log_y: bool,
                share_y: bool, log_from: float | None) -> Any:
    """Panels in rows of at most three; with `log_from` in one row, and below it the same on a logarithmic axis."""
    twice = log_from is not None
    columns = len(panels) if twice else 2 if len(panels) == 4 else min(len(panels), 3)
    shown = [(panel, False) for panel in panels] + [(panel, True) for panel in panels if twice]
    rows = -(-len(shown) // columns)
    width, height = 4.4 if columns == 1 else 3.4, 2.3 if twice else 3.0
    figure, grid = new_axes(rows, columns, width, height, share_x="col" if twice else False,
                            share_y="row" if twice and share_y else share_y)
    axes = grid.ravel()[:len(shown)]
    for empty in grid.ravel()[len(shown):]:
        empty.remove()
    names = dict.fromkeys(curve["model"] for panel in panels for curve in panel["curves"])
    colours = dict(zip((name for name in names if name not in COLOURS), cycle(SPARE), strict=False)) | COLOURS
    dashes = dict(zip(dict.fromkeys(text for panel in panels for text, _ in panel["marks"]), cycle(DASHES),
                      strict=False))
    for i, (axis, (panel, lower)) in enumerate(zip(axes, shown, strict=True)):
        least = log_from if lower else _least(panel) if log_y else None
        _draw_panel(axis, panel, colours, dashes, least)
        y_label = "" if share_y and i % columns else panel["y_label"] + (", logarithmic" if lower else "")
        title = "" if lower or panel["title"] == panel["x_label"] else panel["title"]
        put_labels(axis, title, "" if twice and not lower else panel["x_label"], y_label, width - 0.7, height - 0.7)
        _scale_x(axis, panel["x"], log_x)
        if lower:
            axis.set_yscale("log")
            axis.set_ylim(log_from, 1.3)
        elif log_y and _means(panel):
            _logarithmic(axis, least)
        if y_range is not None and not lower:
            axis.set_ylim(*y_range)
    add_legends(figure, list(axes[-columns:] if twice else axes), 1 if twice else rows)
    return figure


def _means(panel: Mapping[str, Any]) -> list[float]:
    return [mean for curve in panel["curves"] for mean in curve["mean"] if mean is not None]


def _least(panel: Mapping[str, Any]) -> float | None:
    """Where a logarithmic axis ends if some mean has no place on it: at the least that has."""
    means = _means(panel)
    return min((mean for mean in means if mean > 0), default=1.0) if any(mean <= 0 for mean in means) else None


def _draw_panel(axis: Any, panel: Mapping[str, Any], colours: Mapping[str, str], dashes: Mapping[str, Any],
                least: float | None) -> None:
    """Curves with bands, references, theory and marks; what is below `least` is drawn there."""
    panel_x = np.array(panel["x"], float)
    for curve in panel["curves"]:
        mean, low, high = (_at_least(least, curve[end]) for end in ("mean", "low", "high"))
        known, colour = np.isfinite(mean), colours[curve["model"]]
        axis.plot(panel_x[known], mean[known], color=colour, marker="o", markersize=3.5,
                  label=label(NAMES.get(curve["model"], curve["model"])))
        axis.fill_between(panel_x[known], low[known], high[known], color=colour, alpha=0.2, lw=0)
        if curve["vote"] is not None:
            axis.plot(panel_x, _at_least(least, curve["vote"]), color=colour, **VOTE)
    lines = [(panel["bayes"], BAYES), (panel["floor"], FLOOR)]
    lines += [(values, THEORY | {"label": label(text)}) for text, values in panel["lines"]]
    for values, line in lines:
        if values is not None:
            y = _at_least(least, values)
            axis.plot(panel_x[np.isfinite(y)], y[np.isfinite(y)], **line)
    if any(curve["vote"] is not None for curve in panel["curves"]):
        axis.plot([], [], color="#777777", label="ideal vote", **VOTE)
    for text, at in panel["marks"]:
        if at is not None:  # there is a point at which something changes
            axis.axvline(at, color="#222222", linestyle=dashes[text], linewidth=1.0, label=label(text))


def _at_least(least: float | None, values: Sequence[float | None]) -> Float[np.ndarray, " points"]:
    numbers = np.array(values, float)
    return numbers if least is None else np.maximum(numbers, least)


def _scale_x(axis: Any, x: Sequence[float], log: bool) -> None:
    """Ticks at the measured points where they are few."""
    if log:
        axis.set_xscale("log")
        if len(x) <= 9:
            axis.set_xticks(list(x), [f"{value:.3g}" for value in x])
            axis.minorticks_off()
    elif len(x) <= 6 and all(float(value).is_integer() for value in x):
        axis.set_xticks(list(x))


def _logarithmic(axis: Any, least: float | None) -> None:
    from matplotlib.ticker import FuncFormatter, LogFormatter

    axis.set_yscale("log")
    if least is not None:
        axis.set_ylim(bottom=least)
    written = LogFormatter(minor_thresholds=(np.inf, np.inf))  # writes every number it is asked for
    axis.yaxis.set_major_formatter(written)
    axis.yaxis.set_minor_formatter(FuncFormatter(
        lambda value, _: written(value) if _has_room(value, *axis.get_ylim()) else ""))


def _has_room(value: float, low: float, high: float) -> bool:
    """Whether a minor tick of a logarithmic axis may have a label: the fewer, the more decades the axis has."""
    first = round(value / 10 ** np.floor(np.log10(value) + 1e-9))
    decades = np.log10(high / low)
    return bool(decades <= 2.5 and (decades <= 0.5 or first in ((2, 3, 5, 7) if decades <= 1 else (2, 5))))
