"""GPT-2: causal, positions counted from the query, trainable."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import GPT2, Classification, IclabError, LabelEmbedding, Run, SpecError, Training, train

MODEL = GPT2(layers=3, heads=2, size=64, positions=21)


def test_only_the_requested_tokens_need_be_computed():
    params = MODEL.init(jax.random.key(0), 30)
    h = jax.random.normal(jax.random.key(1), (21, 64))
    whole, query = (jax.jit(partial(MODEL.stream, asked=count))(params, h) for count in (None, 1))
    np.testing.assert_allclose(query[0][0], whole[0][-1], atol=1e-5)
    np.testing.assert_allclose(query[1].scores, whole[1].scores, atol=1e-6)


def test_only_the_past_is_read_and_positions_count_from_the_query():
    random = np.random.default_rng(0)
    params = MODEL.init(jax.random.key(0), 30)
    h = jnp.asarray(random.normal(size=(21, 64)), jnp.float32)
    changed = h.at[15:].set(0.0)
    stream = jax.jit(MODEL.stream)
    np.testing.assert_allclose(stream(params, h)[0][:15], stream(params, changed)[0][:15], atol=1e-6)
    columns = jnp.asarray(random.normal(size=(21, 60)), jnp.float32)
    longer = GPT2(positions=40)
    shifted = params._replace(positions=jnp.concatenate([jnp.full((19, 64), 7.0), params.positions]))
    np.testing.assert_allclose(jax.jit(MODEL.apply)(params, columns)[0], jax.jit(longer.apply)(shifted, columns)[0],
                               rtol=1e-5)
    with pytest.raises(IclabError, match="prompt_length must be below positions = 21, got 21"):
        MODEL.apply(params, jnp.zeros((22, 60)))


def test_it_learns():
    prompts = Classification(dimension=9, relevant_patterns=2, irrelevant_patterns=3, outlier_patterns=0,
                             prompt_length=6)
    model = GPT2(layers=1, heads=1, size=16, positions=7, embedding=LabelEmbedding(size=4, norm=3.0))
    run = Run(model=model, prompts=prompts,
              training=Training(steps=400, batch_size=32, optimizer="adam", learning_rate=3e-3, clip_norm=1.0))
    trained = train(run)
    assert trained.loss[-1] < 0.5 * trained.loss[0]


def test_bad_fields_are_named():
    with pytest.raises(SpecError, match="size must be a multiple of heads = 2, got 63"):
        GPT2(size=63)
