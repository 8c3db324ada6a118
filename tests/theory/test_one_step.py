"""The closed forms of one preconditioned step, against measurement and against sums over large pools."""

from __future__ import annotations

import numpy as np
import pytest

from iclab import Regression, descent_predictor, measure_error, replace
from iclab.theory.one_step import best_preconditioner, pool_errors, pool_limit, step_error, stieltjes, task_moment

POOL = Regression(dimension=8, prompt_length=16, noise=0.5, pool=6)
FRESH = replace(POOL, pool=None)


@pytest.mark.parametrize("prompts", [POOL, FRESH], ids=["pool", "fresh"])
def test_the_error_of_the_step_is_what_is_measured(prompts):
    step = descent_predictor(best_preconditioner(POOL))
    expected = pool_errors(POOL).pool if prompts is POOL else pool_errors(POOL).new
    assert measure_error(step, prompts, count=40_000).error == pytest.approx(expected, rel=0.03)


def test_no_other_preconditioner_is_better():
    best, R = best_preconditioner(POOL), task_moment(POOL)
    least, random = step_error(best, R, 16, 0.25), np.random.default_rng(0)
    for _ in range(20):
        assert step_error(best + 0.1 * random.normal(size=best.shape), R, 16, 0.25) > least


@pytest.mark.parametrize("ratio", [0.3, 1.0, 4.0])
def test_the_transform_is_that_of_gaussian_matrices(ratio):
    random = np.random.default_rng(0).normal(size=(round(400 / ratio), 400))
    values = np.linalg.eigvalsh(random.T @ random / len(random))
    np.testing.assert_allclose(stieltjes(0.5, ratio), [(1 / (values + 0.5)).mean(), (1 / (values + 0.5) ** 2).mean()],
                               rtol=0.01)


@pytest.mark.parametrize("tasks", [0.5, 2, 8])
def test_large_pools_come_near_their_limit(tasks):
    large = Regression(dimension=200, prompt_length=200, noise=0.5, pool=int(200 * tasks))
    np.testing.assert_allclose(pool_errors(large), pool_limit(tasks, 1.0, 0.25), rtol=0.015)
