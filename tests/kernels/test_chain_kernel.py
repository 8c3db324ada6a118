"""The fused kernel of the cot paper: its prompts are the family's, its steps those of the model in double precision."""

from __future__ import annotations

import jax
import numba
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iclab import Chain, ChainAttention, ChainEmbedding, Run, Training, replace
from iclab.kernels import chains_fused
from iclab.kernels.chain_draw import chain_draw_of, columns_of, draw_chains, empty_chains, rank_words
from iclab.kernels.chain_pack import ChainPack
from iclab.models.forward import reader
from iclab.papers.cot.settings import a_run
from iclab.prompts.chain import Course
from iclab.prompts.randomness import Key
from iclab.prompts.transitions import as_transitions, weak_step
from iclab.training import train_many
from iclab.training.sgd import Setup, begin, draw_columns, sgd_step, step_keys


@pytest.fixture(autouse=True)
def compiled_without_optimisations(compiled_cheaply):
    """Programs of one small step each: optimising them would cost more than it gains."""
    jax.config.update("jax_disable_most_optimizations", True)


def random_matrices(steps, patterns, seed):
    return as_transitions(np.random.default_rng(seed).dirichlet(np.full(patterns, 0.5), (steps, patterns)))


THREE_STEPS = Chain(dimension=9, patterns=7, reasoning_steps=3, prompt_length=6)


@st.composite
def chain_prompts(draw):
    """Small families, with and without transition matrices."""
    patterns = draw(st.integers(2, 9))
    steps = draw(st.integers(1, min(patterns - 1, 4)))
    kind = draw(st.sampled_from(["none", "weak", "random"]))
    transitions = None
    if kind == "weak" and patterns > 2 and steps > 1:
        transitions = weak_step(0.4, 0.7, steps=steps, patterns=patterns, weak=steps)
    elif kind != "none":
        transitions = random_matrices(steps, patterns, draw(st.integers(0, 99)))
    return Chain(dimension=patterns + draw(st.integers(0, 3)), patterns=patterns, reasoning_steps=steps,
                 prompt_length=draw(st.integers(1, 7)), matching_fraction=draw(st.sampled_from([0.1, 0.4, 1.0])),
                 transitions=transitions)


def one_run(prompts, batch=17, scale=1.0, **model):
    norm = model.pop("norm", 1.0)
    embedding = ChainEmbedding(steps=prompts.reasoning_steps, norm=norm)
    return Run(model=ChainAttention(embedding=embedding, init_scale=scale, **model), prompts=prompts,
               training=Training(steps=3, batch_size=batch, learning_rate=2.0, loss="squared"))


def key_of(seed):
    keys = step_keys(seed, 0, 1)
    return Key(keys.high[0], keys.low[0])


def drawn(run, key, real):
    """A batch as the kernel draws it."""
    draw = chain_draw_of(run.prompts, run.training.batch_size, real)
    chains, words = empty_chains(draw)
    draw_chains(draw, key.high, key.low, chains, words)
    return draw, chains


def family_bits(run, key):
    """The courses of a batch, drawn by the family."""
    prompts, batch = Setup.of(run).prompts, run.training.batch_size
    return jax.device_get(jax.jit(lambda key: prompts.bits(key, batch))(key))


def reference_step(run, bits, start):
    """Loss and weights after one step on these courses, by the model."""
    setup = Setup.of(run)
    embedding = reader(setup.model, run.prompts.dimension)
    state, loss = jax.jit(lambda bits, start: sgd_step(setup, start, *draw_columns(setup.prompts, embedding, bits)))(
        bits, start)
    return float(loss), np.asarray(state.params.W)


def kernel_pack(run, start):
    return ChainPack([run], [jax.tree.map(np.asarray, start.params)], shared=True)


def assert_same_step(given, expected, W, tolerance=1e-12):
    (loss, after), (expected_loss, expected_after) = given, expected
    assert loss == pytest.approx(expected_loss, rel=tolerance)
    # Where all examples have one answer, nothing should change, and rounding may.
    assert np.abs(after - expected_after).max() <= tolerance * max(np.abs(expected_after - W).max(), 1e-2)


