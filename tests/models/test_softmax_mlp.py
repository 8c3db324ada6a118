"""The softmax Transformer: its formula, its initial weights, what it learns."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import Classification, LabelEmbedding, Run, SoftmaxMLP, SpecError, Training, train
from iclab.training.losses import hinge

PROMPTS = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=0, prompt_length=6,
                         decisive_fraction=0.8)
MODEL = SoftmaxMLP(neurons=8, attention_size=7, embedding=LabelEmbedding(size=4, norm=3.0))


def random_weights(model, seed=0):
    random = np.random.default_rng(seed)
    shapes = jax.eval_shape(lambda: model.init(jax.random.key(0), PROMPTS.dimension))
    return jax.tree.map(lambda leaf: jnp.asarray(random.normal(size=leaf.shape)), shapes)


def by_hand(params, columns, neurons):
    """The paper's formula, a loop over examples."""
    query, context = columns[-1], columns[:-1]
    weights = jnp.exp(jnp.stack([(params.W_K @ p) @ (params.W_Q @ query) for p in context]))
    weights = weights / weights.sum()
    read = sum(weight * (params.W_V @ p) for weight, p in zip(weights, context, strict=True))
    hidden = params.W_O @ read
    signs = [1.0 if j < neurons // 2 else -1.0 for j in range(neurons)]
    return sum(sign / neurons * jnp.maximum(h, 0.0) for sign, h in zip(signs, hidden, strict=True)), weights, hidden


def test_the_formula_values_and_gradients(float64):
    params, batch = random_weights(MODEL), PROMPTS.sample(0, 3)
    apply, formula = jax.jit(MODEL.apply), jax.jit(partial(by_hand, neurons=8))
    slope, slope_by_hand = jax.jit(jax.grad(lambda p, c: MODEL.apply(p, c)[0])), jax.jit(
        jax.grad(lambda p, c: by_hand(p, c, 8)[0]))
    for i in range(3):
        columns = MODEL.embedding.columns(jax.tree.map(lambda field, i=i: field[i], batch))
        plain = columns[:, :13]  # without the zeros that pad the width
        output, seen = apply(params, columns)
        expected, weights, hidden = formula(params, plain)
        np.testing.assert_allclose(output, expected, rtol=1e-10)
        np.testing.assert_allclose(seen.scores[0, :-1], weights, rtol=1e-10)
        assert seen.scores[0, -1] == 0
        np.testing.assert_allclose(seen.hidden, hidden, rtol=1e-9)
        for a, b in zip(slope(params, columns), slope_by_hand(params, plain), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-12)


def test_the_initial_weights_are_the_papers():
    params = SoftmaxMLP(neurons=2000, init_scale=0.1).init(jax.random.key(0), 30)
    np.testing.assert_allclose(params.W_Q, 0.1 * np.diag([1.0] * 30 + [0.0] * 30), rtol=1e-6)
    np.testing.assert_array_equal(params.W_Q, params.W_K)
    np.testing.assert_allclose(params.W_V, 0.1 * np.eye(60), rtol=1e-6)
    assert params.W_O.shape == (2000, 60)
    assert float(params.W_O.std()) == pytest.approx(2000**-0.5, rel=0.02)


def test_it_learns_to_learn():
    prompts = Classification(irrelevant_patterns=24, outlier_patterns=0, decisive_fraction=0.8, tasks="cyclic:1")
    run = Run(model=SoftmaxMLP(), prompts=prompts, training=Training(steps=400, learning_rate=0.5))
    trained = train(run)
    assert trained.loss[-1] < 0.1 < trained.loss[0]


def test_bad_fields_are_named():
    with pytest.raises(SpecError, match="neurons must be"):
        SoftmaxMLP(neurons=1)
    assert float(hinge(jnp.array(2.0), jnp.array(1.0))) == 0
