"""Sweep files: a sweep as TOML.

    name = "phase-diagram"
    import = ["own_models"]          # modules that register kinds used here
    seeds = 5                        # or a list
    measure = ["error", "floor"]     # or your "module:function"
    test_prompts = 4000

    [base]                           # fields of a run; others have defaults
    training.steps = 3000
    [test]                           # changes to the training prompts
    label_rule = "flip"

    [grid]                           # every combination
    prompts.outlier_fraction = { from = 0.0, to = 0.9, count = 10 }
    test.outlier_scale = [2.0, 6.0]
    [[list]]                         # values that go together
    model.member = "mamba"
    training.learning_rate = 1.0
    [random]                         # points drawn at random
    count = 50
    prompts.pattern_norm = { low = 1.0, high = 5.0, scale = "log" }

    [plot]                           # a phase diagram of two swept fields
    x = "prompts.outlier_fraction"
    y = "test.outlier_scale"

    [plot]                                       # or lines: a measured quantity against a swept field
    kind = "lines"
    x = "prompts.outlier_fraction"
    y = "error"
    by = "model.member"
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from iclab.core.errors import IclabError, SpecError, require
from iclab.core.files import read_file
from iclab.core.parse import import_function, import_module, is_number, with_fields
from iclab.probes.error_rate import CENTRES
from iclab.sweeps.sweep import MOST_TRIALS, RESEED, Draws, Sweep, is_whole
from iclab.training import Run

KEYS = ("name", "import", "seeds", "reseed", "measure", "test_prompts", "base", "test", "grid", "list", "random",
        "plot")

DEEPEST = 8
"""Limit on the parts of a path; the fields of a run have at most three."""


@dataclasses.dataclass(frozen=True)
class PhaseRequest:
    """The phase diagram a sweep file requests."""

    x: str
    """Swept field along the horizontal axis."""
    y: str
    """Swept field along the vertical axis."""
    colour: str = "error"
    """Measured quantity shown as colour."""
    panel: str | None = None
    """Swept field with one panel per value."""
    theory: str | None = None
    """A theorem whose boundary is drawn: mamba, or your module:function."""
    words: ClassVar[str] = "phase diagram"
    numbers: ClassVar[tuple[str, ...]] = ("x", "y")
    fields: ClassVar[tuple[str, ...]] = ("x", "y", "panel")
    measured: ClassVar[str] = "colour"

    @property
    def quantity(self) -> str:
        """The measured quantity."""
        return self.colour


@dataclasses.dataclass(frozen=True)
class LineRequest:
    """The line plot a sweep file requests."""

    x: str
    """Swept field along the horizontal axis."""
    y: str = "error"
    """Measured quantity along the vertical axis."""
    by: str | None = None
    """Swept field with one line per value."""
    panel: str | None = None
    """Swept field with one panel per value."""
    centre: str = "mean"
    """mean or median over seeds."""
    log_x: bool = False
    """Whether the horizontal axis is logarithmic."""
    log_y: bool = False
    """Whether the vertical axis is logarithmic."""
    words: ClassVar[str] = "line plot"
    numbers: ClassVar[tuple[str, ...]] = ("x",)
    fields: ClassVar[tuple[str, ...]] = ("x", "by", "panel")
    measured: ClassVar[str] = "y"

    @property
    def quantity(self) -> str:
        """The measured quantity."""
        return self.y


REQUESTS: dict[str, type[PhaseRequest] | type[LineRequest]] = {"phase": PhaseRequest, "lines": LineRequest}


def read_sweep(path: str | Path, max_trials: int = MOST_TRIALS) -> tuple[Sweep, PhaseRequest | LineRequest | None]:
    """The sweep that a file describes, and the plot it requests; errors name the field."""
    content = read_file(path, "sweep file")
    try:
        data = tomllib.loads(content.decode())
    except RecursionError:
        raise IclabError(f"sweep file {str(path)!r} must be TOML: nested too deeply") from None
    except ValueError as error:  # also invalid UTF-8, and numbers with thousands of digits
        raise IclabError(f"sweep file {str(path)!r} must be TOML: {error}") from None
    try:
        sweep = sweep_of({"name": Path(path).stem, **data}, max_trials)
        sweep.trials()
        return sweep, _plot(data["plot"], sweep) if "plot" in data else None
    except IclabError as error:
        raise SpecError(f"{path}: {error}") from None


def sweep_of(data: Mapping[str, Any], max_trials: int = MOST_TRIALS) -> Sweep:
    """The sweep that the tables of a file describe."""
    for name in data:
        require(name in KEYS, "a sweep file's key", name, f"be one of {', '.join(KEYS)}")
    modules = data.get("import", [])
    require(isinstance(modules, list) and all(isinstance(name, str) for name in modules), "import", modules,
            "be a list of modules")
    for module in modules:
        import_module(module, "import")
    base, test, grid, random = (_table(data, name) for name in ("base", "test", "grid", "random"))
    if "grid" in data:
        require(len(grid) > 0, "grid", {}, "name at least one field")
    settings = data.get("list", [])
    require(isinstance(settings, list) and all(isinstance(point, dict) and point for point in settings)
            and ("list" not in data or len(settings) > 0), "list", settings,
            "be tables [[list]] with at least one field each")
    seeds, measure = data.get("seeds", 1), data.get("measure", list(Sweep.measure))
    require(isinstance(seeds, (int, list)) and not isinstance(seeds, bool), "seeds", seeds,
            "be a whole number >= 1 or a list of them")
    require(isinstance(measure, list) and all(isinstance(name, str) for name in measure), "measure", measure,
            "be a list of strings")
    reseed = data.get("reseed", "both")
    for name in RESEED.get(reseed, ()) if isinstance(reseed, str) else ():
        require(name not in base, f"base.{name}", base.get(name), "not be given: the sweep's seeds set it (see reseed)")
    return Sweep(
        base=with_fields(Run(), flattened(base)), test=flattened(test),
        grid={path: _axis(path, values, max_trials) for path, values in flattened(grid).items()},
        settings=[flattened(point) for point in settings],
        random=_draws(random) if "random" in data else None, seeds=seeds, reseed=reseed,
        measure=[import_function(name, "measure") if ":" in name else name for name in measure],
        prompts=data.get("test_prompts", Sweep.prompts), name=data["name"], max_trials=max_trials)


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name, {})
    require(isinstance(value, dict), name, value, f"be a table [{name}]")
    return value


def flattened(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as paths; a table of `from`, `low` or `choices` is a value."""
    require(prefix.count(".") <= DEEPEST, "a field's path", prefix, f"have at most {DEEPEST} parts")
    values_by_path: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict) and not {"from", "to", "low", "high", "choices"} & value.keys():
            values_by_path |= flattened(value, f"{prefix}{name}.")
        else:
            values_by_path[prefix + name] = value
    return values_by_path


