"""What regression prompts allow: ridge, the Bayes estimator of a pool, Huber's, and steps of gradient descent.

Each is a predictor (`iclab.probes.error_rate`): a batch of prompts to one answer each. With `sees="clean"` it is told
which examples are poisoned and leaves them out: a floor for every model that must find out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy import stats
from scipy.special import softmax

from iclab.core.errors import require
from iclab.prompts.prompt import Prompt
from iclab.prompts.regression import Regression

SEES = ("all", "clean")
HUBER_STEPS, HUBER_THRESHOLD = 30, 1.345
"""Reweighted fits, and the residual (in sigmas) from which weights fall: 95 % efficient if noise is normal."""

Examples = tuple[Float[np.ndarray, "batch l dimension"], Float[np.ndarray, "batch l"], Float[np.ndarray, "batch l"],
                 Float[np.ndarray, "batch dimension"]]


def examples_of(batch: Prompt, sees: str) -> Examples:
    """Inputs, labels and weights (1, or 0 for an example left out) of the context, and the query."""
    require(sees in SEES, "sees", sees, f"be one of {', '.join(SEES)}")
    x, y = np.asarray(batch.x, float), np.asarray(batch.y, float)
    used = ~np.asarray(batch.truth.outlier)[:, :-1] if sees == "clean" else np.ones(y[:, :-1].shape)
    return x[:, :-1], y[:, :-1], np.asarray(used, float), x[:, -1]


def _penalised(x: Any, y: Any, weights: Any, penalty: float) -> Float[np.ndarray, "batch dimension"]:
    """`argmin_w sum_i weights_i (y_i - w.x_i)^2 + penalty |w|^2` of every prompt."""
    moment = np.einsum("bi,bid,bie->bde", weights, x, x) + penalty * np.eye(x.shape[2])
    return np.linalg.solve(moment, np.einsum("bi,bi,bid->bd", weights, y, x)[..., None])[..., 0]


def best_penalty(prompts: Regression) -> float:
    """`sigma^2 signals`: with it, ridge is the posterior mean of Gaussian tasks."""
    return max(float(prompts.noise) ** 2, 1e-12) * prompts.signals


def ridge_predictor(prompts: Regression, *, penalty: float | None = None, sees: str = "all"
                    ) -> Callable[[Prompt], Any]:
    """Ridge regression on the context, with the optimal penalty unless one is given."""
    used_penalty = best_penalty(prompts) if penalty is None else penalty
    require(used_penalty > 0, "penalty", used_penalty, "be above 0")

    def predict(batch: Prompt) -> Float[np.ndarray, " batch"]:
        x, y, used, query = examples_of(batch, sees)
        return np.einsum("bd,bd->b", _penalised(x, y, used, used_penalty), query)

    return predict


def pool_predictor(prompts: Regression, *, sees: str = "all") -> Callable[[Prompt], Any]:
    """The Bayes estimator that knows the pool: the mean of its tasks, weighted by the likelihood of the context."""
    tasks, variance = prompts.pool_weights().astype(float), max(float(prompts.noise) ** 2, 1e-12)

    def predict(batch: Prompt) -> Float[np.ndarray, " batch"]:
        x, y, used, query = examples_of(batch, sees)
        misfit = (used[:, None] * (y[:, None] - np.einsum("kd,bid->bki", tasks, x)) ** 2).sum(axis=2)
        return np.einsum("bk,kd,bd->b", softmax(-misfit / (2 * variance), axis=1), tasks, query)

    return predict


def huber_predictor(prompts: Regression) -> Callable[[Prompt], Any]:
    """Huber's regression with the optimal ridge penalty, by reweighted fits; it knows the scale of the noise."""
    penalty, threshold = best_penalty(prompts), HUBER_THRESHOLD * max(float(prompts.noise), 1e-6)

    def predict(batch: Prompt) -> Float[np.ndarray, " batch"]:
        x, y, used, query = examples_of(batch, "all")
        weights = used
        for _ in range(HUBER_STEPS):
            fitted = _penalised(x, y, weights, penalty)
            residual = np.abs(y - np.einsum("bd,bid->bi", fitted, x))
            weights = np.minimum(1.0, threshold / np.maximum(residual, 1e-12))
        return np.einsum("bd,bd->b", fitted, query)

    return predict


def clean_step_rate(prompts: Regression) -> float:
    """The rate of the best single step of gradient descent on the clean examples, for tasks without a pool: what a gate
    makes of linear attention if it lets in all clean examples and no poisoned one."""
    length, share = prompts.prompt_length, 1.0 - float(prompts.outlier_fraction)
    counts = np.arange(1, length + 1)
    chances = stats.binom.pmf(counts, length, share)
    spread = 1 + (1 + prompts.signals * (1 + float(prompts.noise) ** 2)) / counts
    return float(chances.sum() / (chances * spread).sum())


def descent_predictor(preconditioner: Any = 1.0, *, steps: int = 1, sees: str = "all") -> Callable[[Prompt], Any]:
    """Steps of gradient descent from 0 on `1/2 mean_i (y_i - w.x_i)^2`, each multiplied by a number or a matrix."""
    require(np.ndim(preconditioner) in (0, 2), "preconditioner", np.shape(preconditioner), "be a number or a matrix")
    require(steps >= 1, "steps", steps, "be a whole number >= 1")

    def predict(batch: Prompt) -> Float[np.ndarray, " batch"]:
        x, y, used, query = examples_of(batch, sees)
        matrix = preconditioner * np.eye(x.shape[2]) if np.ndim(preconditioner) == 0 else np.asarray(preconditioner)
        count, weights = np.maximum(used.sum(axis=1), 1)[:, None], np.zeros_like(query)
        for _ in range(steps):
            residual = used * (y - np.einsum("bd,bid->bi", weights, x))
            weights = weights + (np.einsum("bi,bid->bd", residual, x) / count) @ matrix.T
        return np.einsum("bd,bd->b", weights, query)

    return predict
