"""Estimators on regression prompts, against closed forms, scikit-learn, and each other."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from iclab import (
    Regression,
    SpecError,
    descent_predictor,
    huber_predictor,
    measure_error,
    pool_predictor,
    replace,
    ridge_predictor,
)
from iclab.probes.regressors import best_penalty, clean_step_rate

PROMPTS = Regression(dimension=5, prompt_length=15, noise=0.3)
POISONED = Regression(dimension=7, outlier_patterns=2, outlier_fraction=0.3, prompt_length=20, noise=0.3,
                      outlier_label=4.0)
BATCH = PROMPTS.sample(0, 40).numpy()


def test_ridge_is_scikit_learns():
    expected = [Ridge(alpha=best_penalty(PROMPTS), fit_intercept=False).fit(x[:-1], y[:-1]).predict(x[-1:])[0]
                for x, y in zip(BATCH.x, BATCH.y, strict=True)]
    np.testing.assert_allclose(ridge_predictor(PROMPTS)(BATCH), expected, rtol=1e-5, atol=1e-6)


def test_no_other_penalty_is_better():
    best = measure_error(ridge_predictor(PROMPTS), PROMPTS, count=4000).error
    for factor in (0.1, 10.0):
        other = ridge_predictor(PROMPTS, penalty=factor * best_penalty(PROMPTS))
        assert measure_error(other, PROMPTS, count=4000).error > best


def test_many_steps_of_descent_are_least_squares():
    x, y = BATCH.x[:, :-1].astype(float), BATCH.y[:, :-1].astype(float)
    fits = np.stack([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(x, y, strict=True)])
    expected = (fits * BATCH.x[:, -1]).sum(axis=1)
    np.testing.assert_allclose(descent_predictor(0.3, steps=3000)(BATCH), expected, rtol=1e-4, atol=1e-4)


def test_one_step_is_the_mean_of_labels_times_inputs():
    h = (BATCH.y[:, :-1, None] * BATCH.x[:, :-1]).mean(axis=1)
    matrix = np.diag([1.0, 2, 3, 4, 5]) + 0.1
    np.testing.assert_allclose(descent_predictor(matrix)(BATCH), ((h @ matrix.T) * BATCH.x[:, -1]).sum(axis=1),
                               rtol=1e-5, atol=1e-6)


def test_who_knows_the_pool_beats_ridge_on_it_and_loses_elsewhere():
    pool = replace(PROMPTS, pool=4, noise=0.5)
    knows, ridge = pool_predictor(pool), ridge_predictor(pool)
    inside = [measure_error(predictor, pool, count=2000).error for predictor in (knows, ridge)]
    outside = [measure_error(predictor, replace(pool, pool=None), count=2000).error for predictor in (knows, ridge)]
    assert inside[0] == pytest.approx(0.25, rel=0.1)
    assert inside[0] < inside[1]
    assert outside[0] > outside[1]


def test_told_what_is_clean_poison_is_as_if_it_were_not_there():
    hidden = POISONED.sample(0, 50).numpy()
    changed = hidden._replace(y=np.where(hidden.truth.outlier, 99.0, hidden.y))
    for blind in (ridge_predictor(POISONED, sees="clean"), descent_predictor(0.5, sees="clean")):
        np.testing.assert_array_equal(blind(hidden), blind(changed))
    assert np.abs(ridge_predictor(POISONED)(hidden) - ridge_predictor(POISONED)(changed)).max() > 1


def test_huber_lies_between_ridge_on_all_and_on_the_clean():
    errors = [measure_error(predictor, POISONED, count=2000).error for predictor in (
        ridge_predictor(POISONED, sees="clean"), huber_predictor(POISONED), ridge_predictor(POISONED))]
    assert errors[0] < errors[1] < errors[2]


def test_the_rate_of_the_clean_step_is_the_best():
    rate = clean_step_rate(POISONED)
    errors = [measure_error(descent_predictor(factor * rate, sees="clean"), POISONED, count=4000).error
              for factor in (0.8, 1.0, 1.2)]
    assert errors[1] < min(errors[0], errors[2])


@pytest.mark.parametrize(("make", "words"), [
    (lambda: ridge_predictor(PROMPTS, sees="some")(BATCH), "sees must be one of all, clean"),
    (lambda: ridge_predictor(PROMPTS, penalty=0.0), "penalty must be above 0"),
    (lambda: descent_predictor(steps=0), "steps must be"),
    (lambda: descent_predictor(np.ones(3)), "preconditioner must be a number or a matrix")])
def test_bad_values_are_refused(make, words):
    with pytest.raises(SpecError, match=words):
        make()
