"""Phase diagrams: a measured quantity over two swept fields, with intervals over seeds and a theorem's boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from iclab.core.errors import SpecError, require
from iclab.core.parse import import_function
from iclab.figures.plots import Plot, to_csv, to_svg
from iclab.figures.style import NAMES, style
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
    import matplotlib.pyplot as plt

    _check(results, x, y, colour, panel)
    table = results.over_seeds()
    values = [None] if panel is None else table[panel].unique(maintain_order=True).to_list()
    edges = sorted(table[x].unique().to_list()), sorted(table[y].unique().to_list())
    cells = [_cells(table if panel is None else table.filter(pl.col(panel).eq_missing(pl.lit(value))), x, y, colour,
                    *edges) for value in values]
    top = max((float(np.nanmax(cell["mean"])) for cell in cells if np.isfinite(cell["mean"]).any()), default=1.0)
    with style():
        figure, axes = plt.subplots(1, len(values), figsize=(0.9 + 4.6 * len(values), 4.3), sharey=True, squeeze=False,
                                    layout="constrained")
        for axis, value, cell in zip(axes[0], values, cells, strict=True):
            image = _draw(axis, cell, max(top, 1e-9))
            shown = NAMES.get(value, str(value)) if value is not None else title
            if theory is not None:
                shown += f"\n{_draw_theory(axis, results, x, y, panel, value, theory, cell)}"
            axis.set(title=shown, xlabel=_words(x))
        axes[0][0].set_ylabel(_words(y))
        figure.colorbar(image, ax=axes[0].tolist(), label=colour, shrink=0.85, pad=0.02)
        svg = to_svg(figure)
        plt.close(figure)
    columns = [x, y, colour, f"{colour}_low", f"{colour}_high", *STATES]
    columns = columns if panel is None else [panel, *columns]
    return Plot(name, title, caption, svg, to_csv(columns, table.select(columns).rows()))


def _check(results: TrialTable, x: str, y: str, colour: str, panel: str | None) -> None:
    for role, field in (("x", x), ("y", y), ("panel", panel)):
        require(field is None or field in results.axes, role, field,
                f"be a swept field, one of {', '.join(results.axes)}")
    require(x != y, "y", y, "differ from x")
    require(colour in results.measures, "colour", colour, f"be measured, one of {', '.join(results.measures)}")
    for field in (x, y):
        require(results.frame[field].dtype.is_numeric(), field, results.frame[field].to_list()[0],
                "be a number to be an axis of a phase diagram")
    fixed = [field for field in (x, y, panel) if field is not None]
    for field in results.axes:
        if field not in fixed and any(len(set(values)) > 1 for values in
                                      results.frame.group_by(fixed).agg(field)[field].to_list()):
            raise SpecError(f"a phase diagram must have every other field fixed, got several values of {field}; "
                            "filter them or make it the panel")


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


def _draw(axis: Any, cell: dict[str, Any], top: float) -> Any:
    from matplotlib.colors import ListedColormap

    ramp = np.linspace(0, 1, 256)[:, None]  # from paper white over amber to the linear Transformer's red-brown
    stops = np.array([[250, 248, 240], [243, 205, 130], [200, 85, 61], [92, 24, 34]]) / 255
    colours = np.stack([np.interp(ramp[:, 0], np.linspace(0, 1, len(stops)), stop) for stop in stops.T], axis=1)
    shape = cell["mean"].shape
    image = axis.imshow(cell["mean"], origin="lower", aspect="auto", vmin=0, vmax=top, interpolation="nearest",
                        cmap=ListedColormap(colours).with_extremes(bad="#dddddd"))
    axis.grid(False)
    axis.set_xticks(range(shape[1]), [f"{value:g}" for value in cell["x"]])
    axis.set_yticks(range(shape[0]), [f"{value:g}" for value in cell["y"]])
    for i, j in np.ndindex(shape):
        if max(shape) <= WRITTEN_CELLS and np.isfinite(cell["mean"][i, j]):
            ink = "white" if cell["mean"][i, j] > 0.6 * top else "#222222"
            axis.text(j, i + 0.12, _short(cell["mean"][i, j]), ha="center", va="center", fontsize=6.5, color=ink)
            if np.isfinite(cell["half_width"][i, j]):
                axis.text(j, i - 0.24, f"±{_short(cell['half_width'][i, j])}", ha="center", va="center", fontsize=4.8,
                          color=ink)
        if cell["trouble"][i, j]:
            axis.plot(j + 0.36, i + 0.34, marker="x", color="#3a7ca5", markersize=4, markeredgewidth=1.2)
    return image


def _short(value: float) -> str:
    text = f"{value:.3f}" if value < 0.0995 else f"{value:.2f}"
    return text.removeprefix("0") if value < 1 else text


def _draw_theory(axis: Any, results: TrialTable, x: str, y: str, panel: str | None, value: Any, theory: str | Theory,
                 cell: dict[str, Any]) -> str:
    """Draw the boundary of the theorem's region and say where it lies."""
    if not isinstance(results, Results):
        raise SpecError("theory needs the results of a sweep that was run, got a table read from a store")
    margin = find_theory(theory)
    places = [np.linspace(0, len(cell[k]) - 1, len(cell[k]) if _whole(cell[k]) else FINE) for k in "xy"]
    columns, rows = (np.interp(places[i], range(len(cell[k])), cell[k]) for i, k in enumerate("xy"))
    trial = results.trials[0 if panel is None else results.frame[panel].to_list().index(value)]
    values = np.array([[_margin(margin, results, trial, {x: _value(a, cell["x"]), y: _value(b, cell["y"])})
                        for a in columns] for b in rows])
    if not (values > 0).any():
        return "(theorem promises nothing here)"
    if (values > 0).all():
        return "(inside the theorem's premises)"
    axis.contour(*places, values, levels=[0.0], colors="#0b3954", linewidths=1.8)
    return f"(theorem's premises hold {_side(values > 0)} the line)"


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


def _words(path: str) -> str:
    part, _, field = path.partition(".")
    where = {"prompts": "training", "test": "test", "model": "model", "training": "training"}.get(part, part)
    return f"{field.replace('_', ' ')} ({where})" if field else path
