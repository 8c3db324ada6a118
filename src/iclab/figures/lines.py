"""Line plots: a measured quantity against a swept field, with bands over seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float

from iclab.core.errors import require
from iclab.figures.lettering import field_words
from iclab.figures.phase import require_fields
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.figures.recipes import Plot
from iclab.figures.style import SPARE
from iclab.probes.error_rate import CENTRES
from iclab.sweeps.measures import RANGES
from iclab.sweeps.results import TrialTable


def line_plot(results: TrialTable, x: str, y: str = "error", *, by: str | None = None, panel: str | None = None,
              centre: str = "mean", log_x: bool = False, log_y: bool = False, name: str = "lines", title: str = "",
              caption: str = "") -> Plot:
    """`y` against the swept field `x`: a line per value of `by`, side by side for the values of `panel`.

    Lines are means over seeds with Student's 95 % interval, or with `centre="median"` medians with the interval of
    their order statistics (with fewer than 6 seeds, the range of the seeds). Seeds that diverged or failed are left
    out; the column `seeds` counts the others. The information floor is drawn if the sweep measured it beside the error.
    """
    require_fields("a line plot", results, {"x": x, "by": by, "panel": panel}, {"y": y}, ("x",))
    require(centre in CENTRES, "centre", centre, f"be one of {', '.join(CENTRES)}")
    table = results.sound()
    values = sorted(table[x].unique().to_list())
    require(not log_x or min(values, default=1.0) > 0, "log_x", log_x, f"be false where {x} is not above 0")
    lines = [None] if by is None else table[by].unique(maintain_order=True).to_list()
    require(len(lines) <= len(SPARE), "by", by, f"have at most {len(SPARE)} values, one per colour")
    panels = []
    for value in [None] if panel is None else table[panel].unique(maintain_order=True).to_list():
        rows = _where(table, panel, value)
        curves = [Curve(y if by is None else _shown(by, line), _matrix(_where(rows, by, line), x, y, values),
                        centre=centre) for line in lines]
        panels.append(Panel(title if panel is None else _shown(panel, value), values, curves,
                            floor=_floor(rows, x, values) if y == "error" else None))
    return curve_figure(name, title, caption, panels, field_words(x), field_words(y), log_x=log_x, log_y=log_y,
                        within=RANGES.get(y))


def _where(table: pl.DataFrame, field: str | None, value: Any) -> pl.DataFrame:
    return table if field is None else table.filter(pl.col(field).eq_missing(pl.lit(value)))


def _matrix(table: pl.DataFrame, x: str, y: str, values: list[Any]) -> Float[np.ndarray, "seeds points"]:
    """The measured numbers, one column per value of x; columns with fewer seeds end in NaN."""
    columns = [table.filter(pl.col(x) == value)[y].drop_nulls().to_list() for value in values]
    matrix = np.full((max(map(len, columns), default=0), len(values)), np.nan)
    for i, column in enumerate(columns):
        matrix[:len(column), i] = column
    return matrix


def _floor(table: pl.DataFrame, x: str, values: list[Any]) -> list[float] | None:
    """The floor at each x, if it was measured and is the same for all lines."""
    if "floor" not in table.columns:
        return None
    floors = [table.filter(pl.col(x) == value)["floor"].drop_nulls().unique().to_list() for value in values]
    return [floor[0] for floor in floors] if all(len(floor) == 1 for floor in floors) else None


def _shown(field: str, value: Any) -> str:
    """A line's or a panel's value: a word by itself, a number with its field."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "none" if value is None else str(value)
    return f"{field_words(field)} {value:g}"
