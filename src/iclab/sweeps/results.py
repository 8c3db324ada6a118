"""Results of a sweep, or of everything in a store, as data frames."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np
import polars as pl

from iclab.core.errors import IclabError, SpecError, require
from iclab.core.identity import canonical, function_name
from iclab.probes import seed_interval
from iclab.sweeps.conditions import RowFilter, filtered, parted
from iclab.sweeps.measures import BOOKKEEPING, RANGES, SOUND, STATES, applies
from iclab.sweeps.store import Store
from iclab.sweeps.sweep import Sweep, Trial

SEEDS = ("init_seed", "data_seed")
SETTINGS = ("seed", "test_prompts", "sweep", "run")
"""Columns, besides the fields, that are fixed before a trial runs; all others are its outcome."""
NUMBER = "#"
"""A column of row numbers, which no condition can name."""


def label(value: Any) -> Any:
    """A swept value as a table cell: numbers and strings unchanged, anything else as a string."""
    if isinstance(value, (np.generic, np.ndarray, jax.Array)) and np.ndim(value) == 0:
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    spec = dataclasses.is_dataclass(value)
    return function_name(value).split("#")[0] if callable(value) and not spec else canonical(value)


def labels(values: Sequence[Any]) -> list[Any]:
    """Distinct labels for an axis' values; functions with the same name get a number."""
    if all(value is None or isinstance(value, (bool, int, float, str)) for value in values):
        return list(values)
    known: list[tuple[Any, Any]] = []
    for value in values:
        if any(_same(value, other) for other, _ in known):
            continue
        text, taken = label(value), [name for _, name in known]
        known.append((value, text if text not in taken else f"{text}[{sum(value is not v for v, _ in known)}]"))
    return [next(name for other, name in known if _same(value, other)) for value in values]


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if callable(a) and not dataclasses.is_dataclass(a):
        return False
    return type(a) is type(b) and label(a) == label(b)


