"""Columns leave out label coordinates that are always 0; every model reads them as if they were there."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import GPT2, Classification, GatedAttention, LabelEmbedding, SoftmaxMLP

VECTOR = LabelEmbedding(size=5, norm=2.0)
MODELS = {"softmax": SoftmaxMLP(embedding=VECTOR), "gpt2": GPT2(embedding=VECTOR),
          "mamba": GatedAttention(layers=2, embedding=VECTOR),
          "channels": GatedAttention(layers=2, gate_per_channel=True, embedding=VECTOR),
          "gla": GatedAttention(member="gla", layers=2, embedding=VECTOR)}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_left_out_coordinates_are_zeros(model):
    params = model.init(jax.random.key(0), 10)
    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    params = tree.unflatten([leaf + 0.1 * jax.random.normal(key, leaf.shape) for leaf, key in zip(leaves, keys,
                                                                                                  strict=True)])
    prompts = Classification(dimension=10, relevant_patterns=4, irrelevant_patterns=3).sample(0, 3)
    for x, y in zip(prompts.x, prompts.y, strict=True):
        short = VECTOR.columns(x, y)
        assert short.shape == (21, 16)
        whole = jnp.concatenate([x, 2.0 * y[:, None], jnp.zeros((21, 4))], axis=1)
        np.testing.assert_allclose(model.apply(params, short)[0], model.apply(params, whole)[0], rtol=2e-5, atol=1e-5)
