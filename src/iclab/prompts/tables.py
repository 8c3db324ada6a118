"""Prompts from a user's own table: a CSV file with a column of labels and columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import polars as pl
from jaxtyping import Float

from iclab.core.errors import IclabError, SpecError, did_you_mean, require, shown
from iclab.core.files import read_file
from iclab.prompts.arrays import ARGUMENTS, ArrayPrompts, from_labelled, require_arguments


@overload
def from_csv(path: str | Path, *, label: str, holdout: None = None, **options: Any) -> ArrayPrompts: ...


@overload
def from_csv(path: str | Path, *, label: str, holdout: float, **options: Any) -> tuple[ArrayPrompts, ArrayPrompts]: ...


def from_csv(path: str | Path, *, label: str, columns: Sequence[str] | None = None, drop: Sequence[str] = (),
             standardize: bool = False, holdout: float | None = None, **options: Any
             ) -> ArrayPrompts | tuple[ArrayPrompts, ArrayPrompts]:
    """Turn a CSV file with a header into prompts, or with `holdout` into a pair: prompts to train on and to test on.

    `label` names the column of classes, `columns` those of the inputs, in this order (by default all others but those
    in `drop`, such as an id).
    `standardize`, `holdout` and all other keywords are those of `from_labelled`; `perturb` gets the chosen columns.
    Every value must be there, and those of inputs must be numbers.
    """
    require_arguments(options, ("columns", "drop", *ARGUMENTS))
    for field, value in (("columns", columns), ("drop", drop)):
        require(not isinstance(value, str), field, value, "be a list of names")
    require(columns is None or not drop, "drop", drop, "be left out where columns are given")
    table = _read(path)
    _require_header(table, path)
    chosen = [name for name in table.columns if name not in (label, *drop)] if columns is None else list(columns)
    for field, names in (("label", [label]), ("columns", chosen), ("drop", drop)):
        for name in names:
            if name not in table.columns:
                raise SpecError(f"{field} must be in the header of {str(path)!r}, got {shown(name)}"
                                f"{did_you_mean(name, table.columns)}; it has {', '.join(table.columns)}")
    require(len(chosen) > 0, "columns", chosen, "name at least one column")
    require(len(set(chosen)) == len(chosen), "columns", chosen, "be different")
    require(label not in chosen, "columns", label, "not name the column of labels")
    labels = _complete(table[label])
    return from_labelled(np.stack([_numbers(table[name]) for name in chosen], axis=1), np.array(labels.to_list()),
                         standardize=standardize, holdout=holdout, names=chosen, **options)


def _read(path: str | Path) -> pl.DataFrame:
    try:
        return pl.read_csv(read_file(path, "CSV file"), infer_schema_length=None)
    except pl.exceptions.PolarsError as error:
        commas = "more fields than defined" in str(error)
        raise IclabError(f"CSV file {str(path)!r} cannot be read: " + (
            "a row has more fields than the header; commas must separate fields, and decimals have a point" if commas
            else str(error).splitlines()[0])) from None


def _require_header(table: pl.DataFrame, path: str | Path) -> None:
    """Refuse a file whose first line names no columns, or separates them by something else than commas."""
    first = table.columns
    for separator, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(first) == 1 and separator in first[0]:
            raise IclabError(f"CSV file {str(path)!r} must separate fields by commas, got {shown(first[0])}, with "
                             f"{word}; write it anew with commas")
    if all(_is_number(name) for name in first):
        raise IclabError(f"CSV file {str(path)!r} must begin with a line that names its columns, got "
                         f"{shown(', '.join(first))}, which looks like data")


def _is_number(name: str) -> bool:
    try:
        float(name.partition("_duplicated_")[0])
    except ValueError:
        return False
    return True


def _complete(column: pl.Series) -> pl.Series:
    """The column, which must have a value in every row."""
    if column.null_count() > 0:
        raise IclabError(f"column {column.name!r} must have a value in every row, got none in row "
                         f"{_first(column.is_null()) + 1} of the data; remove such rows, or fill them in")
    return column


def _numbers(column: pl.Series) -> Float[np.ndarray, " rows"]:
    """The numbers of a column, which must all be there and finite."""
    column = _complete(column)
    numbers = column.cast(pl.Float64, strict=False) if column.dtype != pl.Boolean else None
    good = column.is_null() if numbers is None else numbers.is_finite().fill_null(False)
    if numbers is None or not good.all():
        row = _first(~good)
        raise IclabError(f"column {column.name!r} must hold finite numbers, got {shown(column[row])} in row {row + 1} "
                         "of the data; leave it out with drop, choose others with columns, or make numbers of it")
    return numbers.to_numpy()


def _first(marked: pl.Series) -> int:
    """The first marked row."""
    return int(marked.arg_true()[0])
