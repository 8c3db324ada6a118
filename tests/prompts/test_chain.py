"""Chain prompts match their truth: the task, the noise, the errors, the balance of a batch."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from iclab import Chain, ChainAttention, ChainEmbedding, Run, SoftmaxMLP, SpecError, Training, replace
from iclab.core.identity import canonical, from_json, to_json
from iclab.prompts.chain import chain_test, random_mixtures
from iclab.prompts.transitions import weak_step

TRAINING = Chain(patterns=7, dimension=12, prompt_length=5)
M, K, EXAMPLES = 7, 3, 5


@pytest.fixture(scope="module")
def batch():
    return TRAINING.sample(0, 4 * M * K).numpy()


def test_every_query_input_occurs_equally_often_at_every_step(batch):
    queries = [(int(pattern[-1]), int(step[-1])) for pattern, step in zip(batch.truth.pattern, batch.step, strict=True)]
    assert sorted(queries) == sorted([(m, k) for m in range(M) for k in range(K)] * 4)


def test_columns_follow_the_task(batch):
    """Step k moves k places forward in the order of the task."""
    for i in range(len(batch.x)):
        shown = batch.step[i] >= 0
        pattern, answer, step = (field[i][shown] for field in (batch.truth.pattern, batch.truth.answer, batch.step))
        k = step[-1]
        assert shown.sum() == EXAMPLES * K + k + 1
        assert not shown[:K - 1 - k].any()
        assert (step == np.arange(len(step)) % K).all()
        steps = {(p, s): a for p, a, s in zip(pattern[:-1], answer[:-1], step[:-1], strict=True)}
        for p, a, s in zip(pattern[:-1], answer[:-1], step[:-1], strict=True):
            assert steps[p, s] == a  # one task per prompt
        assert len({(a, s) for (_, s), a in steps.items()}) == len(steps)  # steps are permutations
        # f_2 moves two places forward: it is f_1 applied twice, wherever the prompt shows all three steps.
        for (p, s), a in steps.items():
            if s == 1 and (p, 0) in steps and (steps[p, 0], 0) in steps:
                assert a == steps[steps[p, 0], 0]
        chain = batch.truth.chain[i]
        assert pattern[-1] == chain[k]
        assert batch.label[i].argmax() == chain[k + 1]
        assert answer[-1] == -1
        for j in range(k):
            assert (pattern[-1 - k + j], answer[-1 - k + j]) == (chain[j], chain[j + 1])


def test_vectors_are_those_of_the_patterns(batch):
    x, y = (np.eye(M + 1, 12)[:, :12] * (np.arange(M + 1) < M)[:, None] for _ in range(2))
    np.testing.assert_array_equal(batch.x, x[batch.truth.pattern])
    np.testing.assert_array_equal(batch.y, y[batch.truth.answer])


def test_the_matching_fraction_of_examples_starts_at_the_querys_pattern():
    prompts = replace(TRAINING, matching_fraction=0.3).sample(1, 2000).numpy()
    first = np.stack([prompts.truth.pattern[i][prompts.step[i] == 0][:EXAMPLES] for i in range(2000)])
    share = (first == prompts.truth.chain[:, :1]).mean()
    assert share == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / first.size))


def test_test_patterns_are_orthonormal_in_the_span_and_noise_is_orthogonal_to_them():
    test = chain_test(TRAINING, patterns=4, noise_norm=0.3, transitions=weak_step(0.5, 0.7, patterns=4))
    vectors, prompts = np.asarray(test.pattern_vectors()), test.sample(0, 40).numpy()
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(4), atol=1e-5)
    np.testing.assert_allclose(vectors[:, M:], 0, atol=1e-6)
    noise = prompts.x[:, :-1] - vectors[prompts.truth.pattern[:, :-1]]
    np.testing.assert_allclose(noise @ vectors.T, 0, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(noise, axis=2), 0.3, rtol=1e-4)
    np.testing.assert_allclose(prompts.x[:, -1], vectors[prompts.truth.chain[:, 0]], atol=1e-5)  # the query is clean
    x, y = (field[:, :-1].reshape(40, EXAMPLES, K, 12) for field in (prompts.x, prompts.y))
    np.testing.assert_array_equal(x[:, :, 1:], y[:, :, :-1])  # an output is the next input, including its noise
    assert np.abs(noise.reshape(-1, 12) @ noise[0, 0]).max() < 0.09 * (1 + 1e-4)
    assert len(np.unique(np.round(noise.reshape(-1, 12), 4), axis=0)) > 100


def test_partly_solved_prompts_carry_noise_too():
    noisy = replace(TRAINING, noise_norm=0.3).sample(0, 21).numpy()
    shown = noisy.step >= 0
    of_query = np.arange(noisy.step.shape[1]) >= noisy.step.shape[1] - 1 - noisy.step[:, -1:]
    length = np.linalg.norm(noisy.x[..., M:], axis=2)
    np.testing.assert_allclose(length[shown & ~of_query], 0.3, rtol=1e-5)
    assert (length[of_query] == 0).all()
    assert (noisy.x[~shown] == 0).all()
    assert (noisy.y[~shown] == 0).all()


def test_examples_go_wrong_by_their_matrices():
    """Asymmetric matrices: how often chains from each place take the right step, and which step that is."""
    A = np.random.default_rng(3).dirichlet(np.full(4, 0.8), size=(3, 4))
    A[:, range(4), [1, 2, 3, 0]] += 1.0
    A /= A.sum(axis=2, keepdims=True)
    test = chain_test(TRAINING, patterns=4, noise_norm=None, prompt_length=20, transitions=A)
    size = 4000
    prompts = test.sample(5, size).numpy()
    tables = [field[:, :-1].reshape(size, 20, K) for field in (prompts.truth.pattern, prompts.truth.answer)]
    start = np.arange(size) // (size // 4)  # queries start at each place in turn
    matching = tables[0][:, :, 0] == prompts.truth.chain[:, :1]
    assert matching.mean() == pytest.approx(0.8, abs=0.01)
    for place in range(4):
        current, at = place, (start == place)[:, None] & matching
        for k in range(K):
            target = int(A[k, current].argmax())
            right = tables[1][:, :, k] == prompts.truth.chain[:, k + 1][:, None]
            expected = A[k, current, target]
            assert right[at].mean() == pytest.approx(expected, abs=5 * np.sqrt(0.25 / at.sum()))
            at, current = at & right, target


def test_training_prompts_with_errors_start_at_every_place():
    """Exact from place 0, unsure from all others: a query that always started at place 0 would see no error."""
    A = np.full((3, 4, 4), 0.2)
    A[:, range(4), [1, 2, 3, 0]] = 0.4
    A[0, 0] = np.eye(4)[1]
    unsure = Chain(dimension=9, patterns=4, prompt_length=20, matching_fraction=0.9, transitions=A)
    prompts = unsure.sample(0, 1200).numpy()
    first, matching = prompts.step == 0, prompts.truth.pattern == prompts.truth.chain[:, :1]
    first[:, -3:] = False  # the query's columns
    right = (prompts.truth.answer == prompts.truth.chain[:, 1:2])[first & matching]
    assert right.mean() == pytest.approx((1.0 + 3 * 0.4) / 4, abs=0.03)


def test_specs_that_differ_in_matrices_share_a_program():
    a, b = (chain_test(TRAINING, patterns=4, transitions=weak_step(tau, 0.7, patterns=4)) for tau in (0.4, 0.5))
    assert jax.tree.structure(a) == jax.tree.structure(b)
    assert canonical(a) != canonical(b)
    assert canonical(from_json(to_json(a), {"Chain": Chain})) == canonical(a)
    listed = replace(a, transitions=np.array(a.transitions))
    assert canonical(listed) == canonical(a)
    parts = replace(a, transitions=tuple(np.array(matrix) for matrix in a.transitions))
    assert canonical(parts) == canonical(a)
    assert parts == a


def test_matrices_may_have_more_steps_than_patterns():
    Chain(dimension=9, patterns=3, reasoning_steps=4, transitions=weak_step(0.3, 0.5, steps=4, patterns=3))
    assert chain_test(Chain(dimension=6, patterns=6), patterns=6).noise_norm is None
    assert chain_test(TRAINING, patterns=4, pattern_mixtures=None).pattern_mixtures is None
    with pytest.raises(SpecError, match=r"patterns must be a whole number >= 2, got 2\.5"):
        chain_test(TRAINING, patterns=2.5)
    with pytest.raises(SpecError, match="pattern_mixtures must be rows of numbers, got 3"):
        Chain(pattern_mixtures=3)


@pytest.mark.parametrize(("changes", "message"), [
    ({"patterns": 31}, "patterns must be at most dimension = 30, got 31"),
    ({"reasoning_steps": 20}, "reasoning_steps must be below patterns = 20"),
    ({"matching_fraction": 0.0}, r"matching_fraction must be in \(0, 1\], got 0.0"),
    ({"transitions": weak_step(0.5, 0.8)}, r"transitions must have shape .* = \(3, 20, 20\), got \(3, 10, 10\)"),
    ({"pattern_mixtures": ((1.0, 0.0),)}, "pattern_mixtures must be 20 rows of one length"),
    ({"patterns": 2, "reasoning_steps": 1, "pattern_mixtures": ((1.0, 0.0), (1.0, 0.0))}, "be orthonormal"),
    ({"patterns": 30, "noise_norm": 0.2}, "noise_norm must be none when there are as many patterns as dimensions"),
])
def test_bad_fields_are_named(changes, message):
    with pytest.raises(SpecError, match=message):
        Chain(**changes)


def test_a_model_must_read_the_kind_of_prompts_it_is_given():
    squared = Training(loss="squared")
    with pytest.raises(SpecError, match=r"model\.embedding must read labels of kind step, which the prompts have, "
                                        "got 'LabelEmbedding'"):
        Run(prompts=Chain(), training=squared)
    with pytest.raises(SpecError, match=r"model\.embedding.steps must be the prompts' reasoning_steps = 3, got 2"):
        Run(model=ChainAttention(embedding=ChainEmbedding(steps=2)), prompts=Chain(), training=squared)
    with pytest.raises(SpecError, match="embedding must be a LabelEmbedding"):
        SoftmaxMLP(embedding=ChainEmbedding())
    with pytest.raises(SpecError, match=r"training\.loss must be squared \(or a function\) for labels of kind step, "
                                        "got 'hinge'"):
        Run(model=ChainAttention(), prompts=Chain())


def test_random_mixtures_are_orthonormal():
    rows = np.array(random_mixtures(4, 9, seed=2))
    np.testing.assert_allclose(rows @ rows.T, np.eye(4), atol=1e-12)
    with pytest.raises(SpecError, match="patterns must be at most the 3 training patterns, got 4"):
        random_mixtures(4, 3)
