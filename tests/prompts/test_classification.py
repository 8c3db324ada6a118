"""Prompts obey the data model: every rule of it, checked on drawn prompts."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iclab import Classification, SpecError, replace
from iclab.prompts.patterns import pattern_basis

BASE = Classification(outlier_fraction=0.5)


def draw(spec, count=400, seed=0):
    return spec.sample(seed, count).numpy()


@st.composite
def specs(draw_):
    relevant = draw_(st.integers(2, 6))
    irrelevant, outliers = draw_(st.integers(1, 5)), draw_(st.integers(1, 3))
    return Classification(
        dimension=relevant + irrelevant + outliers + draw_(st.integers(0, 4)), relevant_patterns=relevant,
        irrelevant_patterns=irrelevant, outlier_patterns=outliers, prompt_length=draw_(st.integers(1, 12)),
        pattern_norm=draw_(st.floats(0.5, 4)), irrelevant_scale=draw_(st.floats(0, 2)),
        decisive_fraction=1.0 if relevant == 2 else draw_(st.floats(0.1, 1)),
        outlier_fraction=draw_(st.floats(0, 0.95)), outlier_scale=draw_(st.floats(0, 5)),
        label_rule=draw_(st.sampled_from(("flip", "target", "random"))),
        placement=draw_(st.sampled_from(("random", "far", "close"))), rotation_seed=draw_(st.sampled_from((None, 3))))


@given(specs(), st.integers(0, 1000))
def test_inputs_match_their_truth(spec, seed):
    prompts = draw(spec, 8, seed)
    basis = pattern_basis(spec.dimension, spec.rotation_seed, None)
    code = prompts.x if basis is None else prompts.x @ basis.T
    m1, m2 = spec.relevant_patterns, spec.irrelevant_patterns
    relevant, irrelevant, outlier = code[..., :m1], code[..., m1:m1 + m2], code[..., m1 + m2:]
    np.testing.assert_allclose(relevant, spec.pattern_norm * np.eye(m1)[prompts.truth.pattern], atol=1e-4)
    assert np.abs(irrelevant).max() <= spec.irrelevant_scale * spec.pattern_norm + 1e-4
    assert (np.abs(irrelevant) > 1e-5).sum(-1).max(initial=0) <= 1
    carried = outlier[..., :spec.outlier_patterns]
    direction = np.eye(spec.outlier_patterns)[prompts.truth.direction]
    expected = spec.outlier_scale * direction * prompts.truth.outlier[..., None]
    np.testing.assert_allclose(carried, expected, atol=1e-4)


@given(specs(), st.integers(0, 1000))
def test_labels_follow_the_task_and_the_rule(spec, seed):
    prompts = draw(spec, 8, seed)
    a, b = prompts.truth.task[:, :1], prompts.truth.task[:, 1:]
    context = prompts.truth.pattern[:, :-1]
    clean = prompts.truth.clean[:, :-1]
    np.testing.assert_array_equal(clean[context == a], 1)
    np.testing.assert_array_equal(clean[context == b], -1)
    np.testing.assert_array_equal(prompts.label, np.where(prompts.truth.pattern[:, -1] == a[:, 0], 1, -1))
    y, outlier = prompts.y[:, :-1], prompts.truth.outlier[:, :-1]
    np.testing.assert_array_equal(y[~outlier], clean[~outlier])
    if spec.label_rule == "flip":
        np.testing.assert_array_equal(y[outlier], -clean[outlier])
    if spec.label_rule == "target":
        np.testing.assert_array_equal(y[outlier], 1)
    assert set(np.unique(y)) <= {-1.0, 1.0}
    assert (prompts.y[:, -1] == 0).all()
    assert not prompts.truth.outlier[:, -1].any()


@pytest.mark.parametrize("batch", [12, 60, 128, 7])
def test_every_query_pattern_and_label_occurs_equally_often(batch):
    for tasks in ("all", "cyclic:1", "cyclic:3"):
        prompts = draw(replace(BASE, tasks=tasks), batch, seed=4)
        counts = np.bincount(prompts.truth.pattern[:, -1], minlength=6)
        assert counts.max() - counts.min() <= 1
        assert abs(int((prompts.label == 1).sum()) - int((prompts.label == -1).sum())) <= 6


def test_every_task_is_equally_likely():
    spec = replace(BASE, prompt_length=1)
    counts = np.zeros((6, 6))
    for seed in range(60):
        np.add.at(counts, tuple(draw(spec, 100, seed).truth.task.T), 1)
    seen = counts[~np.eye(6, dtype=bool)]
    assert np.trace(counts) == 0
    assert abs(seen - 200).max() < 5 * np.sqrt(200)


def test_fractions_are_the_requested_ones():
    prompts = draw(replace(BASE, outlier_fraction=0.3, decisive_fraction=0.7), 5000)
    context = prompts.truth.pattern[:, :-1]
    decisive = (context == prompts.truth.task[:, :1]) | (context == prompts.truth.task[:, 1:])
    size = context.size
    assert abs(prompts.truth.outlier[:, :-1].mean() - 0.3) < 5 * np.sqrt(0.21 / size)
    assert abs(decisive.mean() - 0.7) < 5 * np.sqrt(0.21 / size)
    others = context[~decisive]
    assert abs(np.bincount(others, minlength=6) / len(others) - 1 / 6).max() < 0.01
    assert abs(prompts.y[:, :-1][~decisive].mean()) < 5 / np.sqrt(len(others))


def test_placement_moves_the_same_number_of_outliers():
    far, close, anywhere = (draw(replace(BASE, placement=p)).truth.outlier[:, :-1] for p in ("far", "close", "random"))
    for placed in (far, close):
        np.testing.assert_array_equal(placed.sum(1), anywhere.sum(1))
    assert (np.diff(far.astype(int), axis=1) <= 0).all()
    assert (np.diff(close.astype(int), axis=1) >= 0).all()


def test_a_users_label_rule_sees_the_inputs():
    def by_sign(clean, coin, x):
        return jnp.where(x[:, 0] > 0, 1.0, -1.0)

    prompts = draw(replace(BASE, label_rule=by_sign))
    poisoned = prompts.truth.outlier
    np.testing.assert_array_equal(prompts.y[poisoned], np.where(prompts.x[..., 0][poisoned] > 0, 1, -1))


def test_unseen_outliers_are_unit_mixtures():
    spec = replace(BASE, outlier_mixtures=((0.7, 0.6, -0.4), (-0.7, 0.5, 0.5)), outlier_scale=3.0)
    prompts = draw(spec)
    carried = prompts.x[prompts.truth.outlier][:, 16:19]
    np.testing.assert_allclose(np.linalg.norm(carried, axis=1), 3.0, rtol=1e-5)
    rows = np.array(spec.outlier_mixtures) / np.linalg.norm(spec.outlier_mixtures, axis=1, keepdims=True)
    np.testing.assert_allclose(carried, 3.0 * rows[prompts.truth.direction[prompts.truth.outlier]], rtol=1e-4)


@pytest.mark.parametrize("changes", [{}, {"rotation_seed": 1}, {"noise_norm": 0.5}])
def test_outliers_of_ones_own_are_added_as_they_are(changes):
    clean = replace(BASE, outlier_scale=0.0, **changes)
    vectors = np.random.default_rng(0).standard_normal((2, 30))
    own, plain = draw(replace(clean, outlier_scale=1.5, outlier_vectors=vectors)), draw(clean)
    carried = own.truth.outlier[..., None] * 1.5 * vectors[own.truth.direction]
    np.testing.assert_allclose(own.x - plain.x, carried, atol=1e-5)
    assert set(np.unique(own.truth.direction)) == {0, 1}
    for mine, theirs in ((own.y, plain.y), (own.truth.outlier, plain.truth.outlier)):
        np.testing.assert_array_equal(mine, theirs)


def test_outliers_of_ones_own_need_no_other():
    spec = Classification(outlier_patterns=0, outlier_fraction=0.5, outlier_vectors=np.ones((1, 30)))
    assert draw(spec).truth.outlier.any()
    assert hash(spec) == hash(replace(spec, outlier_vectors=[[1] * 30]))


def test_out_of_domain_patterns_are_the_given_rows():
    rows = ((0.3, -0.3, 0, 0, 0.64, 0.64), (0.7, 0.7, 0, 0, 0, 0), (0, 0, 0.7, 0.7, 0, 0))
    spec = replace(BASE, pattern_mixtures=rows, outlier_fraction=0.0)
    prompts = draw(spec)
    assert prompts.truth.pattern.max() == 2
    np.testing.assert_allclose(prompts.x[..., :6], 3.0 * np.array(rows)[prompts.truth.pattern], rtol=1e-5)
    np.testing.assert_allclose(spec.patterns()[:, :6], 3.0 * np.array(rows), rtol=1e-6)


def test_coefficient_and_noise_stay_in_their_bounds():
    spec = replace(BASE, coefficient_low=0.5, coefficient_high=1.5, noise_norm=0.7, outlier_fraction=0.0)
    clean = replace(spec, noise_norm=None)
    noisy, plain = draw(spec), draw(clean)
    noise = np.linalg.norm(noisy.x - plain.x, axis=-1)
    assert 0.6 < noise.max() <= 0.7 + 1e-5
    coefficient = plain.x[..., :6].sum(-1) / 3.0
    assert coefficient.min() >= 0.5
    assert coefficient.max() <= 1.5
    assert abs(coefficient.mean() - 1.0) < 0.02


def test_a_users_basis_is_used():
    rotated = replace(BASE, rotation_seed=1)
    basis = tuple(map(tuple, pattern_basis(30, 1, None)))
    np.testing.assert_allclose(draw(rotated).x, draw(replace(BASE, basis=basis)).x, atol=1e-5)
    assert replace(BASE, basis=np.array(basis)) == replace(BASE, basis=basis)


@pytest.mark.parametrize(("changes", "message"), [
    ({"outlier_fraction": 1.2}, "outlier_fraction must be in [0, 1), got 1.2"),
    ({"decisive_fraction": 0}, "decisive_fraction must be in (0, 1], got 0"),
    ({"irrelevant_patterns": 40}, "dimension must be at least"),
    ({"label_rule": "lie"}, "label_rule must be one of flip, target, random, got 'lie'"),
    ({"placement": "near"}, "placement must be one of random, far, close, got 'near'"),
    ({"tasks": "cyclic:9"}, "must be in [1, 5], got 9"),
    ({"tasks": "some"}, "tasks must be 'all'"),
    ({"tasks": ((0, 0),)}, "tasks must be"),
    ({"outlier_mixtures": ((1.0, 2.0),)}, "outlier_mixtures must be rows of 3 coefficients"),
    ({"outlier_patterns": 0}, "outlier_fraction must be 0 when outlier_patterns is 0"),
    ({"outlier_vectors": ((1.0, 2.0),)}, "outlier_vectors must be rows of dimension = 30 numbers, got '1 rows of [2]"),
    ({"outlier_vectors": ()}, "outlier_vectors must be rows of dimension = 30 numbers, got '0 rows"),
    ({"outlier_vectors": np.full((1, 30), np.inf)}, "outlier_vectors must be finite"),
    ({"outlier_vectors": np.ones((1, 30)), "outlier_mixtures": np.ones((1, 3))},
     "outlier_vectors must be None when outlier_mixtures is given"),
    ({"prompt_length": 0}, "prompt_length must be a whole number >= 1, got 0"),
    ({"prompt_length": 2.5}, "prompt_length must be a whole number >= 1, got 2.5"),
    ({"basis": ((1.0, 0.0), (0.0, 1.0))}, "basis must have shape (30, 30)"),
    ({"colour": 1}, "has no field 'colour'"),
    ({"pattern_norm": float("nan")}, "pattern_norm must be in"),
    ({"outlier_fraction": "1.5"}, "outlier_fraction must be a number, got '1.5'"),
    ({"outlier_fraction": jnp.float32(3)}, "outlier_fraction must be in"),
    ({"outlier_mixtures": np.ones((1, 7))}, "outlier_mixtures must be rows of 3"),
    ({"outlier_mixtures": ((np.inf, 1.0, 1.0),)}, "outlier_mixtures must be finite"),
    ({"rotation_seed": -1}, "rotation_seed must be a whole number in [0, 2^32), got -1"),
    ({"label_rule": lambda clean, coin, x: clean[:2]}, "label_rule must return one label per token"),
    ({"label_rule": lambda clean: clean}, "label_rule must be a function"),
])
def test_bad_fields_are_named(changes, message):
    with pytest.raises(SpecError) as error:
        replace(BASE, **changes)
    assert message in str(error.value)
