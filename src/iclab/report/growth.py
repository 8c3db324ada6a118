"""The section "What changes as the problem grows": the tables of limits of all entries as one, with their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from iclab.lab.claims import PartResult
from iclab.lab.outcomes import Finished
from iclab.papers.scaling.limits import BETWEEN, HEADER


class Grown(NamedTuple):
    """A number along an axis: what grows, what is measured, both ends, exponent, limit, and the parts that judge it."""

    grows: str
    measured: str
    first: str
    last: str
    exponent: str
    tends: str
    parts: list[PartResult]
    """Empty where no part of its entry's claim has that place."""


class Growth(NamedTuple):
    """The rows of an entry."""

    item: Finished
    rows: list[Grown]


def of_entries(finished: Sequence[Finished]) -> list[Growth]:
    """The rows of every entry that has a table of limits."""
    grown = [Growth(item, [_row(item, row) for table in item.outcome.tables if table.header == HEADER
                           for row in table.rows]) for item in finished]
    return [entry for entry in grown if entry.rows]


def _row(item: Finished, row: tuple[Any, ...]) -> Grown:
    grows, measured, first, last, exponent, tends, place = (str(cell) for cell in row)
    parts, places = item.outcome.claim.parts if item.outcome.claim else [], place.split(BETWEEN)
    return Grown(grows, measured, first, last, exponent, tends, [part for part in parts if part.place in places])