class TrialTable:
    """Rows of trials as a data frame, with the methods shared by all result tables."""

    frame: pl.DataFrame
    axes: list[str]

    @property
    def measures(self) -> list[str]:
        """The measured quantities."""
        return [name for name in self.frame.columns if name not in (*self.axes, *BOOKKEEPING)]

    def _repr_html_(self) -> str:
        """In a notebook: the frame."""
        return self.frame._repr_html_()

    def pandas(self) -> Any:
        """The frame as a pandas data frame (pandas must be installed)."""
        try:
            import pandas
        except ImportError:
            raise IclabError("pandas() needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.frame.to_dict(as_series=False))

    def __repr__(self) -> str:
        states = self.frame["status"].to_list()
        counts = ", ".join(f"{states.count(state)} {state}" for state in STATES if state in states)
        over = f" over {', '.join(self.axes)}" if self.axes else ""
        return f"{type(self).__name__}({len(states)} trials{over}: {counts}; measured {', '.join(self.measures)})"

    def where(self, *conditions: str) -> Self:
        """The trials that meet all conditions on settings, such as `prompts.outlier_fraction=0.6` or `seed in 0,1`."""
        settings = [name for name in (*self.axes, *SETTINGS) if name in self.frame.columns]
        for text in parted(conditions, settings)[1]:
            raise SpecError(f"where must choose trials by a setting ({', '.join(settings)}), got {text!r}; to "
                            f"choose points by an outcome, averaged over all their seeds, write over_seeds([{text!r}])")
        numbered = filtered(self.frame.with_row_index(NUMBER), conditions)
        return self._of(_require_rows(numbered, conditions, self.frame)[NUMBER].to_list())

    def _of(self, chosen: list[int]) -> Self:
        """A table of these rows."""
        raise NotImplementedError

    def sound(self) -> pl.DataFrame:
        """The trials whose models can be measured: those that trained or got stuck, every seed of them."""
        return self.frame.filter(pl.col("status").is_in(SOUND))

    def over_seeds(self, where: Sequence[str] = ()) -> pl.DataFrame:
        """One row per point: mean and 95 % interval of every quantity over the `seeds` that trained (including stuck
        ones), `of` all seeds tried, and a count of each outcome.

        Conditions on settings (a swept field, `seed`, `test_prompts`) select trials. All others apply to this table
        (`error<0.1`, `error_high<0.1`, `diverged=0`), so no seed is dropped from a mean because of its outcome.
        """
        on_settings, on_means = parted(where, (*self.axes, *SETTINGS))
        trials = filtered(self.frame, on_settings)
        if trials.is_empty():
            return trials.select(self.axes)
        groups = trials.group_by(self.axes, maintain_order=True) if self.axes else [((), trials)]
        means = pl.DataFrame([self._averaged(dict(zip(self.axes, point, strict=True)), rows) for point, rows in groups],
                             infer_schema_length=None, strict=False)
        for name in (RowFilter.of(text).column for text in on_means):
            require(name in means.columns or name not in self.frame.columns, "where", name,
                    f"not choose seeds by their outcome (filter on the counts instead: {', '.join(STATES)})")
        return filtered(means, on_means)

    def _averaged(self, point: dict[str, Any], trials: pl.DataFrame) -> dict[str, Any]:
        """The row of one point."""
        states = trials["status"].to_list()
        sound = trials.filter(pl.col("status").is_in(SOUND))
        row = point | {"seeds": len(sound), "of": len(trials)}
        for name in self.measures:
            values = sound[name].drop_nulls().to_numpy()
            interval = seed_interval(values, within=RANGES.get(name)) if len(values) else (None, None, None)
            row |= {name: interval[0], f"{name}_low": interval[1], f"{name}_high": interval[2]}
        return row | {state: states.count(state) for state in STATES}


@dataclass(frozen=True, repr=False)
class Results(TrialTable):
    """What a sweep measured: one row per trial."""

    sweep: Sweep
    trials: list[Trial]
    rows: list[dict[str, Any]]
    frame: pl.DataFrame = field(init=False)
    axes: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", self.sweep.axes)
        columns = {path: labels([_at(trial, path) for trial in self.trials]) for path in self.axes}
        points = [{path: column[i] for path, column in columns.items()} for i in range(len(self.trials))]
        object.__setattr__(self, "frame", _frame(points, self.rows))

    def _of(self, chosen: list[int]) -> Self:
        return type(self)(self.sweep, [self.trials[i] for i in chosen], [self.rows[i] for i in chosen])

    @property
    def counts(self) -> dict[str, int]:
        """How many trials trained, got stuck, diverged and failed."""
        states = self.frame["status"].to_list()
        return {state: states.count(state) for state in STATES}

    @property
    def left_out(self) -> dict[str, list[str]]:
        """Quantities that were not measured, and the prompt families they do not apply to."""
        tests = {type(trial.test).__name__: trial.test for trial in self.trials}
        lacking = {str(name): [family for family, test in tests.items() if not applies(name, test)]
                   for name in self.sweep.measure}
        return {name: families for name, families in lacking.items() if families}


def _at(trial: Trial, path: str) -> Any:
    """The value of a swept field in a trial; the base's value if its point does not set it."""
    return trial.point[path] if path in trial.point else trial.fields().get(path)


@dataclass(frozen=True, repr=False)
class Stored(TrialTable):
    """All measurements in a store; `axes` are the fields in which its rows differ."""

    frame: pl.DataFrame
    axes: list[str]
    chosen_by: tuple[str, ...] = ()
    """Conditions on outcomes that selected these trials."""

    def _of(self, chosen: list[int]) -> Self:
        return dataclasses.replace(self, frame=self.frame[chosen])

    def sound(self) -> pl.DataFrame:
        """As in `TrialTable`; refused if trials were selected by outcome, which would bias what is made of them."""
        self._require_all_seeds("a plot", "choose by settings only")
        return super().sound()

    def over_seeds(self, where: Sequence[str] = ()) -> pl.DataFrame:
        """As in `TrialTable`; refused if trials were selected by outcome, which would bias the means."""
        self._require_all_seeds("over_seeds", "give that condition to over_seeds")
        return super().over_seeds(where)

    def _require_all_seeds(self, name: str, advice: str) -> None:
        if self.chosen_by:
            raise SpecError(f"{name} must average all seeds, got trials chosen by {', '.join(self.chosen_by)!r}; "
                            f"{advice}")


def stored_results(place: str | Path | Store, where: Sequence[str] = (), every_field: bool = False) -> Stored:
    """The latest result of each setting in a store, for trials that meet the `where` conditions, such as `error<0.1`.

    Columns are the fields in which the rows differ, or `every_field`.
    """
    frame, fields = _read(place)
    chosen = _require_rows(filtered(frame, where), where, frame)
    _, on_outcomes = parted(where, (*fields, *SETTINGS))
    return _table(chosen, fields, every_field, tuple(on_outcomes))


def stored_over_seeds(place: str | Path | Store, where: Sequence[str] = (), every_field: bool = False
                      ) -> pl.DataFrame:
    """The results in a store as means over seeds; `where` works as in `TrialTable.over_seeds`."""
    frame, fields = _read(place)
    on_settings, on_means = parted(where, (*fields, *SETTINGS))
    chosen = _require_rows(filtered(frame, on_settings), where, frame)
    return _require_rows(_table(chosen, fields, every_field).over_seeds(on_means), where, frame)


def _require_rows(rows: pl.DataFrame, where: Sequence[str], of: pl.DataFrame) -> pl.DataFrame:
    """Refuse conditions that leave no rows."""
    if rows.is_empty():
        raise IclabError(f"where must leave at least one row, got {', '.join(where)!r}, which leaves none of "
                         f"{len(of)} trials")
    return rows


def _read(place: str | Path | Store) -> tuple[pl.DataFrame, list[str]]:
    """Every trial in a store with all its fields, and the field names."""
    store = place if isinstance(place, Store) else Store(place)
    latest: dict[Any, dict[str, Any]] = {}
    readable = [row for row in store.all_rows() if row.keys() >= {"fields", "seed", "test_prompts", "finished"}]
    for row in sorted(readable, key=lambda row: (row["status"] != "failed", row["finished"])):
        # One setting may have been measured several times, for different quantities: combine those of the same run.
        # A later row overrides an earlier one for every quantity it measured, even if the value is null.
        values = {name: row.get(name) for name in json.loads(row.get("measured") or "[]")}
        values |= {name: value for name, value in row.items() if value is not None}
        setting = (row["fields"], row["seed"], row["test_prompts"])
        before = latest.get(setting, {})
        latest[setting] = (before if before.get("run") == row.get("run") else {}) | values
    rows = list(latest.values())
    if not rows:
        broken = len(store.damaged())
        none = "none" if not broken else f"none that can be read ({broken} files are damaged)"
        raise IclabError(f"store must hold results of a sweep, got {store.files.place!r}, which has {none}")
    fields = [{path: label(value) if not isinstance(value, (list, dict)) else json.dumps(value)
               for path, value in json.loads(row["fields"]).items()} for row in rows]
    names = list(dict.fromkeys(name for row_fields in fields for name in row_fields))
    return _frame([{name: row_fields.get(name) for name in names} for row_fields in fields], rows), names


def _table(frame: pl.DataFrame, names: list[str], every_field: bool, chosen_by: tuple[str, ...] = ()) -> Stored:
    """The trials with only the columns in which they differ, or `every_field`."""
    follows = {name for name in names if _follows(frame, name)}
    # A copy of the seed is not an axis: every trial would be a separate point, and every mean over one seed.
    axes = [name for name in names if not (name in follows and name in SEEDS)] if every_field else \
        [name for name in names if frame[name].n_unique() > 1 and name not in follows]
    axes = [*axes, *(["test_prompts"] if frame["test_prompts"].n_unique() > 1 else [])]
    columns = [*axes, *(name for name in frame.columns if name not in (*names, *axes))]
    return Stored(frame.select(columns), axes, chosen_by)


def _follows(frame: pl.DataFrame, name: str) -> bool:
    """Whether a field merely repeats another: a test field its training field, a run's seed the sweep's seed."""
    source = "seed" if name in SEEDS else "prompts." + name.removeprefix("test.")
    return source != name and source in frame.columns and frame[source].equals(frame[name])


def _frame(points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """One row per trial: its point, seed, status and measurements, and the run it came from."""
    measured = [name for row in rows for name in row if name not in BOOKKEEPING]
    names = ["seed", "status", *dict.fromkeys(measured), "reason", "test_prompts", "sweep", "run", "seconds"]
    columns: dict[str, list[Any]] = {path: [point[path] for point in points] for path in (points[0] if points else [])}
    columns |= {name: [row.get(name) for row in rows] for name in names}
    return pl.DataFrame({name: _column(values) for name, values in columns.items()}, strict=False)


def _column(values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) > 1 and not kinds <= {int, float}:
        values = [None if value is None else str(value) for value in values]
    return pl.Series([float(v) if kinds == {int, float} and v is not None else v for v in values], strict=False)
