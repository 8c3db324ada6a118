"""Linear attention on regression prompts in closed form: the best preconditioner, its errors, and their limits.

One layer of linear attention answers `x_query^T Gamma h` with `h = 1/l sum_i y_i x_i`: one step of gradient descent
from 0, preconditioned by Gamma. Over tasks with second moment R and noise of variance rho (poisoned examples aside),

    E[h h^T] = (1 + 1/l) R + (tr R + rho)/l I,    Gamma* = R E[h h^T]^-1.

With a pool of k tasks in d dimensions, R follows the Marchenko-Pastur law as d, k and l grow in proportion.
Reference: the approach of Lu, Letey, Zavatone-Veth, Maiti and Pehlevan, Asymptotic theory of in-context learning by
linear attention, 2024, with unlimited training prompts; the formulas here are derived, and tested against sums over
finite pools.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.prompts.regression import Regression


class PoolErrors(NamedTuple):
    """Squared errors of linear attention trained on a pool of tasks."""

    new: float
    """On tasks drawn anew: in-context learning."""
    pool: float
    """On the tasks of the pool, which memory helps."""


def task_moment(prompts: Regression) -> Float[np.ndarray, "signals signals"]:
    """`R = E[w w^T]` over the tasks of the prompts."""
    if prompts.pool is None:
        return np.eye(prompts.signals) / prompts.signals
    tasks = prompts.pool_weights()[:, :prompts.signals].astype(float)
    return tasks.T @ tasks / len(tasks)


def _context_moment(R: Float[np.ndarray, "d d"], length: int, rho: float) -> Float[np.ndarray, "d d"]:
    """`E[h h^T]`."""
    return (1 + 1 / length) * R + (np.trace(R) + rho) / length * np.eye(len(R))


def best_preconditioner(prompts: Regression) -> Float[np.ndarray, "signals signals"]:
    """`Gamma*`, with which one step of gradient descent has the least squared error on the prompts (without poison)."""
    R = task_moment(prompts)
    return R @ np.linalg.inv(_context_moment(R, prompts.prompt_length, float(prompts.noise) ** 2))


def step_error(preconditioner: Float[np.ndarray, "d d"], R: Float[np.ndarray, "d d"], length: int, rho: float) -> float:
    """Squared error of one preconditioned step on tasks with second moment R: `tr R + rho - 2 tr(Gamma R) + tr(Gamma
    E[h h^T] Gamma^T)`."""
    moment = _context_moment(R, length, rho)
    return float(np.trace(R) + rho - 2 * np.trace(preconditioner @ R)
                 + np.trace(preconditioner @ moment @ preconditioner.T))


def pool_errors(prompts: Regression) -> PoolErrors:
    """The errors of the best preconditioner of this pool, exactly."""
    best, length, rho = best_preconditioner(prompts), prompts.prompt_length, float(prompts.noise) ** 2
    fresh = np.eye(prompts.signals) / prompts.signals
    return PoolErrors(step_error(best, fresh, length, rho), step_error(best, task_moment(prompts), length, rho))


def pool_limit(tasks: float, examples: float, rho: float) -> PoolErrors:
    """The limit of `pool_errors` as d grows, with `tasks` = k / d and `examples` = l / d.

    With W of the Marchenko-Pastur law of ratio d / k and `z = (1 + rho) / examples`, `Gamma* = W (W + z)^-1`. With
    `m = E[1 / (W + z)]` and `m' = E[1 / (W + z)^2]`, the traces of `Gamma` and `Gamma^2` over d are `1 - z m` and
    `1 - 2 z m + z^2 m'`.
    """
    z = (1 + rho) / examples
    m, slope = stieltjes(z, 1 / tasks)
    once, twice = 1 - z * m, 1 - 2 * z * m + z**2 * slope
    # E[W Gamma] = E[W - z + z^2/(W + z)], and Gamma (W + z) Gamma = W Gamma.
    return PoolErrors(1 + rho - 2 * once + (1 + z) * twice, 1 + rho - (1 - z + z**2 * m))


def stieltjes(z: float, ratio: float) -> tuple[float, float]:
    """`E[1 / (W + z)]` and `E[1 / (W + z)^2]` for the eigenvalues W of `1/k G^T G`, G a Gaussian (k, d), ratio = d / k.

    m solves `ratio z m^2 + (1 - ratio + z) m - 1 = 0`; the second is -dm/dz.
    """
    linear = 1 - ratio + z
    root = np.sqrt(linear**2 + 4 * ratio * z)
    m = 2 / (linear + root)
    return float(m), float((ratio * m**2 + m) / root)
