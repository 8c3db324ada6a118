"""Power laws: how long training takes, and the exponent with which a number grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.probes.error_rate import Interval
from iclab.training.population import Population
from iclab.training.trained import Trained


def iterations_to(trained: Trained | Population, target: float) -> float:
    """The first step at which the loss, trained or predicted, was at most `target`, between two records by a line; NaN
    if never."""
    below = np.flatnonzero(trained.loss <= target)
    if len(below) == 0:
        return float("nan")
    last = below[0]
    if last == 0:
        return float(trained.steps[0])
    step = (trained.loss[last - 1] - target) / (trained.loss[last - 1] - trained.loss[last])
    return float(trained.steps[last - 1] + step * (trained.steps[last] - trained.steps[last - 1]))


def first_below(steps: Any, values: Float[np.ndarray, " records"], target: float) -> float:
    """The step at which values first fall to `target` and stay there, between two records by a line; NaN if never."""
    above = np.flatnonzero(~(values <= target))
    if len(above) == 0:
        return float(steps[0])
    last = above[-1]
    if last == len(values) - 1:
        return float("nan")
    share = (values[last] - target) / (values[last] - values[last + 1])
    return float(steps[last] + share * (steps[last + 1] - steps[last]))


def exponent(x: Sequence[float], counts: Float[np.ndarray, "seeds points"], draws: int = 2000) -> Interval:
    """Slope of log counts on log x, with a bootstrap interval over seeds; NaN where a count is missing."""
    if not np.isfinite(counts).all():
        return Interval(np.nan, np.nan, np.nan)
    slopes = np.array([np.polyfit(np.log(x), np.log(row), 1)[0] for row in counts])
    picks = np.random.default_rng(0).integers(len(slopes), size=(draws, len(slopes)))
    low, high = np.percentile(slopes[picks].mean(axis=1), [2.5, 97.5])
    return Interval(float(slopes.mean()), float(low), float(high))
