"""Error probes take any predictor and count a dead output as wrong."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from iclab import (
    Classification,
    Regression,
    SpecError,
    from_labelled,
    gate_profile,
    measure_error,
    model_errors,
    replace,
    score_mass,
    seed_interval,
)
from iclab.probes.attack_search import Budget, worst_attack
from iclab.probes.error_rate import UNIT, ErrorRate, wilson

PROMPTS = Classification(outlier_fraction=0.3)


def test_known_predictors():
    assert measure_error(lambda batch: batch.label, PROMPTS, count=600).error == 0
    assert measure_error(lambda batch: -batch.label, PROMPTS, count=600).error == 1
    dead = measure_error(lambda batch: np.zeros(len(batch.label)), PROMPTS, count=600)
    assert (dead.error, dead.hinge) == (1, 1)
    coin = measure_error(lambda batch: np.sign(batch.y[:, 0]), PROMPTS, count=5000)
    assert coin.low < 0.5 < coin.high


def test_a_wrong_shape_is_named():
    with pytest.raises(SpecError, match="one score per prompt"):
        measure_error(lambda batch: batch.y, PROMPTS, count=10)
    with pytest.raises(SpecError, match="predictor must be a function of prompts or a trained run, got 'str'"):
        measure_error("model", PROMPTS, count=10)


@pytest.mark.parametrize(("predict", "message"), [
    (lambda batch: batch.label * np.nan, "predictor must return numbers, got 'NaN in 100 of 100'"),
    (lambda batch: batch.label > 0, r"return scores whose signs are the answers .* got 'True and False'"),
    (lambda batch: 1 * (batch.label > 0), "write 2 [*] answer - 1, got '0 and 1'"),
])
def test_answers_that_are_no_scores_are_refused(predict, message):
    with pytest.raises(SpecError, match=message):
        measure_error(predict, PROMPTS, count=100)


@pytest.mark.parametrize("backend", ["xla", "fused"])
@pytest.mark.parametrize(("test", "message"), [
    (Classification(dimension=40), "dimension of the prompts must be that of the model's training, 30, got 40"),
    (Regression(dimension=30), "labels of Regression must be of the kind that the model was trained on, 'sign'"),
    (PROMPTS.sample(0, 2), "must be a distribution of prompts, .*, got a Prompt; give the distribution that the batch"),
    (from_labelled(np.eye(8), [0, 1] * 4, holdout=0.5), "got a tuple; unpack the pair: training, test = ..."),
])
def test_prompts_that_a_trained_model_cannot_read_are_refused(trained_mamba, backend, test, message):
    trained = trained_mamba[0]
    training = replace(trained.run.training, backend=backend)
    trained = dataclasses.replace(trained, run=replace(trained.run, training=training))
    for probe in (measure_error, score_mass, gate_profile, lambda *_: model_errors([trained], [test])):
        with pytest.raises(SpecError, match=message):
            probe(trained, test)
    if isinstance(test, Classification):
        with pytest.raises(SpecError, match=message):
            worst_attack(trained, replace(test, outlier_fraction=0.5), Budget(2.0))
        with pytest.raises(SpecError, match=message):
            trained(test.sample(0, 2))


def test_what_is_no_trained_model_is_named(trained_mamba):
    with pytest.raises(SpecError, match=r"trained must be a trained run, .* got a function; measure_error takes any"):
        score_mass(lambda batch: batch.label, PROMPTS)
    with pytest.raises(SpecError, match=r"must be a distribution of prompts, .* got a Trained"):
        model_errors([PROMPTS], [trained_mamba[0]])


def test_a_rate_prints_in_few_digits():
    assert str(ErrorRate(0.123456, 0.1, 0.15, 1.0, 500)) == "error 0.123 [0.1, 0.15] on 500 prompts"


def test_the_compiled_path_agrees_with_the_general_one(trained_mamba):
    tests = [replace(PROMPTS, outlier_fraction=f, label_rule=rule) for f in (0.3, 0.8) for rule in ("flip", "random")]
    compiled = model_errors(trained_mamba[:2], tests, count=4000, seeds=[7, 8])
    for row, (trained, seed) in enumerate(zip(trained_mamba[:2], (7, 8), strict=True)):
        for column, test in enumerate(tests):
            general = measure_error(trained, test, count=4000, seed=seed)
            assert compiled[row, column] == pytest.approx(general.error, abs=1e-3)


def test_wilson_and_student_are_the_textbook_intervals():
    low, high = wilson(3, 100)
    p, n, z = 0.03, 100, stats.norm.ppf(0.975)
    middle, half = (p + z * z / (2 * n)) / (1 + z * z / n), z / (1 + z * z / n) * np.sqrt(
        p * (1 - p) / n + z * z / (4 * n * n))
    assert (low, high) == pytest.approx((middle - half, middle + half))
    interval = seed_interval([1.0, 2.0, 3.0])
    assert interval.mean == 2
    assert interval.high == pytest.approx(2 + 4.302652 / np.sqrt(3), rel=1e-5)
    assert np.isnan(seed_interval([1.0]).low)


@given(arrays(float, st.integers(2, 8), elements=st.sampled_from([0.0, 1.0]) | st.floats(0, 1)))
def test_the_interval_of_a_fraction_is_students_cut_at_0_and_1(values):
    cut, student = seed_interval(values, within=UNIT), seed_interval(values)
    assert 0 <= cut.low <= cut.mean <= cut.high <= 1
    assert cut.mean == student.mean
    assert cut.low == (student.low if student.low >= 0 else 0)
    assert cut.high == (student.high if student.high <= 1 else 1)


def test_seeds_that_all_or_never_err_have_an_interval_within_the_range():
    assert seed_interval([0.0, 1.0, 0.0, 1.0]).low < 0
    assert seed_interval([0.0, 1.0, 0.0, 1.0], within=UNIT) == (0.5, 0.0, 1.0)
    assert seed_interval([0.0, 0.0], within=UNIT) == (0.0, 0.0, 0.0)
    assert np.isnan(seed_interval([0.3], within=UNIT).high)