def _axis(path: str, values: Any, most: int) -> Sequence[Any]:
    """The values of a grid's axis: a list, or evenly spaced numbers `{from, to, count, scale}`."""
    if not isinstance(values, dict):
        return values
    rule = "be a list or { from, to, count, scale = 'linear' or 'log' }"
    good = values.keys() <= {"from", "to", "count", "scale"} and {"from", "to", "count"} <= values.keys()
    numbers = good and all(is_number(values[end]) and np.isfinite(values[end]) for end in ("from", "to"))
    counted = numbers and is_whole(values["count"], 1)
    log = values.get("scale", "linear") == "log"
    require(bool(counted) and values.get("scale", "linear") in ("linear", "log"), f"grid.{path}", values, rule)
    require(not log or min(values["from"], values["to"]) > 0, f"grid.{path}", values, "have ends above 0 for log")
    require(values["count"] <= most, f"grid.{path}", values, f"have at most {most:,} values, the most trials allowed")
    require(np.isfinite(float(values["to"]) - float(values["from"])), f"grid.{path}", values,
            "have ends whose distance is finite")
    spaced = np.geomspace if log else np.linspace
    return [float(f"{value:.12g}") for value in spaced(values["from"], values["to"], values["count"])]


def _draws(table: Mapping[str, Any]) -> Draws:
    fields = {}
    for path, value in flattened({k: v for k, v in table.items() if k not in ("count", "seed")}).items():
        rule = "be { low, high, scale = 'linear' or 'log' }, { choices } or a list"
        if isinstance(value, dict) and value.keys() == {"choices"}:
            value = value["choices"]
        elif isinstance(value, dict):
            require({"low", "high"} <= value.keys() <= {"low", "high", "scale"}, f"random.{path}", value, rule)
            value = (value["low"], value["high"], value.get("scale", "linear"))
        require(isinstance(value, (list, tuple)), f"random.{path}", value, rule)
        fields[path] = value
    require("count" in table, "random", dict(table), "say how many points to draw: count")
    seed = table.get("seed", 0)
    require(is_whole(seed, 0), "random.seed", seed, "be a whole number >= 0")
    return Draws(fields, table["count"], seed)


def _plot(table: Any, sweep: Sweep) -> PhaseRequest | LineRequest:
    require(isinstance(table, dict), "plot", table, "be a table [plot]")
    kind = table.get("kind", "phase")
    require(isinstance(kind, str) and kind in REQUESTS, "plot.kind", kind, f"be one of {', '.join(REQUESTS)}")
    of_kind, values = REQUESTS[kind], {name: value for name, value in table.items() if name != "kind"}
    known = {field.name: field for field in dataclasses.fields(of_kind)}
    needed = [name for name, field in known.items() if field.default is dataclasses.MISSING]
    require(all(name in values for name in needed), "plot", table, f"be a table with {' and '.join(needed)}")
    for name, value in values.items():
        require(name in known, "plot", name, f"have only {', '.join(known)}")
        flag = isinstance(known[name].default, bool)
        require(isinstance(value, bool if flag else str), f"plot.{name}", value,
                "be true or false" if flag else "be a string")
        if name in of_kind.fields:
            require(value in sweep.axes, f"plot.{name}", value, f"be a swept field, one of {', '.join(sweep.axes)}")
    request = of_kind(**values)
    require(not isinstance(request, LineRequest) or request.centre in CENTRES, "plot.centre", values.get("centre"),
            f"be one of {', '.join(CENTRES)}")
    shown = {name: values[name] for name in of_kind.fields if name in values}
    for name, value in ((name, point.get(shown[name], 0)) for point in sweep.points() for name in of_kind.numbers):
        require(isinstance(value, (int, float)) and not isinstance(value, bool), f"plot.{name}", shown[name],
                "be a field of numbers")
    for i, (name, field) in enumerate(shown.items()):
        for other in list(shown)[:i]:
            require(shown[other] != field, f"plot.{name}", field, f"differ from {other}")
    seen: dict[Any, dict[str, Any]] = {}
    for point in sweep.points():
        first = seen.setdefault(tuple(str(point.get(field)) for field in shown.values()), point)
        for field in sweep.axes:
            require(first.get(field) == point.get(field), "plot.panel", request.panel,
                    f"be {field}, which takes several values at one {' and '.join(of_kind.fields[:2])}")
    has_functions = any(callable(name) for name in sweep.measure)
    require(has_functions or request.quantity in sweep.measure, f"plot.{of_kind.measured}", request.quantity,
            f"be measured, one of {', '.join(map(str, sweep.measure))}")
    return request
