"""The kernel that draws test chains and answers them, against the definition in double precision."""

from __future__ import annotations

from functools import partial

import jax
import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iclab import Chain, ChainAttention, ChainEmbedding, Run, Training, chain_errors, chain_test, replace
from iclab.core.spec import lower
from iclab.kernels import chain_answers
from iclab.kernels.chain_answers import answers_of
from iclab.kernels.chain_questions import BLOCK, draw_questions, lay_out, questions_of
from iclab.models.chain_attention import ChainParams
from iclab.probes.error_rate import batch_keys
from iclab.probes.reasoning import at_once, chain_of_thought, majority_vote
from iclab.prompts.transitions import as_transitions
from iclab.training import Trained

BATCH, BATCHES = 19, 2


@st.composite
def families(draw):
    """Small families of tests, with and without wrong steps, noise and mixtures."""
    patterns = draw(st.integers(2, 7))
    steps = draw(st.integers(1, min(patterns - 1, 4)))
    rest = draw(st.sampled_from([0, 1, 5, 35]))
    transitions = np.random.default_rng(draw(st.integers(0, 9))).dirichlet(np.full(patterns, 0.5), (steps, patterns))
    return chain_test(Chain(dimension=patterns + rest, patterns=patterns, reasoning_steps=steps),
                      patterns=patterns, prompt_length=draw(st.sampled_from([1, 4, 19])),
                      noise_norm=draw(st.sampled_from([None, 0.0, 1.0])) if rest else None,
                      matching_fraction=draw(st.sampled_from([0.1, 0.6, 1.0])),
                      transitions=as_transitions(transitions) if draw(st.booleans()) else None,
                      **({} if draw(st.booleans()) else {"pattern_mixtures": None}))


NOISY = chain_test(Chain(dimension=43, patterns=5, reasoning_steps=3), patterns=5, prompt_length=19, noise_norm=1.0,
                   transitions=as_transitions(np.random.default_rng(0).dirichlet(np.full(5, 0.5), (3, 5))))
"""Two words of noise per token, three blocks of examples."""


def weights(test, seed=0):
    """Weights of which every part matters: inputs, outputs and codes of columns, for inputs and codes of queries."""
    return 0.7 * np.random.default_rng(seed).normal(size=(2 * test.dimension + test.reasoning_steps,) * 2)


def model_of(test, key_positions=True, norm=1.0):
    return ChainAttention(key_positions=key_positions, embedding=ChainEmbedding(steps=test.reasoning_steps, norm=norm))


@partial(jax.jit, static_argnums=1)
def drawn(test, size, keys):
    """The prompts of all batches, by the family."""
    batches = jax.vmap(lambda key: test.prompts(test.bits(key, size)))(keys)
    return jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), batches)


@partial(jax.jit, static_argnums=3)
def by_definition(model, W, test, lengths, prompts):
    """Answers as the kernel gives them, without what they begin with."""
    def one(prompt):
        vectors = test.pattern_vectors()
        voted, voted_direct = majority_vote(prompt, test.patterns, lengths)
        return (chain_of_thought(model, ChainParams(W), prompt, vectors, lengths).answers,
                at_once(model, ChainParams(W), prompt, vectors, lengths)[:, None], voted, voted_direct[:, None],
                prompt.truth.chain)

    return jax.vmap(one)(prompts)


def both_answers(test, model, W, lengths, seed=0):
    keys = batch_keys(seed, BATCHES)
    with jax.enable_x64(True):
        family = lower(test)
        expected = by_definition(lower(model), W, family, lengths, drawn(family, BATCH, keys))
    return answers_of(model, W, test, lengths, keys, BATCH), expected


def assert_same(answers, expected):
    for mine, theirs in zip(answers[:-1], expected[:-1], strict=True):
        np.testing.assert_array_equal(mine[..., 1:], theirs)
    np.testing.assert_array_equal(answers.truth, expected[-1])


@numba.njit
def one_question(questions, high, low, number):
    """Draw the sixteen questions from a number on, and lay out the first."""
    draw_questions(questions, high, low, number)
    lay_out(questions, 0)


