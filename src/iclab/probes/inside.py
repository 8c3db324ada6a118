"""Looking inside: score mass on same- and other-pattern examples, gates by distance and by poison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.errors import require
from iclab.probes.error_rate import average, averages
from iclab.probes.looks import Look, Numbers, Shown
from iclab.prompts.prompt import Family
from iclab.training.trained import Trained


class ScoreMass(NamedTuple):
    """Sum of attention scores in each layer, averaged over prompts (li2025mamba, corollary 1)."""

    same: Float[np.ndarray, "*models layers"]
    """On context examples with the query's relevant pattern."""
    other: Float[np.ndarray, "*models layers"]
    """On the other context examples."""


class GateProfile(NamedTuple):
    """Gate values in each layer by distance from the query, nearest first (li2025mamba, corollary 2)."""

    clean: Float[np.ndarray, "*models layers examples"]
    poisoned: Float[np.ndarray, "*models layers examples"]


class Decay(NamedTuple):
    """A geometric law `first * ratio^(j - 1)` for the gate of the j-th nearest example, and how well it fits."""

    first: float
    ratio: float
    explained: float
    """R^2 of the line through the logarithms; 0 for gates that are all equal."""

    def at(self, count: int) -> Float[np.ndarray, " count"]:
        """The law's values at the nearest `count` examples."""
        return self.first * self.ratio ** np.arange(count)


def score_mass(trained: Trained, prompts: Family, *, count: int = 1000, seed: int = 0) -> ScoreMass:
    """Score mass on same- and other-pattern context examples."""
    return ScoreMass(*average(masses, [trained], [prompts], seed, count)[0, 0])


def score_masses(models: Sequence[Trained], prompts: Family, *, count: int = 1000, seeds: Sequence[int] | None = None
                 ) -> ScoreMass:
    """`score_mass` of many models of one depth."""
    return ScoreMass(*np.moveaxis(averages(masses, models, [prompts], count, seeds)[:, 0], 1, 0))


def _masses(shown: Shown) -> Float[Numbers, "2 layers"]:
    scores, pattern = shown.scores[:, :, :-1], shown.pattern
    same = (pattern[:, :-1] == pattern[:, -1:])[:, None]
    return shown.arrays.stack([(scores * mask).sum(-1).mean(0) for mask in (same, ~same)])


masses = Look(_masses, inside=True)
"""`ScoreMass` of a batch."""


def gate_profile(trained: Trained, prompts: Family, *, count: int = 1000, seed: int = 0) -> GateProfile:
    """Mean gate of clean and of poisoned examples by distance; NaN where there was no such example."""
    return GateProfile(*(part[0] for part in gate_profiles([trained], prompts, count=count, seeds=[seed])))


def gate_profiles(models: Sequence[Trained], prompts: Family, *, count: int = 1000, seeds: Sequence[int] | None = None
                  ) -> GateProfile:
    """`gate_profile` of many models of one depth."""
    clean, number_clean, poisoned, number_poisoned = np.moveaxis(
        averages(_gates_by_distance, models, [prompts], count, seeds)[:, 0], 1, 0)

    def mean(total: np.ndarray, number: np.ndarray) -> np.ndarray:
        return np.where(number > 0, total / np.maximum(number, 1e-12), np.nan)

    return GateProfile(mean(clean, number_clean), mean(poisoned, number_poisoned))


def _gate_sums(shown: Shown) -> Float[Numbers, "4 layers examples"]:
    """For clean and for poisoned examples, nearest first: their gates, summed, and their number, per prompt."""
    require(shown.gates is not None, "the model's intermediates", "none", "have gates for this probe")
    gates, outlier = shown.gates[:, :, -2::-1], shown.outlier[:, -2::-1][:, None]
    number = shown.arrays.ones_like(gates)
    return shown.arrays.stack([(values * mask).mean(0) for mask in (~outlier, outlier) for values in (gates, number)])


_gates_by_distance = Look(_gate_sums, inside=True)


def fit_decay(gates: Float[np.ndarray, " examples"]) -> Decay:
    """The geometric law of gates by distance, nearest first: a line through their logarithms."""
    j, logs = np.arange(len(gates)), np.log(gates)
    slope, start = np.polyfit(j, logs, 1)
    rest = logs - (start + slope * j)
    explained = 1 - rest.var() / logs.var() if logs.var() > 1e-12 else 0.0
    return Decay(float(np.exp(start)), float(np.exp(slope)), float(explained))
