"""Regions: where a rule holds over settings that a paper leaves open, said in a sentence and drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iclab.figures.heat import verdict_map
from iclab.figures.recipes import Plot
from iclab.lab.claims import Check, judged, short
from iclab.lab.estimates import Estimate


class Axis(NamedTuple):
    """A setting that is varied."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True)
class Region:
    """A rule judged at every pair of values of two axes (a second axis of one value for a line)."""

    rule: str
    """What is judged, in words: `excess over the floor`."""
    x: Axis
    y: Axis
    estimates: Sequence[Sequence[Estimate]]
    """By y, then x."""
    relation: str
    threshold: float
    inside: Callable[[float, float], bool] = lambda x, y: True
    """Whether the premises are met at (x, y)."""
    along: str = ""
    """The quantity that may decide, such as `L kappa_a' / kappa_a`; empty: the first axis."""
    quantity: Callable[[float, float], float] = lambda x, y: x
    where: str = "inside the premises"
    """Which settings `inside` admits, in words."""

    def checks(self) -> list[Check]:
        """The rule in every cell inside the premises."""
        return [Check(f"{self.rule} at {self._cell(i, j)}", self.estimates[i][j], self.relation, self.threshold)
                for i, j in self._cells() if self._inside(i, j)]

    def verdicts(self) -> list[list[str]]:
        """holds, fails, inconclusive or outside of every cell, by y, then x; intervals are simultaneous."""
        results = dict(zip([cell for cell in self._cells() if self._inside(*cell)], judged(self.checks()), strict=True))
        return [[results[i, j].verdict if (i, j) in results else "outside" for j in range(len(self.x.values))]
                for i in range(len(self.y.values))]

    @property
    def sentence(self) -> str:
        """Where the rule holds, computed from the map."""
        verdicts, name = self.verdicts(), self.along or self.x.name
        cells = [(self.quantity(self.x.values[j], self.y.values[i]), verdicts[i][j]) for i, j in self._cells()
                 if verdicts[i][j] != "outside"]
        if not cells:
            return f"No setting tried for {self.x.name} and {self.y.name} is {self.where}."
        count = sum(verdict == "holds" for _, verdict in cells)
        if count == len(cells):
            return f"The rule holds in all {count} settings {self.where}."
        if count == 0:
            return f"The rule holds in none of {len(cells)} settings {self.where}."
        above, below = _threshold(cells), _threshold([(-value, verdict) for value, verdict in cells])
        (holds, fails), sign, sides = (above, 1, (">=", "<=")) if above[0] is not None else (below, -1, ("<=", ">="))
        if holds is None:
            return (f"The rule holds in {count} of {len(cells)} settings {self.where}; no value of {name} "
                    "separates them from the others.")
        rest = sum(verdict == "holds" and sign * value < holds for value, verdict in cells)
        text = f"The rule holds for {name} {sides[0]} {short(sign * holds)}"
        text += f" and fails for {name} {sides[1]} {short(sign * fails)}" if fails is not None else ""
        return text + (f"; it also holds in {rest} settings beyond." if rest else ".")

    def plot(self, name: str, title: str, caption: str) -> Plot:
        """The map: numbers and verdicts, by letter as well as by colour."""
        cells: list[list[Any]] = [[estimate.value for estimate in row] for row in self.estimates]
        return verdict_map(name, title, f"{caption} {self.sentence}", self.x.name, self.x.values, self.y.name,
                           self.y.values, np.array(cells), self.verdicts(),
                           f"{self.rule} {self.relation} {self.threshold:g}")

    def _cells(self) -> list[tuple[int, int]]:
        return [(i, j) for i in range(len(self.y.values)) for j in range(len(self.x.values))]

    def _inside(self, i: int, j: int) -> bool:
        return bool(self.inside(self.x.values[j], self.y.values[i]))

    def _cell(self, i: int, j: int) -> str:
        second = f", {self.y.name} {self.y.values[i]:g}" if len(self.y.values) > 1 else ""
        return f"{self.x.name} {self.x.values[j]:g}{second}"


def _threshold(cells: Sequence[tuple[float, str]]) -> tuple[float | None, float | None]:
    """The least value from which on all hold, and the largest up to which all fail; None where there is none."""
    values = sorted({value for value, _ in cells})
    holds = next((value for value in values if all(v == "holds" for at, v in cells if at >= value)), None)
    fails = next((value for value in reversed(values) if all(v == "fails" for at, v in cells if at <= value)), None)
    return holds, fails


