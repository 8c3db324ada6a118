"""Regression prompts: labels follow the weights, pools are pools, poisoned examples carry marks."""

from __future__ import annotations

import numpy as np
import pytest

from iclab import Regression, SpecError, replace

POISONED = Regression(dimension=7, constant=True, outlier_patterns=2, outlier_fraction=0.4, prompt_length=12,
                      outlier_label=3.0, outlier_scale=5.0)


def test_labels_are_those_of_the_weights_and_the_noise():
    batch = Regression(noise=0.2).sample(0, 500).numpy()
    fitted = np.einsum("bd,btd->bt", batch.truth.weights, batch.x)
    assert (batch.truth.clean - fitted).std() == pytest.approx(0.2, rel=0.03)
    np.testing.assert_array_equal(batch.y[:, :-1], batch.truth.clean[:, :-1])
    np.testing.assert_array_equal(batch.label, batch.truth.clean[:, -1])
    assert fitted.var() == pytest.approx(1.0, rel=0.1)


def test_sparse_tasks_have_that_many_weights():
    weights = Regression(nonzero=3).sample(0, 400).numpy().truth.weights
    assert set((weights != 0).sum(axis=1)) == {3}
    assert ((weights != 0).mean(axis=0) > 0.25).all()
    assert (weights**2).sum(axis=1).mean() == pytest.approx(1.0, rel=0.15)


@pytest.mark.parametrize("mirrored", [False, True])
def test_a_pool_has_its_tasks_and_no_others(mirrored):
    prompts = Regression(pool=5, mirrored=mirrored, pool_seed=3)
    pool, weights = prompts.pool_weights(), prompts.sample(1, 400).numpy().truth.weights
    assert len(pool) == (10 if mirrored else 5)
    distance = np.abs(weights[:, None] - pool).sum(axis=2)
    assert distance.min(axis=1).max() < 1e-6
    assert (np.bincount(distance.argmin(axis=1), minlength=len(pool)) > 15).all()
    assert not np.allclose(pool[:5], replace(prompts, pool_seed=4).pool_weights()[:5])


def test_poisoned_examples_carry_a_mark_and_the_rules_label():
    batch = POISONED.sample(0, 300).numpy()
    outlier = batch.truth.outlier
    np.testing.assert_array_equal(batch.x[..., 4], 1.0)
    np.testing.assert_array_equal(batch.x[..., 5:].sum(axis=2), 5.0 * outlier)
    assert not outlier[:, -1].any()
    assert outlier[:, :-1].mean() == pytest.approx(0.4, abs=0.03)
    assert set(np.unique(batch.y[outlier])) == {-3.0, 3.0}
    flipped = replace(POISONED, label_rule="flip").sample(0, 300).numpy()
    np.testing.assert_array_equal(flipped.y[outlier], -flipped.truth.clean[outlier])


@pytest.mark.parametrize(("fields", "words"), [
    ({"dimension": 2, "outlier_patterns": 2}, "dimension must be above 2"),
    ({"nonzero": 9}, "nonzero must be at most 8"), ({"mirrored": True}, "mirrored must be false without a pool"),
    ({"outlier_fraction": 0.5}, "outlier_fraction must be 0 when"), ({"pool": 0}, "pool must be a whole number >= 1"),
    ({"label_rule": lambda clean, coin, x: x}, "label_rule must return one label"),
    ({"noise": -1.0}, "noise must be in"), ({"label_rule": "none"}, "label_rule must be one of")])
def test_what_contradicts_itself_is_refused(fields, words):
    with pytest.raises(SpecError, match=words.replace("(", r"\(")):
        Regression(**fields)


def test_without_a_pool_there_are_no_tasks_to_list():
    with pytest.raises(SpecError, match="pool must be a number of tasks"):
        Regression().pool_weights()
