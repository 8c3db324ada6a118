"""The kernel of the gated family against its model: draws, one step in double precision, long trainings."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iclab import Classification, GatedAttention, LabelEmbedding, Run, Training, replace, train_many
from iclab.core.spec import lower
from iclab.kernels.arithmetic import exponentials
from iclab.kernels.dictionary import axes_of, dictionary_of
from iclab.kernels.gated_pack import GatedPack
from iclab.kernels.tokens import draw_of, draw_tokens, empty_tokens
from iclab.prompts.randomness import Key
from iclab.training.sgd import Setup, begin, draw_columns, reader, sgd_step, step_keys

MEMBERS = ("linear", "mamba", "retnet", "gated_retention", "mamba2", "mamba2_step")
LENGTH = 5


@st.composite
def families(draw):
    """Everything that classification prompts can say, except dense noise and functions; of few shapes."""
    m1, m2, v = draw(st.sampled_from([(2, 0, 1), (4, 3, 2)]))
    mixed = draw(st.booleans())
    coefficients = sorted(draw(st.lists(st.floats(0.3, 2.0), min_size=2, max_size=2)))
    number = st.floats(-1.0, 1.0).filter(lambda x: abs(x) > 0.05)
    rows = st.lists(st.lists(number, min_size=m1, max_size=m1), min_size=3, max_size=3)
    own, width = draw(st.sampled_from([("outlier_mixtures", v), ("outlier_vectors", 11)]))
    outliers = st.lists(st.lists(number, min_size=width, max_size=width), min_size=2, max_size=2)
    return Classification(
        dimension=11, relevant_patterns=m1, irrelevant_patterns=m2, outlier_patterns=v, prompt_length=LENGTH,
        pattern_norm=draw(st.floats(0.5, 3.0)), irrelevant_scale=draw(st.floats(0.0, 2.0)),
        decisive_fraction=draw(st.sampled_from([1.0, 0.6])) if mixed or m1 > 2 else 1.0,
        outlier_fraction=draw(st.sampled_from([0.0, 0.5])), outlier_scale=draw(st.sampled_from([0.0, 2.0])),
        coefficient_low=coefficients[0], coefficient_high=coefficients[1],
        label_rule=draw(st.sampled_from(["flip", "target", "random"])),
        placement=draw(st.sampled_from(["random", "far", "close"])),
        tasks=draw(st.sampled_from(["all", "cyclic:1", ((0, 1),)])),
        pattern_mixtures=draw(rows) if mixed else None, **({own: draw(outliers)} if mixed else {}),
        rotation_seed=draw(st.sampled_from([None, 3])))


def columns_of(tokens, prompts, width, batch):
    """The columns that tokens of the dictionary stand for."""
    rows = dictionary_of(prompts)
    rows = (np.eye(len(axes_of(prompts, width))) if rows is None else rows) @ axes_of(prompts, width)
    columns = sum(c[:, None] * rows[np.minimum(i, len(rows) - 1)] for c, i in
                  zip((tokens.c_pattern, tokens.c_irrelevant, tokens.c_outlier),
                      (tokens.pattern, tokens.irrelevant, tokens.outlier), strict=True))
    columns = columns + tokens.c_label[:, None] * rows[-1]
    return columns.reshape(batch, -1, width)


OWN = Classification(dimension=11, relevant_patterns=4, irrelevant_patterns=3, outlier_patterns=0, prompt_length=LENGTH,
                     outlier_fraction=0.5, label_rule="flip", placement="close", rotation_seed=3,
                     outlier_vectors=np.random.default_rng(0).standard_normal((2, 11)))
"""Outliers that point anywhere."""


@settings(max_examples=12)
@example(OWN, 0, 16)
@given(families(), st.integers(0, 2**31), st.sampled_from([7, 16]))
def test_prompts_are_those_of_the_family(prompts, seed, batch):
    embedding = LabelEmbedding(norm=1.5)
    tokens, scratch = empty_tokens(batch, LENGTH + 1, np.float32)
    key = Key(np.uint32(seed), np.uint32(7))
    draw_tokens(draw_of(prompts, 1.5, np.float32), key.high, key.low, tokens, scratch)
    drawn = prompts.sample(key, batch)
    expected = jax.vmap(lower(embedding).columns)(drawn)
    np.testing.assert_allclose(columns_of(tokens, prompts, 12, batch), expected, rtol=1e-6, atol=2e-6)
    np.testing.assert_array_equal(tokens.label, drawn.label)
    for mine, theirs in ((tokens.pattern, drawn.truth.pattern),
                         (tokens.c_outlier != 0, drawn.truth.outlier & (prompts.outlier_scale > 0))):
        np.testing.assert_array_equal(mine.reshape(batch, -1), theirs)


@jax.jit
def one_step(setup, state, columns, label):
    return sgd_step(setup, state, columns, label)


@settings(max_examples=24)
@example(OWN, "mamba", "hinge", False, False, 0)
@given(families(), st.sampled_from(MEMBERS), st.sampled_from(["hinge", "squared", "logistic"]), st.booleans(),
       st.booleans(), st.integers(0, 2**20))
def test_a_step_is_that_of_the_model(prompts, member, loss, per_channel, normalise, seed):
    """From weights that are nowhere 0, in double precision; every gradient counts."""
    model = GatedAttention(member=member, normalise=normalise, gate_per_channel=per_channel, retention=0.7,
                           temperature=3.0, embedding=LabelEmbedding(size=2, norm=1.3))
    run = Run(model=model, prompts=prompts, data_seed=seed,
              training=Training(batch_size=12, learning_rate=0.3, loss=loss))
    with jax.enable_x64(True):
        state, setup, key = begin(run), Setup.of(run), step_keys(seed, 0, 1)
        rng = np.random.default_rng(seed)
        params = jax.tree.map(lambda leaf: np.asarray(leaf + 0.2 * rng.standard_normal(leaf.shape)), state.params)
        bits = setup.prompts.bits(Key(key.high[0], key.low[0]), 12)
        columns, label = draw_columns(setup.prompts, reader(setup.model, prompts.dimension), bits)
        after, expected_loss = one_step(setup, state._replace(params=params), columns, label)
        pack = GatedPack([run], [params], shared=True)
        losses = pack.advance(key)
    assert losses[0, 0] == pytest.approx(float(expected_loss), rel=1e-12, abs=1e-12)
    for name, start, mine, theirs in zip(("W_B", "W_C", "w", "a"), *(
            jax.tree.leaves(tree) for tree in (params, pack.params()[0], after.params)), strict=False):
        change = np.abs(np.asarray(theirs) - start).max(initial=0.0)
        np.testing.assert_allclose(mine, theirs, atol=1e-12 * max(change, 1.0), rtol=0, err_msg=name)


def test_exponentials_are_accurate_in_single_precision():
    x = np.linspace(-80, 80, 20_001, dtype=np.float32)
    e, log = exponentials(x)
    exact = x.astype(float)
    np.testing.assert_allclose(e, np.exp(exact), rtol=4e-7)
    np.testing.assert_allclose(log, np.log1p(np.exp(-np.abs(exact))), atol=2e-7)
    assert np.isfinite(exponentials(np.array([-1e30, 1e30], np.float32))[0]).all()


@pytest.mark.parametrize("member", MEMBERS)
def test_a_training_stays_with_the_compiled_model(member):
    prompts = Classification(dimension=12, relevant_patterns=4, irrelevant_patterns=4, outlier_patterns=2,
                             prompt_length=8, outlier_fraction=0.4)
    run = Run(model=GatedAttention(member=member), prompts=prompts, training=Training(
        steps=300, batch_size=32, learning_rate=0.05, record_every=100, backend="fused"))
    fused, xla = (train_many([replace(run, training=replace(run.training, backend=backend))])[0]
                  for backend in ("fused", "xla"))
    np.testing.assert_allclose(fused.loss, xla.loss, rtol=1e-4)
    for mine, theirs in zip(jax.tree.leaves(fused.params), jax.tree.leaves(xla.params), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-4 * np.abs(np.asarray(theirs)).max(initial=1.0))
