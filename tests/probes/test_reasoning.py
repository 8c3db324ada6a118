"""Reasoning with a model against algorithm 2 written as a loop; the vote against counting by hand; errors of both."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import Chain, ChainAttention, Classification, SpecError, Training, chain_errors, chain_test, reason, replace
from iclab.models.chain_attention import ChainParams
from iclab.probes.reasoning import at_once, chain_of_thought, majority_vote
from iclab.prompts.transitions import exact_transitions, weak_step

TRAINING = Chain(dimension=9, patterns=6, prompt_length=5)
TEST = chain_test(TRAINING, patterns=4, transitions=weak_step(0.4, 0.5, patterns=4), noise_norm=0.2)
D, K, LENGTHS = 9, 3, (2, 5)
MODEL = ChainAttention()


def a_model(scale=1.0, seed=0):
    """Random weights that favour columns of the same step and pattern."""
    W = np.random.default_rng(seed).normal(size=(2 * D + K, 2 * D + K)) * 0.3 * scale
    return ChainParams(W + scale * np.diag([2.0] * D + [0.0] * D + [3.0] * K))


def attention_by_hand(W, columns, query):
    logits = np.array([column @ W @ query for column in columns])
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def columns_of(prompt, examples, direct=False):
    """The last examples as the paper's columns; for ICL, inputs with last outputs, and zeros."""
    columns, first = [], len(prompt.x) - 1 - examples * K
    for i in range(first, len(prompt.x) - 1):
        x, y, code = prompt.x[i], prompt.y[i], np.eye(K)[prompt.step[i]]
        if direct:
            x, y = (x, prompt.y[i + K - 1]) if prompt.step[i] == 0 else (0 * x, 0 * y)
        columns.append(np.concatenate([x, y, code]))
    return columns


def algorithm_2(W, prompt, vectors, examples):
    """Answers and attention by kind of column, step by step."""
    columns, chain, query, masses = columns_of(prompt, examples), [prompt.truth.chain[0]], prompt.x[-1], []
    first = len(prompt.x) - 1 - examples * K
    kinds = [(prompt.step[i], prompt.truth.pattern[i]) for i in range(first, len(prompt.x) - 1)]
    for k in range(K):
        weights = attention_by_hand(W, columns, np.concatenate([query, np.zeros(D), np.eye(K)[k]]))
        output = sum(w * column[D:2 * D] for w, column in zip(weights, columns, strict=True))
        answer = min(range(len(vectors)), key=lambda u, output=output: ((output - vectors[u]) ** 2).sum())
        mass = np.zeros(4)
        for w, (step, pattern) in zip(weights, kinds, strict=True):
            mass[2 * (step != k) + (pattern != chain[-1])] += w
        masses.append(mass)
        columns.append(np.concatenate([query, vectors[answer], np.eye(K)[k]]))
        kinds.append((k, chain[-1]))
        chain.append(answer)
        query = vectors[answer]
    return chain[1:], masses


def test_a_chain_of_thought_is_algorithm_2(float64):
    params, vectors = a_model(), np.asarray(TEST.pattern_vectors())
    batch = TEST.sample(0, 12)
    think = jax.jit(jax.vmap(lambda prompt: chain_of_thought(MODEL, params, prompt, jnp.asarray(vectors), LENGTHS)))
    thoughts, seen = think(batch), set()
    for i in range(12):
        prompt = jax.tree.map(lambda field, i=i: np.asarray(field[i]), batch)
        for j, examples in enumerate(LENGTHS):
            answers, masses = algorithm_2(params.W, prompt, vectors, examples)
            assert thoughts.answers[i, j].tolist() == answers
            np.testing.assert_allclose(thoughts.mass[i, j], masses, rtol=1e-9, atol=1e-12)
            seen.add(tuple(answers))
    assert len(seen) > 4


def test_at_once_sees_inputs_and_last_outputs_only(float64):
    params, vectors = a_model(), np.asarray(TEST.pattern_vectors())
    batch = TEST.sample(1, 12)
    answers = jax.jit(jax.vmap(lambda prompt: at_once(MODEL, params, prompt, jnp.asarray(vectors), LENGTHS)))(batch)
    for i in range(12):
        prompt = jax.tree.map(lambda field, i=i: np.asarray(field[i]), batch)
        for j, examples in enumerate(LENGTHS):
            columns = columns_of(prompt, examples, direct=True)
            weights = attention_by_hand(params.W, columns, np.concatenate([prompt.x[-1], np.zeros(D), np.eye(K)[0]]))
            output = sum(w * column[D:2 * D] for w, column in zip(weights, columns, strict=True))
            assert int(answers[i, j]) == int(np.argmax(vectors @ output))


