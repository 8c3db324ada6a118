"""Numbers over seeds, with intervals at any level.

| estimate | of | interval |
| --- | --- | --- |
| `Mean` | a number per seed | Student's |
| `Rate` | an error rate per seed, perhaps above a floor | Student's over seeds, or Wilson's over all prompts if wider |
| `Difference` | two models, paired by seed on the same prompts | Student's of the differences |
| `Share` | an outcome per seed that is all or nothing | Clopper and Pearson's |
| `Power` | an exponent, from a regression over all points and seeds | Student's, seeds as groups |

A check needs intervals at a level that depends on how many others its part has, so an estimate keeps what it is
computed from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float
from scipy import stats

from iclab.probes.error_rate import UNIT, Interval, seed_interval, wilson

Ends = tuple[float, float]


class Estimate(Protocol):
    """A number over seeds."""

    @property
    def kind(self) -> str:
        """What it is: mean, rate, difference, share or exponent."""
        ...

    @property
    def value(self) -> float:
        """The number."""
        ...

    @property
    def seeds(self) -> int:
        """How many seeds it is computed from."""
        ...

    @property
    def detail(self) -> dict[str, float]:
        """What else is known about it."""
        ...

    def interval(self, level: float = 0.95) -> Ends:
        """The ends of its confidence interval; NaN if it has none."""
        ...


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean of a number over seeds; `within` is the range in which every value is known to lie."""

    values: Any
    within: Ends | None = None
    kind: str = "mean"

    @property
    def value(self) -> float:
        """The mean."""
        return float(np.mean(self.values))

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.values)

    @property
    def detail(self) -> dict[str, float]:
        """Nothing else: what the values were measured on is not known."""
        return {}

    def interval(self, level: float = 0.95) -> Ends:
        """Student's interval."""
        _, low, high = seed_interval(self.values, level, within=self.within)
        return low, high


@dataclass(frozen=True, eq=False)
class Rate:
    """The mean of an error rate over seeds, each measured on as many prompts of its own, less a constant `above`.

    Spread between seeds and noise of the finite tests are told apart: the variance over seeds is the sum of both, and
    that of a test is p (1 - p) / prompts.
    """

    rates: Any
    prompts: int
    above: float = 0.0
    kind: str = "rate"

    @property
    def value(self) -> float:
        """The mean rate, less `above`."""
        return float(np.mean(self.rates)) - self.above

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.rates)

    @property
    def detail(self) -> dict[str, float]:
        """Standard deviations of a single seed's rate: between seeds, and by its finite test."""
        p = np.asarray(self.rates, float)
        test = float(np.mean(p * (1 - p)) / self.prompts)
        between = float(np.var(p, ddof=1)) - test if len(p) > 1 else float("nan")
        return {"seed_noise": float(np.sqrt(max(between, 0.0))) if between == between else between,
                "test_noise": float(np.sqrt(test))}

    def interval(self, level: float = 0.95) -> Ends:
        """Student's interval over seeds, widened to Wilson's over all prompts: few errors show too little spread."""
        rates = np.asarray(self.rates, float)
        mean, low, high = seed_interval(rates, level, within=UNIT)
        if not np.isfinite([mean, low, high]).all():
            return float("nan"), float("nan")
        total = self.prompts * len(rates)
        least, most = wilson(round(mean * total), total, level)
        return min(low, least) - self.above, max(high, most) - self.above


@dataclass(frozen=True, eq=False)
class Difference:
    """The mean over seeds of the difference of two rates or numbers, each pair measured on the same prompts.

    `prompts` is given for error rates: where no seed shows a difference, it bounds how large one could be unseen.
    """

    first: Any
    second: Any
    prompts: int | None = None
    kind: str = "difference"

    @property
    def value(self) -> float:
        """The mean difference."""
        return float(np.mean(np.asarray(self.first, float) - np.asarray(self.second, float)))

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.first)

    @property
    def detail(self) -> dict[str, float]:
        """The standard deviation of the differences, and what it would be were the two not paired."""
        first, second = np.asarray(self.first, float), np.asarray(self.second, float)
        if len(first) < 2:
            return {}
        return {"paired_noise": float(np.std(first - second, ddof=1)),
                "unpaired_noise": float(np.sqrt(np.var(first, ddof=1) + np.var(second, ddof=1)))}

    def interval(self, level: float = 0.95) -> Ends:
        """Student's interval, at least as wide as what no prompt of all has shown."""
        mean, low, high = seed_interval(np.asarray(self.first, float) - np.asarray(self.second, float), level)
        if self.prompts is None or not np.isfinite([low, high]).all():
            return low, high
        unseen = wilson(0, self.prompts * self.seeds, level)[1]
        return min(low, mean - unseen), max(high, mean + unseen)


