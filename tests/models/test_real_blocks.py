"""The real blocks: fast forms equal the recurrences that define them, starts are the released ones, only the past is
read."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import pytest

from iclab import ChainEmbedding, Mamba2Block, MambaBlock, SoftmaxAttention, SpecError
from iclab.models.mamba2_block import HeadStreams, paired, scan_heads
from iclab.models.mamba_block import Selected, last_state, scan_states
from iclab.models.protocol import ShowsGates


@pytest.fixture
def random():
    return np.random.default_rng(0)


def same_at_the_end(fast, defining, chosen, random):
    """Values and gradients of two forms, at the last token."""
    def of(form):
        def value(chosen):
            out = form(chosen)[-1]
            return (out * slope).sum(), out

        return jax.jit(jax.grad(value, has_aux=True))(chosen)

    slope = random.normal(size=jax.eval_shape(defining, chosen).shape[1:])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), of(fast), of(defining))


def test_mamba_at_the_query_is_its_recurrence(float64, random):
    chosen = Selected(random.exponential(size=(9, 4)), -random.exponential(size=(4, 3)), random.normal(size=(9, 3)),
                      random.normal(size=(9, 3)), random.normal(size=(9, 4)))
    same_at_the_end(last_state, scan_states, chosen, random)


def test_mamba2_over_pairs_is_its_recurrence(float64, random):
    streams = HeadStreams(random.exponential(size=(9, 4)), -random.exponential(size=4), random.normal(size=(9, 2, 3)),
                          random.normal(size=(9, 2, 3)), random.normal(size=(9, 4, 2)))
    same_at_the_end(partial(paired, asked=1), scan_heads, streams, random)
    np.testing.assert_allclose(jax.jit(partial(paired, asked=4))(streams), scan_heads(streams)[-4:], rtol=1e-9)


@pytest.mark.parametrize("model", [MambaBlock(size=8), Mamba2Block(size=8)], ids=["mamba", "mamba2"])
def test_what_is_seen_of_the_query(float64, random, model):
    params = model.init(jax.random.key(0), 9)
    _, seen = jax.jit(model.apply)(params, random.normal(size=(6, 10)))
    assert seen.scores.shape == seen.gates.shape == seen.steps.shape == (1, 6)
    assert isinstance(seen, ShowsGates)
    np.testing.assert_allclose(seen.gates[:, -1], seen.steps[:, -1], rtol=1e-9)  # nothing decays at the query itself
    assert (seen.gates[:, :-1] < seen.steps[:, :-1]).all()


def test_starts_are_those_of_the_released_code():
    mamba, mamba2 = (model.init(jax.random.key(0), 30).blocks for model in (MambaBlock(), Mamba2Block()))
    np.testing.assert_allclose(np.exp(mamba.A_log[0, 0]), np.arange(1, 17), rtol=1e-5)
    for bias in (mamba.dt_proj.b, mamba2.dt_bias):
        steps = np.log1p(np.exp(bias))
        assert steps.min() >= 0.999e-3
        assert steps.max() <= 0.1001
    assert np.exp(mamba2.A_log).min() >= 1
    assert np.exp(mamba2.A_log).max() <= 16


def test_bad_fields_are_named():
    for make, message in (
            (lambda: MambaBlock(rank=0), "rank must be a whole number >= 1, got 0"),
            (lambda: MambaBlock(embedding=ChainEmbedding()), "embedding must be a LabelEmbedding"),
            (lambda: Mamba2Block(heads=4, groups=3), "heads must be a multiple of groups = 3, got 4"),
            (lambda: Mamba2Block(heads=5), "heads must divide size . expand = 64, got 5"),
            (lambda: SoftmaxAttention(heads=5), "size must be a multiple of heads = 5, got 32")):
        with pytest.raises(SpecError, match=message):
            make()
