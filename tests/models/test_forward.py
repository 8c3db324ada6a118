"""Columns are as wide as an embedding says; `forward`, which cuts or pads them, returns what `apply` returns."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from iclab import (
    GPT2,
    ChainAttention,
    ChainEmbedding,
    Classification,
    GatedAttention,
    LabelEmbedding,
    Mamba2Block,
    MambaBlock,
    SoftmaxAttention,
    SoftmaxMLP,
)
from iclab.models.forward import ALIGNMENT, forward, reader
from iclab.prompts.chain import Chain

LABELS = Classification(dimension=10, relevant_patterns=4, irrelevant_patterns=3)
CHAINS = Chain(dimension=10, patterns=6, prompt_length=3)
NARROW, WIDE = LabelEmbedding(size=5, norm=2.0), LabelEmbedding(size=30, norm=2.0)
CASES = {
    "scalar label": (GatedAttention(), LABELS), "softmax": (SoftmaxMLP(embedding=NARROW), LABELS),
    "softmax, wide": (SoftmaxMLP(embedding=WIDE), LABELS), "gpt2": (GPT2(size=8, layers=2, embedding=NARROW), LABELS),
    "gpt2, wide": (GPT2(size=8, layers=2, embedding=WIDE), LABELS),
    "mamba block": (MambaBlock(size=8), LABELS), "mamba2 block": (Mamba2Block(size=8, embedding=WIDE), LABELS),
    "attention": (SoftmaxAttention(size=8), LABELS),
    "mamba": (GatedAttention(layers=2, embedding=NARROW), LABELS),
    "channels": (GatedAttention(layers=2, gate_per_channel=True, embedding=NARROW), LABELS),
    "channels, wide": (GatedAttention(layers=2, gate_per_channel=True, embedding=WIDE), LABELS),
    "gla": (GatedAttention(member="gla", layers=2, embedding=NARROW), LABELS),
    "gla, wide": (GatedAttention(member="gla", embedding=WIDE), LABELS),
    "chains": (ChainAttention(), CHAINS), "chains, no key positions": (ChainAttention(key_positions=False), CHAINS),
    "chains, mamba": (GatedAttention(embedding=ChainEmbedding(norm=0.5)), CHAINS),
}


@pytest.mark.parametrize("embedding", [LabelEmbedding(), NARROW, WIDE, ChainEmbedding(), ChainEmbedding(steps=5)])
@pytest.mark.parametrize("dimension", [9, 10, 30])
def test_columns_are_as_wide_as_they_say(embedding, dimension):
    if embedding.reads == ("step",):
        prompts = Chain(dimension=dimension, patterns=6, prompt_length=3, reasoning_steps=embedding.steps)
    else:
        prompts = Classification(dimension=dimension, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=0)
    columns = jax.eval_shape(lambda: jax.vmap(embedding.columns)(prompts.sample(0, 2)))
    assert columns.shape[2] == embedding.width(dimension)


@pytest.mark.parametrize("name", CASES)
def test_forward_is_apply(float64, name):
    model, prompts = CASES[name]
    random = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: np.asarray(leaf) + 0.1 * random.normal(size=leaf.shape),
                          model.init(jax.random.key(0), 10))
    prompt = jax.tree.map(lambda field: field[0], prompts.sample(0, 1))
    assert reader(model, 10).width(10) % ALIGNMENT == 0
    assert reader(model, 10).width(10) != model.embedding.width(10)

    def plain(params):
        output, seen = model.apply(params, model.embedding.columns(prompt))
        return (output**2).sum(), (output, seen)

    def fast(params):
        output, seen = forward(model, params, prompt)
        return (output**2).sum(), (output, seen)

    plainly, fastly = (jax.jit(jax.value_and_grad(function, has_aux=True))(params) for function in (plain, fast))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), plainly, fastly)
