"""Looking inside: score mass on same- and other-pattern examples, gates by distance and by poison."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float


class ScoreMass(NamedTuple):
    """Sum of attention scores in each layer, averaged over prompts (li2025mamba, corollary 1)."""

    same: Float[np.ndarray, " layers"]
    """On context examples with the query's relevant pattern."""
    other: Float[np.ndarray, " layers"]
    """On the other context examples."""


class GateProfile(NamedTuple):
    """Gate values in each layer by distance from the query, nearest first (li2025mamba, corollary 2)."""

    clean: Float[np.ndarray, "layers examples"]
    poisoned: Float[np.ndarray, "layers examples"]


def score_mass(trained: Any, prompts: Any, *, count: int = 1000, seed: int = 0) -> ScoreMass:
    """Score mass on same- and other-pattern context examples."""
    batch = prompts.sample(seed, count)
    _, seen = trained.look(batch)
    scores, pattern = seen.scores[:, :, :-1], np.asarray(batch.pattern)
    same = (pattern[:, :-1] == pattern[:, -1:])[:, None]
    return ScoreMass((scores * same).sum(-1).mean(0), (scores * ~same).sum(-1).mean(0))


def gate_profile(trained: Any, prompts: Any, *, count: int = 1000, seed: int = 0) -> GateProfile:
    """Mean gate of clean and of poisoned examples by distance; NaN where no such example stood."""
    batch = prompts.sample(seed, count)
    _, seen = trained.look(batch)
    gates, outlier = seen.gates[:, :, -2::-1], np.asarray(batch.outlier)[:, -2::-1][:, None]

    def mean_where(mask: np.ndarray) -> np.ndarray:
        number = mask.sum(0)
        return np.where(number > 0, (gates * mask).sum(0) / np.maximum(number, 1), np.nan)

    return GateProfile(mean_where(~outlier), mean_where(outlier))

