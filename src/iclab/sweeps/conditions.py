"""Conditions on the rows of a table, such as `error<0.1`, `model.member=mamba` or `seed in 0,1`."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import polars as pl

from iclab.core.errors import SpecError

RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "!=": lambda a, b: a.ne_missing(b),
    "==": lambda a, b: a == b,
    "=": lambda a, b: a == b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
}


class RowFilter(NamedTuple):
    """A column, a relation, and the value to compare with, as text."""

    column: str
    relation: str
    value: str

    @classmethod
    def of(cls, text: str) -> RowFilter:
        """Parse a condition."""
        match = re.fullmatch(r"\s*([\w.]+)\s*(<=|>=|!=|==|=|<|>|(?<=\s)in(?=\s))\s*(.*?)\s*", text)
        if match is None:
            raise SpecError("where must be FIELD=VALUE, or with <, <=, >, >=, !=, or FIELD in VALUE,VALUE, got "
                            f"{text!r}")
        return cls(*match.groups())


def parted(where: Sequence[str], columns: Collection[str]) -> tuple[list[str], list[str]]:
    """Split conditions into those on these columns and the rest."""
    on_columns = [RowFilter.of(text).column in columns for text in where]
    return ([text for text, matches in zip(where, on_columns, strict=True) if matches],
            [text for text, matches in zip(where, on_columns, strict=True) if not matches])


def filtered(frame: pl.DataFrame, where: Sequence[str]) -> pl.DataFrame:
    """The rows for which every condition `FIELD RELATION VALUE` holds."""
    for text in where:
        name, relation, compared = RowFilter.of(text)
        if name not in frame.columns:
            raise SpecError(f"where must name a column, one of {', '.join(frame.columns)}, got {name!r}")
        column: Any = pl.col(name).fill_nan(None) if frame[name].dtype.is_float() else pl.col(name)
        if relation == "in":
            frame = frame.filter(pl.any_horizontal([_holds(frame, name, column, "=", value.strip())
                                                    for value in compared.split(",")]))
            continue
        frame = frame.filter(_holds(frame, name, column, relation, compared))
    return frame


def _holds(frame: pl.DataFrame, name: str, column: Any, relation: str, compared: str) -> Any:
    """An expression that is true for the rows that satisfy the condition."""
    if compared == "none" and relation in ("=", "==", "!="):
        return column.is_not_null() if relation == "!=" else column.is_null()
    if not frame[name].dtype.is_numeric():
        return RELATIONS[relation](column.cast(pl.String), compared)
    try:
        return RELATIONS[relation](column, float(compared))
    except ValueError:
        raise SpecError(f"where must compare {name} with a number, got {compared!r}") from None
