"""Results of a sweep, or of everything in a store, as data frames."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from iclab.errors import IclabError, SpecError
from iclab.probes import seed_interval
from iclab.runs.store import Store
from iclab.runs.sweep import Sweep, Trial
from iclab.specs import canonical, function_name

BOOKKEEPING = ("seed", "status", "reason", "sweep", "run", "trial", "prompts", "seconds", "started",
               "finished", "fields")
RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "!=": lambda a, b: a != b, "==": lambda a, b: a == b,
    "=": lambda a, b: a == b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
}


def label(value: Any) -> Any:
    """A swept value as a cell of a table: numbers and texts as they are, all else as a text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    return function_name(value).split("#")[0] if callable(value) and not hasattr(value, "check") else canonical(value)


class Table:
    """Rows of trials as a data frame, with what every table of results can do."""

    frame: pl.DataFrame
    axes: list[str]

    @property
    def measures(self) -> list[str]:
        """The measured quantities."""
        return [name for name in self.frame.columns if name not in (*self.axes, *BOOKKEEPING)]

    def pandas(self) -> Any:
        """The frame as a pandas data frame (pandas must be installed)."""
        try:
            import pandas
        except ImportError:
            raise IclabError("pandas() needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.frame.to_dict(as_series=False))

    def over_seeds(self) -> pl.DataFrame:
        """One row a point: mean and 95 % interval of every quantity over the seeds that trained, and how many did."""
        found = []
        groups = self.frame.group_by(self.axes, maintain_order=True) if self.axes else [((), self.frame)]
        for point, rows in groups:
            states = rows["status"].to_list()
            row = dict(zip(self.axes, point, strict=True))
            for name in self.measures:
                values = rows.filter(pl.col("status") == "trained")[name].drop_nulls().to_numpy()
                interval = seed_interval(values) if len(values) else (None, None, None)
                row |= {name: interval[0], f"{name}_low": interval[1], f"{name}_high": interval[2]}
            found.append(row | {state: states.count(state) for state in ("trained", "diverged", "failed")})
        return pl.DataFrame(found, infer_schema_length=None, strict=False)


@dataclass(frozen=True)
class Results(Table):
    """What a sweep measured: one row a trial."""

    sweep: Sweep
    trials: list[Trial]
    rows: list[dict[str, Any]]
    frame: pl.DataFrame = field(init=False)
    axes: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", self.sweep.axes)
        points = [{path: label(trial.point.get(path)) for path in self.axes} for trial in self.trials]
        object.__setattr__(self, "frame", _frame(points, self.rows))

    @property
    def counts(self) -> dict[str, int]:
        """How many trials trained, diverged and failed."""
        states = self.frame["status"].to_list()
        return {state: states.count(state) for state in ("trained", "diverged", "failed")}


@dataclass(frozen=True)
class Stored(Table):
    """Everything that a store has measured; `axes` are the fields in which its rows differ."""

    frame: pl.DataFrame
    axes: list[str]


def stored_results(place: str | Path | Store, where: Sequence[str] = (), every_field: bool = False) -> Stored:
    """The results in a store, of each setting the latest; `where` conditions such as `error<0.1` must all hold.

    Columns are the fields in which the rows differ, or `every_field`.
    """
    store = place if isinstance(place, Store) else Store(place)
    latest: dict[Any, dict[str, Any]] = {}
    for row in sorted(store.rows().values(), key=lambda row: (row["status"] != "failed", row["finished"])):
        latest[row["fields"], row["seed"], row["prompts"]] = row
    rows = list(latest.values())
    if not rows:
        raise IclabError(f"store must hold results of a sweep, got {store.files.place!r}, which has none")
    fields = [{path: label(value) if not isinstance(value, (list, dict)) else json.dumps(value)
               for path, value in json.loads(row["fields"]).items()} for row in rows]
    names = list(dict.fromkeys(name for one in fields for name in one if name not in ("init_seed", "data_seed")))
    frame = filtered(_frame([{name: one.get(name) for name in names} for one in fields], rows), where)
    axes = names if every_field else [name for name in names if frame[name].n_unique() > 1]
    # A test takes its fields from training: what merely follows them is not an axis of its own.
    if not every_field:
        axes = [name for name in axes if not (name.startswith("test.") and _follows(frame, name))]
    columns = [*axes, *(name for name in frame.columns if name not in names)]
    return Stored(frame.select(columns), axes)


def _follows(frame: pl.DataFrame, name: str) -> bool:
    source = "prompts." + name.removeprefix("test.")
    return source in frame.columns and frame[source].equals(frame[name])


def _frame(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """One row a trial: where it stands, its seed and status, what was measured, and where it is kept."""
    measured = [name for row in rows for name in row if name not in BOOKKEEPING]
    names = ["seed", "status", *dict.fromkeys(measured), "reason", "prompts", "sweep", "run", "seconds"]
    columns: dict[str, list[Any]] = {path: [point[path] for point in points] for path in (points[0] if points else [])}
    columns |= {name: [row.get(name) for row in rows] for name in names}
    return pl.DataFrame({name: _column(values) for name, values in columns.items()}, strict=False)


def _column(values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1 and not kinds <= {int, float}:
        values = [None if value is None else str(value) for value in values]
    return pl.Series([float(v) if kinds == {int, float} and v is not None else v for v in values], strict=False)


def filtered(frame: pl.DataFrame, where: Sequence[str]) -> pl.DataFrame:
    """The rows for which every condition `FIELD RELATION VALUE` holds."""
    for condition in where:
        match = re.fullmatch(r"\s*([\w.]+)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*", condition)
        if match is None:
            raise SpecError(f"where must be FIELD=VALUE, or with <, <=, >, >=, !=, got {condition!r}")
        name, relation, text = match.groups()
        if name not in frame.columns:
            raise SpecError(f"where must name a column, one of {', '.join(frame.columns)}, got {name!r}")
        column: Any = pl.col(name)
        if frame[name].dtype.is_numeric():
            try:
                value: Any = float(text)
            except ValueError:
                raise SpecError(f"where must compare {name} with a number, got {text!r}") from None
        else:
            column, value = column.cast(pl.String), text
        frame = frame.filter(RELATIONS[relation](column, value))
    return frame