@settings(max_examples=3)
@given(families(), st.integers(0, 2**32 - 1))
@example(NOISY, 1)
def test_prompts_are_those_of_the_family(test, seed):
    keys, K, E, M = batch_keys(seed, BATCHES), test.reasoning_steps, test.prompt_length, test.patterns
    laid = []
    with jax.enable_x64(True):
        prompts = jax.device_get(drawn(lower(replace(test, pattern_mixtures=None)), BATCH, keys))
    questions, count = questions_of(test, BATCH, np.float64), BATCH * BATCHES
    for number in range(count):
        one_question(questions, keys.high[number // BATCH], keys.low[number // BATCH], number % BATCH)
        laid.append([field.copy() for field in questions.prompt])
    tokens, signs, noisy, chain = (np.stack(fields) for fields in zip(*laid, strict=True))

    def laid_out(field):
        """(..., examples in their order, tokens)."""
        blocks = np.moveaxis(field.reshape(*field.shape[:-1], -1, K + 1, BLOCK), -2, -1)
        return blocks.reshape(*field.shape[:-1], -1, K + 1)[..., :E, :][..., ::-1, :]

    np.testing.assert_array_equal(chain, prompts.truth.chain)
    mine = laid_out(tokens)
    for tokens_of_columns, field in ((mine[..., :-1], prompts.truth.pattern), (mine[..., 1:], prompts.truth.answer)):
        np.testing.assert_array_equal(tokens_of_columns.reshape(count, -1), field[:, :-1])
    if test.noise_norm is not None:
        size = test.noise_norm / np.sqrt(test.dimension - M)
        bits = np.stack([(laid_out(signs)[:, p // 32] >> np.uint32(p % 32)) & 1 for p in range(test.dimension - M)], -1)
        noise = (2.0 * bits - 1.0) * size * laid_out(noisy)[..., None]
        for shown, field in ((noise[:, :, :-1], prompts.x), (noise[:, :, 1:], prompts.y)):
            np.testing.assert_allclose(shown.reshape(count, E * K, -1), field[:, :-1, M:], rtol=1e-6)


@settings(max_examples=3)
@given(families(), st.booleans(), st.sampled_from([0.5, 1.0]), st.integers(0, 99))
@example(NOISY, True, 0.5, 0)
@example(NOISY, False, 1.0, 0)
@example(replace(NOISY, noise_norm=None, pattern_mixtures=None), True, 1.0, 0)
@pytest.mark.slow
def test_answers_are_those_of_the_definition(test, key_positions, norm, seed):
    lengths = tuple({1, test.prompt_length, 1 + seed % test.prompt_length})
    assert_same(*both_answers(test, model_of(test, key_positions, norm), weights(test, seed), lengths, seed))


def test_scores_far_below_the_highest_count_in_short_prompts():
    """Where, of the short prompt's weights, single precision leaves nothing beside the long one's."""
    W, lengths = 40.0 * weights(NOISY), (1, 2, 5, 19)
    double, expected = both_answers(NOISY, model_of(NOISY), W, lengths)
    assert_same(double, expected)
    single = answers_of(model_of(NOISY), W.astype(np.float32), NOISY, lengths, batch_keys(0, BATCHES), BATCH)
    for mine, theirs in zip(single, double, strict=True):
        assert (mine == theirs).mean() > 0.99  # but for ties


@pytest.mark.parametrize("part", ["inputs", "outputs", "codes", "query's code", "query's input", "noise of inputs",
                                  "noise of outputs"])
def test_answers_depend_on_every_part(part):
    """So that the comparison above notices a dropped term."""
    test, W, keys = replace(NOISY, pattern_mixtures=None), weights(NOISY), batch_keys(0, BATCHES)
    d, M = test.dimension, test.patterns
    without = W.copy()
    rows = {"inputs": slice(0, M), "outputs": slice(d, d + M), "codes": slice(2 * d, None),
            "noise of inputs": slice(M, d), "noise of outputs": slice(d + M, 2 * d)}
    if part in rows:
        without[rows[part]] = 0.0
    else:
        without[:, slice(2 * d, None) if "code" in part else slice(0, d)] = 0.0
    whole, changed = (answers_of(model_of(test), weight, test, (19,), keys, BATCH) for weight in (W, without))
    assert (whole.thought != changed.thought).any()
    # The columns that decide a direct answer all have the same code.
    assert (whole.direct != changed.direct).any() == (part != "codes")
    np.testing.assert_array_equal(whole.voted, changed.voted)


def trained(test, backend="auto", seed=0):
    run = Run(model=model_of(test), prompts=Chain(dimension=test.dimension, patterns=5), init_seed=seed,
              training=Training(backend=backend, loss="squared"))
    return Trained(run, ChainParams(weights(test, seed).astype(np.float32)), None, np.array([0]), np.array([1.0]))


def test_errors_by_the_kernel_are_those_by_xla(monkeypatch):
    other = replace(NOISY, matching_fraction=0.3, noise_norm=None)
    calls, answer = [], chain_answers.answers_of
    monkeypatch.setattr(chain_answers, "answers_of", lambda *args: (calls.append(1), answer(*args))[1])
    errors = []
    for backend in ("auto", "xla"):
        calls.clear()
        models = [trained(NOISY, backend, seed) for seed in range(2)]
        errors.append(chain_errors(models, [NOISY, other], [19, 3], count=300))
        assert bool(calls) == (backend == "auto")
    for mine, theirs in zip(*errors, strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, atol=0.01)  # but for ties
    np.testing.assert_allclose(errors[0].vote_steps, errors[1].vote_steps, rtol=1e-5)
    np.testing.assert_allclose(errors[0].vote_icl, errors[1].vote_icl, rtol=1e-5)


@pytest.mark.parametrize("cores", [1, 3])
def test_errors_do_not_depend_on_the_number_of_threads(monkeypatch, cores):
    expected = chain_errors([trained(NOISY)], [NOISY], [19, 3], count=700)
    monkeypatch.setattr("iclab.probes.chains.cores", lambda: cores)
    for mine, theirs in zip(chain_errors([trained(NOISY)], [NOISY], [19, 3], count=700), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_weights_that_are_not_numbers_answer_as_the_definition():
    assert_same(*both_answers(NOISY, model_of(NOISY), np.nan * weights(NOISY), (1, 19)))
    assert not answers_of(model_of(NOISY), np.nan * weights(NOISY).astype("f"), NOISY, (1, 19), batch_keys(0, 1), 9
                          ).thought[..., 1:].any()


def test_a_test_of_another_class_is_judged_by_xla():
    from iclab.probes.chains import ChainJob

    class Mine(Chain):
        pass

    job = ChainJob(trained(NOISY), NOISY, (1,), batch_keys(0, 1))
    assert job.fits_kernel
    assert not job._replace(test=Mine(dimension=9, patterns=4)).fits_kernel
    assert not job._replace(trained=trained(NOISY, "xla")).fits_kernel
