"""Phase diagrams: a measured quantity over two swept fields, with intervals over seeds and a theorem's boundary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float

from iclab.core.errors import SpecError, not_a, require
from iclab.core.parse import import_function
from iclab.figures.axes import new_axes, put_labels
from iclab.figures.lettering import field_words, label
from iclab.figures.recipes import Plot, recipe, to_csv
from iclab.figures.style import NAMES
from iclab.sweeps.measures import STATES
from iclab.sweeps.results import Results, TrialTable
from iclab.theory.mamba import promise

Theory = Callable[[Any, Any], float]
"""`(run, test) -> margin`: above 0 where a theorem's premises hold."""
THEORIES: dict[str, Theory] = {"mamba": promise}
FINE = 41
"""Points along each axis at which a theory's margin is computed."""
WRITTEN_CELLS = 15
"""Most cells along an axis for which numbers are written into the cells."""


def phase_diagram(results: TrialTable, x: str, y: str, *, colour: str = "error", panel: str | None = None,
                  theory: str | Theory | None = None, name: str = "phase", title: str = "", caption: str = "") -> Plot:
    """Mean of `colour` over seeds for every (x, y), one panel per value of `panel`.

    Small numbers in a cell are the mean and the larger half-width of its 95 % interval; a cross marks cells in which
    some seed got stuck, diverged or failed. If `theory` is given (`mamba`, `module:function`, or a function
    (run, test) -> margin), the line bounds the region in which the theorem's premises hold.
    """
    require_fields("a phase diagram", results, {"x": x, "y": y, "panel": panel}, {"colour": colour}, ("x", "y"))
    table = results.over_seeds()
    values = [None] if panel is None else table[panel].unique(maintain_order=True).to_list()
    edges = sorted(table[x].unique().to_list()), sorted(table[y].unique().to_list())
    panels = []
    for value in values:
        rows = table if panel is None else table.filter(pl.col(panel).eq_missing(pl.lit(value)))
        cell = _cells(rows, x, y, colour, *edges)
        shown = title if panel is None else NAMES.get(str(value), str(value))
        region = {} if theory is None else _region(results, x, y, panel, value, theory, cell)
        panels.append({"title": shown, **cell, **region})
    columns = [x, y, colour, f"{colour}_low", f"{colour}_high", *STATES]
    columns = columns if panel is None else [panel, *columns]
    return recipe(name, title, caption, "phase",
                  {"panels": panels, "x_label": field_words(x), "y_label": field_words(y),
                   "quantity": field_words(colour)}, to_csv(columns, table.select(columns).rows()))


def draw_phase(_: str, panels: Sequence[Mapping[str, Any]], x_label: str, y_label: str, quantity: str) -> Any:
    """Maps side by side, and a bar of their colours."""
    figure, (axes,) = new_axes(1, len(panels), 4.9, 4.3, share_y=True)
    means = [np.array(panel["mean"], float) for panel in panels]
    top = max((float(np.nanmax(mean)) for mean in means if np.isfinite(mean).any()), default=1.0)
    for i, (axis, panel, mean) in enumerate(zip(axes, panels, means, strict=True)):
        image = _draw(axis, panel, mean, max(top, 1e-9))
        if "inside" in panel:
            axis.contour(*panel["places"], np.array(panel["inside"], float), levels=[0.0], colors="#0b3954",
                         linewidths=1.8)
        put_labels(axis, panel["title"], x_label, y_label if i == 0 else "", 4.0, 3.5)
        if panel.get("words"):
            axis.set_title("\n".join(filter(None, [axis.get_title(), label(panel["words"])])))
    figure.colorbar(image, ax=list(axes), label=label(f"{quantity}, mean over seeds"), shrink=0.85, pad=0.02)
    return figure


def require_fields(what: str, results: TrialTable, fields: Mapping[str, str | None], quantity: Mapping[str, str],
                   numbers: Sequence[str]) -> None:
    """Refuse to draw what was not swept or measured, a field that is no number in one of these roles, and several
    trials of one seed at one point."""
    if not isinstance(results, TrialTable):
        raise not_a("results", results, "results of a sweep", "give results, not results.frame")
    for role, field in fields.items():
        require(field is None or field in results.axes, role, field,
                f"be a swept field, one of {', '.join(results.axes)}")
    fixed = [field for field in fields.values() if field is not None]
    for i, (role, field) in enumerate(fields.items()):
        for other in list(fields)[:i]:
            require(field is None or fields[other] != field, role, field, f"differ from {other}")
    for role, name in quantity.items():
        require(name in results.measures, role, name, f"be measured, one of {', '.join(results.measures)}")
    for role in numbers:
        field = fields[role] or ""
        require(results.frame[field].dtype.is_numeric(), field, results.frame[field].to_list()[0],
                f"be a number to be an axis of {what}")
    for field in results.axes:
        if field not in fixed and any(len(set(values)) > 1 for values in
                                      results.frame.group_by(fixed).agg(field)[field].to_list()):
            roles = " or ".join(role for role in fields if role not in numbers)
            condition = _condition(field, results.frame[field][0])
            raise SpecError(f"{what} must have every other field fixed, got several values of {field}; choose one, "
                            f"such as results.where({condition!r}), or make it {roles}")


def _condition(field: str, value: Any) -> str:
    """The condition that a field has this value."""
    return f"{field}={str(value).lower() if value is None or isinstance(value, bool) else value}"


