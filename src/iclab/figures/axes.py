"""Axes that look alike in every figure: labels that fit, and legends below the axes, where no data can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, repeat
from typing import Any

from iclab.figures.lettering import fitting, inches_of

TITLE, TEXT, SMALL = 10.5, 10.0, 8.0
"""Font sizes of a title, of an axis' label and of a legend."""
LINE = 0.18
"""Height of a line of a legend, in inches."""
BESIDE = 0.7
"""About what stands left of axes, in inches."""


def new_axes(rows: int, columns: int, width: float, height: float, share_x: Any = False, share_y: Any = False
             ) -> tuple[Any, Any]:
    """A figure and its grid of axes, each of this size in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, sharex=share_x, sharey=share_y, squeeze=False)


def put_labels(axis: Any, title: str, x_label: str, y_label: str, width: float, height: float) -> None:
    """Name an axis, of this size in inches: what is too long goes on several lines."""
    axis.set_title(fitting(title, width, TITLE))
    axis.set_xlabel(fitting(x_label, width, TEXT))
    axis.set_ylabel(fitting(y_label, height, TEXT))


def add_legends(figure: Any, axes: Sequence[Any], rows: int = 1, title: str = "") -> None:
    """One legend below the figure if one of the axes has all the lines of the others, else one below each of them; the
    figure, whose axes stand in this many rows, grows by as much."""
    width, height = figure.get_size_inches()
    entries = [dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True)) for axis in axes]
    most = max(entries, key=len)
    if most and all(own.keys() <= most.keys() for own in entries):
        columns = _columns(list(most), width)
        figure.legend(most.values(), most, loc="outside lower center", ncols=columns, fontsize=SMALL,
                      title=fitting(title, width, SMALL), title_fontsize=SMALL)
        figure.set_size_inches(width, height + LINE * (bool(title) - (-len(most) // columns)))
        return
    lines = [0]
    for axis, own in zip(axes, entries, strict=True):
        if own:
            columns = _columns(list(own), width * rows / len(axes) - BESIDE)
            _below(figure, axis, own, columns)
            lines.append(-(-len(own) // columns))
    figure.set_size_inches(width, height + rows * LINE * max(lines))


def _below(figure: Any, axis: Any, entries: Mapping[str, Any], columns: int) -> None:
    """A legend under an axis, its ticks and its label."""
    from matplotlib.transforms import ScaledTranslation

    points = 22 + 13 * (axis.get_xlabel().count("\n") + 1)
    axis.legend(entries.values(), entries, loc="upper center", bbox_to_anchor=(0.5, 0), ncols=columns, fontsize=SMALL,
                bbox_transform=axis.transAxes + ScaledTranslation(0, -points / 72, figure.dpi_scale_trans),
                borderaxespad=0)


def _columns(texts: Sequence[str], inches: float) -> int:
    """How many columns of a legend fit side by side."""
    def needed(columns: int) -> float:
        full, longer = divmod(len(texts), columns)  # as Matplotlib does: the first columns are one longer
        ends = [i * full + min(i, longer) for i in range(columns + 1)]
        widest = [max(map(inches_of, texts[i:j], repeat(SMALL))) for i, j in pairwise(ends)]
        return sum(widest) + columns * 4.8 * SMALL / 72

    return next((columns for columns in range(len(texts), 1, -1) if needed(columns) <= inches), 1)
