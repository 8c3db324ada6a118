"""A number along one axis that grows: how fast it changes, and where it tends.

The exponent is the slope of log y on log x, one per seed. The limit is the c of

    y = c + a x^-b,   c >= 0, 1/4 <= |b| <= 4,

fitted to the mean over seeds so that relative residuals are least; with b < 0 and a > 0 the number grows. The
interval of c is Student's, with the spread of the jackknife's pseudo-values, n c - (n - 1) c_i for the fit without seed
i, around c. Five points and three parameters: a limit is a reading of these sizes, not a proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar, nnls

from iclab.figures.plots import Curve, Panel, Plot, curve_figure
from iclab.lab.claims import Check, between, short, worst
from iclab.lab.entries import Table
from iclab.lab.estimates import Ends, Estimate, Mean, Power, Rate, power
from iclab.lab.powers import TOLERANCE, in_words
from iclab.probes.error_rate import UNIT, seed_interval

HEADER = ("grows", "measured", "from", "to", "exponent", "tends to", "part")
"""Columns of every table of limits, by which the report finds them."""
BETWEEN = "; "
"""Between the places of the parts that judge a number."""
POWERS = (0.25, 4.0)
OPEN = "The interval over seeds contains the threshold; more seeds or sizes would decide."
"""What is said of a part that stays inconclusive for no other reason."""
FEWEST = 4
"""Points with which three parameters are fitted."""


class Fit(NamedTuple):
    """A constant plus a power: `constant + slope * x^-power`."""

    constant: float
    slope: float
    power: float

    def at(self, x: Any) -> Any:
        """Its values."""
        return self.constant + self.slope * np.asarray(x, float) ** -self.power


NO_FIT = Fit(float("nan"), float("nan"), float("nan"))


def fit(x: Sequence[float], y: Float[np.ndarray, " points"], signs: Sequence[int] = (1, -1)) -> Fit:
    """The best constant plus power, b of these signs; NaN with too few points, or where some are missing."""
    if len(x) < FEWEST or not np.isfinite(y).all() or not (y > 0).any():
        return NO_FIT
    scaled, weights = np.asarray(x, float) / max(x), 1 / np.maximum(y, y.max() * 1e-9)

    def solved(exponent: float) -> tuple[float, float, float]:
        """Residual, constant and slope, which is negative only where the number tends to the constant from below."""
        found = []
        for sign in (1.0, -1.0) if exponent > 0 else (1.0,):
            columns = np.stack([np.ones(len(y)), sign * scaled**-exponent], axis=1) * weights[:, None]
            (constant, slope), residual = nnls(columns, y * weights)
            found.append((float(residual), float(constant), float(sign * slope)))
        return min(found)

    def best(sign: int) -> tuple[float, float]:
        """Residual and exponent."""
        grid = sign * np.geomspace(*POWERS, 20)
        at = int(np.argmin([solved(exponent)[0] for exponent in grid]))
        ends = sorted((grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]))
        refined = minimize_scalar(lambda exponent: solved(exponent)[0], bounds=ends, method="bounded")
        return float(refined.fun), float(refined.x)

    _, exponent = min(best(sign) for sign in signs)
    _, constant, slope = solved(exponent)
    return Fit(constant, slope * float(max(x)) ** exponent, exponent)


@dataclass(frozen=True, eq=False)
class Limit:
    """The constant of a fit, with the jackknife's pseudo-values; an estimate."""

    value: float
    pseudo: Float[np.ndarray, " seeds"]
    within: Ends | None = None
    """The range in which the number is known to lie."""
    kind: str = "mean"

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.pseudo)

    @property
    def detail(self) -> dict[str, float]:
        """Nothing else."""
        return {}

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Student's, around the constant of the fit to all seeds, cut to the number's range."""
        mean, low, high = seed_interval(self.pseudo, level)
        least, most = self.within or (-np.inf, np.inf)
        return max(self.value + low - mean, least), min(self.value + high - mean, most)

    def less(self, times: float, other: Limit) -> Limit:
        """This limit less so many times another one over the same seeds."""
        return Limit(self.value - times * other.value, self.pseudo - times * other.pseudo)


@dataclass(frozen=True, eq=False)
class Along:
    """A number measured along one axis, from the smallest size to the largest."""

    what: str
    """What is measured: `error on all tasks`."""
    axis: str
    """What grows."""
    values: Sequence[float]
    measured: Float[np.ndarray, "seeds points"]
    least: float = 0.0
    """What a number counts for at least: the error of one prompt, where the test showed none."""
    within: Ends | None = None
    """The range in which the number is known to lie."""
    prompts: int | None = None
    """If it is an error rate: on how many prompts of its own each was measured."""
    above: Sequence[float] = ()
    """What was subtracted from the error rate at each point."""

    @cached_property
    def raised(self) -> Float[np.ndarray, "seeds points"]:
        """What is fitted: every number at least `least`."""
        return np.maximum(np.asarray(self.measured, float), self.least)

    @cached_property
    def exponent(self) -> Power:
        """The slope of its logarithm."""
        return power(self.values, self.raised)

    @cached_property
    def fit(self) -> Fit:
        """A constant plus a power, for the mean over seeds."""
        return fit(self.values, self.raised.mean(axis=0))

    @cached_property
    def limit(self) -> Limit:
        """The constant of the fit; where the number grows, that of its start."""
        seeds, signs = len(self.raised), (1 if self.fit.power > 0 else -1,)
        without = [fit(self.values, np.delete(self.raised, i, axis=0).mean(axis=0), signs).constant
                   for i in range(seeds)]
        within = self.within if self.prompts is None or self.above else UNIT
        return Limit(self.fit.constant, seeds * self.fit.constant - (seeds - 1) * np.array(without), within)

    @property
    def last(self) -> Estimate:
        """The number at the largest size."""
        return self.estimates[-1]

    @cached_property
    def estimates(self) -> list[Estimate]:
        """The number at every size."""
        columns, above = np.asarray(self.measured, float).T, self.above or [0.0] * len(self.values)
        if self.prompts is None:
            return [Mean(column, self.within) for column in columns]
        return [Rate(column + less, self.prompts, less) for column, less in zip(columns, above, strict=True)]

    @property
    def tends(self) -> str:
        """Where it tends, in words that follow from the exponent's interval and the fit's."""
        low, high = self.exponent.interval()
        least, most = self.limit.interval()
        if not np.isfinite([low, high, least, most]).all():
            return "not known"
        if low <= 0 <= high:
            return f"no trend, near {short(float(self.raised.mean()))}"
        if self.fit.power < 0 and low > 0:
            return "grows"
        if abs(self.fit.power) < 1.01 * POWERS[0]:
            return "not known: too slow"
        return "0" if least <= self.least else f"{short(self.limit.value)} [{short(least)}, {short(most)}]"

    def row(self, place: str) -> tuple[str, ...]:
        """A row under `HEADER`, with the part that judges it."""
        means = np.asarray(self.measured, float).mean(axis=0)
        first, last = (f"{short(float(means[i]))} at {self.values[i]:.3g}" for i in (0, -1))
        exponent = in_words(self.exponent) if np.isfinite(self.exponent.value) else "not known"
        return self.axis, self.what, first, last, exponent, self.tends, place

    def vanishes(self, allowed: float) -> list[Check]:
        """It falls, and is small at the largest size."""
        return [self.falls(), self.ends(allowed)]

    def ends(self, allowed: float) -> Check:
        """It is small at the largest size."""
        return Check(f"{self.what} at {self.axis} {self.values[-1]:.3g}", self.last, "<=", allowed)

    def falls(self, most: float = 0.0) -> Check:
        """Its exponent is below 0, or at most `most`."""
        return Check(self._exponent_of, self.exponent, "<" if most == 0 else "<=", most)

    def falls_at_most(self, slowly: float) -> Check:
        """Its exponent is not below `-slowly`."""
        return Check(self._exponent_of, self.exponent, ">=", -slowly)

    def follows(self, theory: float, tolerance: float = TOLERANCE) -> list[Check]:
        """Its exponent is that of a law."""
        return between(f"{self._exponent_of} (law {theory:.3g})", self.exponent, theory - tolerance, theory + tolerance)

    def settles(self, low: float, high: float) -> list[Check]:
        """Its limit lies between the two."""
        return between(f"limit of {self.what} as {self.axis} grows", self.limit, low, high)

    def stays_below(self, allowed: float) -> Check:
        """It is small at every size."""
        return worst(f"largest {self.what} ({{}})", self._points(), "<=", allowed)

    def stays_above(self, least: float) -> Check:
        """It is not small at any size."""
        return worst(f"least {self.what} ({{}})", self._points(), ">=", least)

    def _points(self) -> list[tuple[str, Estimate]]:
        return [(f"{self.axis} {value:.3g}", estimate)
                for value, estimate in zip(self.values, self.estimates, strict=True)]

    @property
    def _exponent_of(self) -> str:
        return f"exponent of {self.axis} in {self.what}"

    def panel(self, title: str) -> Panel:
        """The numbers, with the fit."""
        return Panel(title, list(self.values), [Curve("measured", self.raised)],
                     lines=[("fit", self.fit.at(self.values))] if np.isfinite(self.fit.constant) else [],
                     x_label=self.axis, y_label=self.what)


Numbers = dict[str, Along]
"""By the place of the part that judges them."""


def pictured(name: str, title: str, numbers: Numbers) -> list[Plot]:
    """All numbers of an entry that have enough points for a fit, on logarithmic axes; no picture if none has."""
    panels = [along.panel(place) for place, along in numbers.items() if len(along.values) >= FEWEST]
    return [curve_figure(name, title, "Each number along its axis; dashed: the fitted constant plus a power.", panels,
                         "", "", log_x=True, log_y=True, share_y=False)] if panels else []


def tabulated(name: str, numbers: Numbers) -> Table:
    """The rows of all numbers; a number that several parts judge has one row, with all their places."""
    places: dict[int, list[str]] = {}
    for place, along in numbers.items():
        places.setdefault(id(along), []).append(place)
    distinct = {id(along): along for along in numbers.values()}
    return Table(name, "How fast, and where to", HEADER,
                 [along.row(BETWEEN.join(places[key])) for key, along in distinct.items()])


def told(numbers: Numbers) -> str:
    """All numbers in words."""
    rows = [along.row("") for along in dict.fromkeys(numbers.values())]
    return " ".join(f"{what[:1].upper()}{what[1:]}: {first}, {last} ({axis}), exponent {exponent}, tends to: {tends}."
                    for axis, what, first, last, exponent, tends, _ in rows)