@settings(max_examples=8)
@given(chain_prompts(), st.integers(1, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_prompts_are_those_of_the_family(prompts, batch, seed, double):
    run, key = one_run(prompts, batch), key_of(seed)
    with jax.enable_x64(double):
        bits = family_bits(run, key)
    draw, chains = drawn(run, key, np.float64 if double else np.float32)
    for mine, field in zip(columns_of(draw, chains), (bits.pattern, bits.answer, bits.step), strict=True):
        np.testing.assert_array_equal(mine, field)
    numbers = np.arange(batch)
    np.testing.assert_array_equal(chains.asked[:batch], bits.asked)
    np.testing.assert_array_equal(chains.query[:batch], bits.pattern[:, -1])
    np.testing.assert_array_equal(chains.label[:batch], bits.chain[numbers, bits.asked + 1])
    # Every column is counted once, wherever it stands.
    shown = (bits.step[:, :-1] >= 0).sum(axis=1)
    np.testing.assert_array_equal(chains.weight[:, :batch].sum(axis=0), shown)


def test_equal_words_have_equal_ranks():
    words = np.random.default_rng(0).integers(0, 9, (11, 16)).astype(np.uint32)
    rank = np.zeros((10, 16), np.int32)
    rank_words(words, rank)
    np.testing.assert_array_equal(rank, (words[:10, None] > words[None, :10]).sum(axis=1))


@settings(max_examples=3)
@given(chain_prompts(), st.integers(1, 40), st.booleans(), st.sampled_from([0.5, 1.0, 3.0]))
@example(THREE_STEPS, 40, True, 3.0)
@example(THREE_STEPS, 21, False, 0.5)
@example(replace(THREE_STEPS, transitions=random_matrices(3, 7, 1)), 40, True, 3.0)
def test_a_step_is_the_models(prompts, batch, key_positions, norm):
    run, key = one_run(prompts, batch, key_positions=key_positions, norm=norm), key_of(batch)
    with jax.enable_x64(True):
        start = begin(run)
        expected = reference_step(run, family_bits(run, key), start)
    pack = kernel_pack(run, start)
    losses = pack.advance((key.high[None], key.low[None]))
    assert_same_step((losses[0, 0], pack.params()[0].W), expected, np.asarray(start.params.W))


@numba.njit
def one_step(W, model, draw, chains, scratch):
    return chains_fused.step(W, model, draw, chains, scratch)


@pytest.mark.parametrize("transitions", [None, random_matrices(2, 5, 3)], ids=["exact", "wrong steps"])
def test_places_with_equal_ranks_share_a_pattern(transitions):
    """As rare as equal words, and still the family's prompt."""
    run = one_run(Chain(dimension=6, patterns=5, reasoning_steps=2, prompt_length=6, transitions=transitions))
    draw, chains = drawn(run, key_of(5), np.float64)
    chains.rank[3] = chains.rank[1]
    own = chains.rank[draw.route[:, chains.place[0, -1]], np.arange(chains.rank.shape[1])][:, :17]
    chains.query[:17], chains.label[:17] = (own[chains.asked[:17] + more, np.arange(17)] for more in (0, 1))
    with jax.enable_x64(True):
        start = begin(run)
        unused = Key(*np.zeros((2, 17), np.uint32))
        bits = Course(*columns_of(draw, chains), own.T, chains.asked[:17], unused)
        expected = reference_step(run, bits, start)
    pack = kernel_pack(run, start)
    model = chains_fused.ChainModel(*(numbers[0] for numbers in pack.models))
    loss = one_step(pack.W[0], model, draw, chains, pack.memory[2])
    assert_same_step((loss, pack.params()[0].W), expected, np.asarray(start.params.W))


def test_columns_that_a_prompt_lacks_do_not_count_even_with_the_highest_score():
    run, key = one_run(Chain(dimension=9, patterns=9, prompt_length=2), batch=27, scale=300.0), key_of(1)
    start = begin(run)
    expected, _ = reference_step(run, family_bits(run, key), start)
    losses = kernel_pack(run, start).advance((key.high[None], key.low[None]))
    assert losses[0, 0] == pytest.approx(expected, rel=1e-5)


def test_a_pack_trains_every_run_as_alone():
    run = one_run(Chain(dimension=7, patterns=6, prompt_length=4), scale=0.1)
    for shared in (True, False):
        runs = [replace(run, init_seed=seed, data_seed=0 if shared else seed,
                        training=replace(run.training, learning_rate=1.0 + seed)) for seed in range(3)]
        params = [jax.tree.map(np.asarray, begin(run).params) for run in runs]
        keys = step_keys(0 if shared else [0, 1, 2], 0, 20)
        pack = ChainPack(runs, params, shared)
        losses = np.concatenate([pack.advance(Key(*(words[..., part] for words in keys)))
                                 for part in (slice(0, 7), slice(7, 20))], axis=1)
        for r, mine in enumerate(runs):
            alone = ChainPack([mine], params[r:r + 1], True)
            expected = alone.advance(step_keys(mine.data_seed, 0, 20))
            np.testing.assert_array_equal(losses[r], expected[0])
            np.testing.assert_array_equal(pack.params()[r].W, alone.params()[0].W)


def test_a_training_of_the_paper_agrees_in_single_precision():
    steps = 60
    run = a_run(steps, record_every=10)
    run = replace(run, training=replace(run.training, backend="xla"))
    trained = train_many([run])[0]
    pack = kernel_pack(run, begin(run))
    losses = pack.advance(step_keys(run.data_seed, 0, steps))[0]
    W = np.asarray(trained.params.W)
    np.testing.assert_allclose(pack.params()[0].W, W, atol=1e-5 * np.abs(W).max())
    np.testing.assert_allclose(losses.reshape(-1, 10).mean(axis=1), trained.loss, rtol=1e-5)
