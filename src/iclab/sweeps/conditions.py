"""Conditions on the rows of a table, such as `error<0.1` or `model.member=mamba`."""

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
        match = re.fullmatch(r"\s*([\w.]+)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*", text)
        if match is None:
            raise SpecError(f"where must be FIELD=VALUE, or with <, <=, >, >=, !=, got {text!r}")
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
        if compared == "none" and relation in ("=", "==", "!="):
            frame = frame.filter(column.is_not_null() if relation == "!=" else column.is_null())
            continue
        if frame[name].dtype.is_numeric():
            try:
                value: Any = float(compared)
            except ValueError:
                raise SpecError(f"where must compare {name} with a number, got {compared!r}") from None
        else:
            column, value = column.cast(pl.String), compared
        frame = frame.filter(RELATIONS[relation](column, value))
    return frame