def _cells(table: pl.DataFrame, x: str, y: str, colour: str, columns: list[float], rows: list[float]
           ) -> dict[str, Any]:
    """Arrays of shape (y, x): the mean, the larger half-width of its interval, and whether a seed failed to train."""
    mean, half_width = np.full((2, len(rows), len(columns)), np.nan)
    trouble = np.zeros(mean.shape, bool)
    for row in table.iter_rows(named=True):
        at = rows.index(row[y]), columns.index(row[x])
        if row[colour] is not None:
            mean[at] = row[colour]
            half_width[at] = max(row[f"{colour}_high"] - mean[at], mean[at] - row[f"{colour}_low"])
        trouble[at] = row["trained"] < row["of"]
    return {"x": columns, "y": rows, "mean": mean, "half_width": half_width, "trouble": trouble}


def _draw(axis: Any, panel: Mapping[str, Any], mean: Float[np.ndarray, "y x"], top: float) -> Any:
    from matplotlib.colors import ListedColormap

    ramp = np.linspace(0, 1, 256)[:, None]  # from paper white over amber to the linear Transformer's red-brown
    stops = np.array([[250, 248, 240], [243, 205, 130], [200, 85, 61], [92, 24, 34]]) / 255
    colours = np.stack([np.interp(ramp[:, 0], np.linspace(0, 1, len(stops)), stop) for stop in stops.T], axis=1)
    half_width, shape = np.array(panel["half_width"], float), mean.shape
    image = axis.imshow(mean, origin="lower", aspect="auto", vmin=0, vmax=top, interpolation="nearest",
                        cmap=ListedColormap(colours).with_extremes(bad="#dddddd"))
    axis.grid(False)
    axis.set_xticks(range(shape[1]), [f"{value:g}" for value in panel["x"]])
    axis.set_yticks(range(shape[0]), [f"{value:g}" for value in panel["y"]])
    size = min(8.5, 70 / max(shape))
    for i, j in np.ndindex(shape):
        if max(shape) <= WRITTEN_CELLS and np.isfinite(mean[i, j]):
            ink = "white" if mean[i, j] > 0.6 * top else "#222222"
            axis.text(j, i + 0.12, _short(float(mean[i, j])), ha="center", va="center", fontsize=size, color=ink)
            if np.isfinite(half_width[i, j]):
                axis.text(j, i - 0.24, f"±{_short(float(half_width[i, j]))}", ha="center", va="center",
                          fontsize=0.75 * size, color=ink)
        if panel["trouble"][i][j]:
            axis.plot(j + 0.36, i + 0.34, marker="x", color="#3a7ca5", markersize=4, markeredgewidth=1.2)
    return image


def _short(value: float) -> str:
    text = f"{value:.3f}" if value < 0.0995 else f"{value:.2f}"
    return text.removeprefix("0") if value < 1 else text


def _region(results: TrialTable, x: str, y: str, panel: str | None, value: Any, theory: str | Theory,
            cell: dict[str, Any]) -> dict[str, Any]:
    """Where the theorem's premises hold: in words, and their margin at places between the cells if it changes sign."""
    if not isinstance(results, Results):
        raise SpecError("theory needs the results of a sweep that was run, got a table read from a store")
    margin = find_theory(theory)
    places = [np.linspace(0, len(cell[k]) - 1, len(cell[k]) if _whole(cell[k]) else FINE) for k in "xy"]
    columns, rows = (np.interp(places[i], range(len(cell[k])), cell[k]) for i, k in enumerate("xy"))
    trial = results.trials[0 if panel is None else results.frame[panel].to_list().index(value)]
    values = np.array([[_margin(margin, results, trial, {x: _value(a, cell["x"]), y: _value(b, cell["y"])})
                        for a in columns] for b in rows])
    if not (values > 0).any():
        return {"words": "(theorem promises nothing here)"}
    if (values > 0).all():
        return {"words": "(inside the theorem's premises)"}
    return {"words": f"(theorem's premises hold {_side(values > 0)} the line)", "places": places, "inside": values}


def _side(inside: np.ndarray) -> str:
    """Where a region lies, in words."""
    rows, columns = (np.argwhere(inside).mean(axis=0) - np.argwhere(~inside).mean(axis=0)) / inside.shape
    sides = {"right of": columns > 0.1, "left of": columns < -0.1, "above": rows > 0.1, "below": rows < -0.1}
    words = [side for side, holds in sides.items() if holds]
    return " and ".join(words) or "inside"


def _whole(values: list[Any]) -> bool:
    """Whether an axis has whole numbers only, so that nothing lies between its points."""
    return all(isinstance(value, int) for value in values)


def _value(value: float, axis: list[Any]) -> float:
    return round(value) if _whole(axis) else float(value)


def _margin(margin: Theory, results: Results, trial: Any, point: dict[str, float]) -> float:
    try:
        run, test = results.sweep.place({**trial.point, **point})
    except SpecError:
        return np.nan
    try:
        return float(margin(run, test))
    except Exception as error:  # a user's function may raise anything
        raise SpecError(f"theory must be a function (run, test) -> a number, got one that fails: {error}") from None


def find_theory(theory: str | Theory) -> Theory:
    """The function that a theory's name stands for."""
    if callable(theory):
        return theory
    if ":" in theory:
        return import_function(theory, "theory")
    require(theory in THEORIES, "theory", theory, f"be one of {', '.join(THEORIES)} or module:function")
    return THEORIES[theory]
