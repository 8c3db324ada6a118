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
    random = np.random.default_rng(0)
    params = jax.tree.map(lambda leaf: np.asarray(leaf) + 0.1 * random.normal(size=leaf.shape).astype("f"), params)
    prompts = Classification(dimension=10, relevant_patterns=4, irrelevant_patterns=3).sample(0, 3)
    apply = jax.jit(lambda columns: jax.vmap(lambda c: model.apply(params, c)[0])(columns))
    short = jax.vmap(VECTOR.columns)(prompts)
    assert short.shape == (3, 21, 16)
    whole = jnp.concatenate([prompts.x, 2.0 * prompts.y[..., None], jnp.zeros((3, 21, 4))], axis=2)
    np.testing.assert_allclose(apply(short), apply(whole), rtol=2e-5, atol=1e-5)
