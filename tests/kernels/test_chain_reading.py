"""The kernel that decodes chains, against the definition in double precision; every term of it matters."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iclab import Chain, ChainAttention, ChainEmbedding, Run, Training, chain_test, reason, replace, train
from iclab.kernels import chain_reading
from iclab.kernels.chain_reading import decode_prompts
from iclab.kernels.fitting import decoding_misfit
from iclab.probes.reasoning import at_once, chain_of_thought
from iclab.prompts.transitions import weak_step

PROMPTS = 60


def drawn(dimension, patterns, steps, examples, noise, seed):
    training = Chain(dimension=dimension, patterns=patterns, reasoning_steps=steps, prompt_length=examples)
    test = chain_test(training, patterns=4, transitions=weak_step(0.4, 0.5, patterns=4, steps=steps),
                      noise_norm=noise)
    batch = test.sample(seed, PROMPTS).numpy()
    return batch, np.asarray(test.pattern_vectors(), float)


def by_definition(model, W, batch, vectors, direct):
    from iclab.models.chain_attention import ChainParams

    lengths = ((batch.x.shape[1] - 1) // model.embedding.steps,)
    with jax.enable_x64(True):
        def one(prompt):
            if direct:
                return at_once(model, ChainParams(W), prompt, vectors, lengths)
            return chain_of_thought(model, ChainParams(W), prompt, vectors, lengths).answers[0]

        return np.asarray(jax.vmap(one)(jax.tree.map(
            lambda leaf: np.asarray(leaf, float if np.asarray(leaf).dtype.kind == "f" else None), batch)))


def weights(dimension, steps, seed):
    """Weights of which every part matters: inputs, outputs and codes of columns, for inputs and codes of queries."""
    W = 0.8 * np.random.default_rng(seed).normal(size=(2 * dimension + steps,) * 2)
    return W + np.diag([1.0] * dimension + [0.0] * dimension + [1.0] * steps)


@settings(max_examples=10, deadline=None)
@given(dimension=st.sampled_from([6, 17]), steps=st.sampled_from([1, 3]), examples=st.integers(1, 9),
       direct=st.booleans(),
       keys=st.booleans(), noise=st.sampled_from([None, 0.3]), norm=st.sampled_from([0.7, 1.0]),
       seed=st.integers(0, 99))
@pytest.mark.slow
def test_answers_are_those_of_the_definition(dimension, steps, examples, direct, keys, noise, norm, seed):
    model = ChainAttention(key_positions=keys, embedding=ChainEmbedding(steps=steps, norm=norm))
    batch, vectors = drawn(dimension, 5, steps, examples, noise, seed)
    W = weights(dimension, steps, seed)
    fields = [np.asarray(field, float) for field in (batch.x, batch.y)]
    answers = decode_prompts(model, W, *fields, batch.step, vectors, direct)
    np.testing.assert_array_equal(answers, by_definition(model, W, batch, vectors, direct))


@pytest.mark.parametrize(("part", "direct"), [
    *((part, direct) for part in ("inputs", "outputs", "query's code", "query's input") for direct in (False, True)),
    ("codes", False)])  # the columns that decide a direct answer all have the same code
def test_answers_depend_on_every_part_of_the_weights(part, direct):
    """So that the comparison above notices a dropped term."""
    d, K = 9, 3
    model, W = ChainAttention(), weights(d, K, 0)
    batch, vectors = drawn(d, 6, K, 6, 0.3, 1)
    fields = [np.asarray(field, float) for field in (batch.x, batch.y)]
    without = W.copy()
    rows = {"inputs": slice(0, d), "outputs": slice(d, 2 * d), "codes": slice(2 * d, None)}
    if part in rows:
        without[rows[part]] = 0.0
    else:
        without[:, slice(2 * d, None) if "code" in part else slice(0, d)] = 0.0
    answers = [decode_prompts(model, weight, *fields, batch.step, vectors, direct) for weight in (W, without)]
    assert (answers[0] != answers[1]).any()


def test_reason_decodes_by_the_kernel_and_by_xla_alike(monkeypatch):
    prompts = Chain(dimension=9, patterns=6, prompt_length=5)
    run = Run(model=ChainAttention(), prompts=prompts, training=Training(
        steps=100, learning_rate=10.0, loss="squared", batch_size=18))
    trained, calls = train(run), []
    test = chain_test(prompts, patterns=4, noise_norm=0.2)
    batch, vectors = test.sample(0, 101), test.pattern_vectors()
    decode = chain_reading.decode_prompts
    monkeypatch.setattr(chain_reading, "decode_prompts", lambda *args: (calls.append(1), decode(*args))[1])
    slow = replace(trained, run=replace(run, training=replace(run.training, backend="xla")))
    for direct in (False, True):
        calls.clear()
        fused = reason(trained, batch, vectors, direct=direct)
        assert calls
        calls.clear()
        assert (fused == reason(slow, batch, vectors, direct=direct)).mean() > 0.99  # but for ties
        assert not calls


def test_other_models_are_not_for_the_kernel():
    class Mine(ChainAttention):
        pass

    assert decoding_misfit(ChainAttention()) == ""
    assert "ChainAttention" in decoding_misfit(Mine())