@dataclass(frozen=True, eq=False)
class Share:
    """The share of seeds that succeed."""

    successes: Any
    kind: str = "share"

    @property
    def value(self) -> float:
        """The share."""
        return float(np.mean(np.asarray(self.successes, bool)))

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.successes)

    @property
    def detail(self) -> dict[str, float]:
        """How many succeed."""
        return {"successes": float(np.sum(np.asarray(self.successes, bool)))}

    def interval(self, level: float = 0.95) -> Ends:
        """Clopper and Pearson's exact interval."""
        ends = stats.binomtest(int(np.sum(np.asarray(self.successes, bool))), self.seeds).proportion_ci(level, "exact")
        return float(ends.low), float(ends.high)


@dataclass(frozen=True, eq=False)
class Power:
    """The exponent of one setting in a power law, one slope per seed; made by `powers`."""

    slopes: Float[np.ndarray, " seeds"]
    curvatures: Float[np.ndarray, " seeds"] = field(default_factory=lambda: np.zeros(0))
    """The coefficient of the squared logarithm, were it part of the law."""
    kind: str = "exponent"

    @property
    def value(self) -> float:
        """The exponent."""
        return float(np.mean(self.slopes))

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return len(self.slopes)

    @property
    def detail(self) -> dict[str, float]:
        """How much the law is curved, with its 95 % interval: 0 for a pure power."""
        if len(self.curvatures) == 0:
            return {}
        mean, low, high = seed_interval(self.curvatures)
        return {"curvature": mean, "curvature_low": low, "curvature_high": high}

    def interval(self, level: float = 0.95) -> Ends:
        """Student's interval with seeds as groups: points of one seed may err together."""
        _, low, high = seed_interval(self.slopes, level)
        return low, high


def powers(settings: Mapping[str, Sequence[float]], counts: Float[np.ndarray, "seeds points"]) -> dict[str, Power]:
    """The exponents of all settings from one regression of log counts on their logarithms, over all points and seeds.

    `settings[name]` has the setting's value at every point. Every seed has an intercept of its own. All seeds have all
    points, so the common slopes are the means of those of single seeds, and their errors, with seeds as groups, those
    of these means. NaN where a count is missing. A setting with three values or more gets its curvature.
    """
    logs = {name: np.log(np.asarray(values, float)) for name, values in settings.items()}
    centred = {name: values - values.mean() for name, values in logs.items()}
    design = np.stack([np.ones(counts.shape[1]), *centred.values()], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        y = np.log(np.asarray(counts, float))
    slopes = _coefficients(design, y)[:, 1:]
    fitted = {}
    for i, (name, x) in enumerate(centred.items()):
        curved = len(np.unique(x)) > 2
        curvatures = _coefficients(np.column_stack([design, x**2]), y)[:, -1] if curved else np.zeros(0)
        fitted[name] = Power(slopes[:, i], curvatures)
    return fitted


def power(x: Sequence[float], counts: Float[np.ndarray, "seeds points"]) -> Power:
    """The exponent of a single setting."""
    return powers({"x": x}, counts)["x"]


def _coefficients(design: Float[np.ndarray, "points columns"], y: Float[np.ndarray, "seeds points"]
                  ) -> Float[np.ndarray, "seeds columns"]:
    fit = y @ np.linalg.pinv(design).T
    fit[~np.isfinite(y).all(axis=1)] = np.nan
    return fit


class Spread(NamedTuple):
    """Standard deviations of a number measured once per start and data order: what each of them contributes."""

    starts: float
    data: float
    rest: float
    """What neither explains alone: their interplay, and noise of the test."""


def spread(values: Float[np.ndarray, "starts data"]) -> Spread:
    """Two-way analysis of variance of a crossed design, one value per pair; a negative variance counts as 0."""
    rows, columns = values.shape
    by_start, by_data, mean = values.mean(axis=1), values.mean(axis=0), values.mean()
    rest = ((values - by_start[:, None] - by_data[None] + mean) ** 2).sum() / ((rows - 1) * (columns - 1))
    starts, data = by_start.var(ddof=1) - rest / columns, by_data.var(ddof=1) - rest / rows
    return Spread(*(float(np.sqrt(max(variance, 0.0))) for variance in (starts, data, rest)))


def shown(estimate: Estimate, level: float = 0.95) -> Interval:
    """The number and its interval."""
    return Interval(estimate.value, *estimate.interval(level))