def test_the_vote_counts_matching_columns():
    batch = TEST.sample(2, 30).numpy()
    steps, direct = jax.jit(jax.vmap(lambda prompt: majority_vote(prompt, 4, LENGTHS)))(batch)
    for i in range(30):
        pattern, answer = (field[i][:-1].reshape(-1, K) for field in (batch.truth.pattern, batch.truth.answer))
        for j, examples in enumerate(LENGTHS):
            def most(before, after, current, examples=examples):
                counts = [sum((before[-examples:] == current) & (after[-examples:] == u)) for u in range(4)]
                return int(np.argmax(counts))

            current = batch.truth.chain[i][0]
            assert int(direct[i, j]) == most(pattern[:, 0], answer[:, -1], current)
            for k in range(K):
                current = most(pattern[:, k], answer[:, k], current)
                assert int(steps[i, j, k]) == current


@pytest.mark.parametrize("backend", ["xla", "auto"])
def test_reason_decodes_a_whole_batch(backend):
    """A batch is decoded in parts, the last overlapping; the answers are those of single prompts."""
    trained = SimpleNamespace(run=SimpleNamespace(model=MODEL, training=Training(backend=backend)),
                              params=jax.tree.map(np.float32, a_model()))
    prompts, vectors = TEST.sample(3, 120), TEST.pattern_vectors()
    alone = jax.jit(jax.vmap(lambda p: chain_of_thought(MODEL, trained.params, p, vectors, (5,)).answers[0]))(prompts)
    np.testing.assert_array_equal(reason(trained, prompts, vectors), alone)
    answers = jax.jit(jax.vmap(lambda p: at_once(MODEL, trained.params, p, vectors, (5,))[0]))(prompts)
    np.testing.assert_array_equal(reason(trained, prompts, vectors, direct=True), answers)


def test_errors_are_those_of_the_answers():
    """Sharp weights on exact examples never err when an example matches, nor does the vote."""
    exact = replace(TEST, matching_fraction=1.0, transitions=exact_transitions(K, 4))
    trained = SimpleNamespace(run=SimpleNamespace(model=MODEL, prompts=TRAINING, training=Training(), init_seed=0),
                              params=ChainParams(np.diag([9.0] * D + [0.0] * D + [30.0] * K).astype("f")))
    right = chain_errors([trained], [exact], LENGTHS, count=100)
    assert right.steps.shape == (1, 1, 2, K)
    for part in right:
        np.testing.assert_array_equal(part, 0)
    blind = SimpleNamespace(run=trained.run, params=ChainParams(np.zeros((2 * D + K, 2 * D + K), "f")))
    wrong = chain_errors([blind], [TEST], LENGTHS, count=100)
    assert wrong.cot.mean() > wrong.vote.mean() + 0.1
    np.testing.assert_allclose(wrong.cot, wrong.steps.mean(axis=-1))
    np.testing.assert_allclose(wrong.cot_answer, wrong.steps[..., -1])


def test_bad_tests_are_refused():
    run = SimpleNamespace(model=MODEL, prompts=TRAINING, training=Training(), init_seed=0)
    model = SimpleNamespace(run=run, params=a_model())
    longer = chain_test(Chain(dimension=D, patterns=6, prompt_length=5, reasoning_steps=4))
    wider = chain_test(Chain(dimension=8, patterns=6, prompt_length=5))
    for tests, lengths, message in (([TEST], [6], r"lengths must lie in \[1, 5\], got \[6\]"),
                                    ([TRAINING], [2], "partly_solved must be false in a test, got True"),
                                    ([longer], [2], "reasoning_steps must be those of the model, 3, got 4"),
                                    ([wider], [2], "dimension must be that of the model, 9, got 8"),
                                    ([Classification()], [2], "test must be chain prompts, got 'Classification'"),
                                    ([], [2], "tests must be at least one"),
                                    ([TEST], [], "lengths must be at least one")):
        with pytest.raises(SpecError, match=message):
            chain_errors([model], tests, lengths)
    vectors = TEST.pattern_vectors()
    with pytest.raises(SpecError, match="prompts must be of a test"):
        reason(model, TRAINING.sample(0, 18), vectors)
    with pytest.raises(SpecError, match="vectors must be patterns of dimension 9"):
        reason(model, TEST.sample(0, 18), vectors[:, :3])
