"""Models that read chains: the paper's formula as a loop, empty columns, the position code, the gated family."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import Chain, ChainAttention, ChainEmbedding, GatedAttention, SpecError, replace
from iclab.models import forward
from iclab.models.chain_attention import ChainParams

PROMPTS = Chain(dimension=9, patterns=6, prompt_length=4)
D, K = 9, 3


def by_hand(W, prompt, key_positions=True):
    """Eq. 2 with the position code of eq. 10, a loop over columns."""
    def column(i, code=True):
        c = np.eye(K)[prompt.step[i]] * code if prompt.step[i] >= 0 else np.zeros(K)
        return jnp.concatenate([prompt.x[i], prompt.y[i], c])

    last = len(prompt.step) - 1
    there = [i for i in range(last) if prompt.step[i] >= 0]
    weights = jnp.exp(jnp.stack([column(i, key_positions) @ W @ column(last) for i in there]))
    weights = weights / weights.sum()
    return sum(w * prompt.y[i] for w, i in zip(weights, there, strict=True)), dict(zip(there, weights, strict=True))


@pytest.mark.parametrize("key_positions", [True, False])
def test_the_formula_values_and_gradients(float64, key_positions):
    model = ChainAttention(key_positions=key_positions)
    W = np.random.default_rng(0).normal(size=(2 * D + K, 2 * D + K))
    batch = PROMPTS.sample(0, 18)
    apply = jax.jit(lambda W, prompt: forward(model, ChainParams(W), prompt))
    gradient = jax.jit(jax.grad(lambda W, prompt: forward(model, ChainParams(W), prompt)[0].sum()))
    for i in (0, 17):
        prompt = jax.tree.map(lambda field, i=i: np.asarray(field[i]), batch)
        output, seen = apply(W, prompt)
        expected, weights = jax.jit(lambda W, prompt=prompt: by_hand(W, prompt, key_positions))(W)
        np.testing.assert_allclose(output, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(seen.scores[0].sum(), 1.0, rtol=1e-9)
        for column, weight in weights.items():
            np.testing.assert_allclose(seen.scores[0, column], weight, rtol=1e-9)
        expected_gradient = jax.jit(jax.grad(lambda W, prompt=prompt: by_hand(W, prompt, key_positions)[0].sum()))(W)
        np.testing.assert_allclose(gradient(W, prompt), expected_gradient, rtol=1e-7, atol=1e-10)


def test_initial_weights_are_normal_with_the_given_scale():
    W = ChainAttention(init_scale=0.01).init(jax.random.key(0), 30).W
    assert W.shape == (63, 63)
    assert float(W.std()) == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize("member", ["linear", "mamba", "gla"])
def test_the_gated_family_reads_chains_and_forgets_nothing_before_the_first_column(float64, member):
    """The sum equals the recurrence, and empty columns in front do not matter."""
    model = GatedAttention(member=member, init_scale=0.5, embedding=ChainEmbedding(steps=K))
    random = np.random.default_rng(1)
    params = jax.tree.map(lambda leaf: np.asarray(leaf) + 0.3 * random.normal(size=leaf.shape),
                          model.init(jax.random.key(0), D))
    prompt = jax.tree.map(lambda field: np.asarray(field[0]), PROMPTS.sample(0, 18))
    columns = model.embedding.columns(jax.tree.map(jnp.asarray, prompt))
    empty = int((prompt.step < 0).sum())
    assert empty == 2
    outputs = [jax.jit(replace(model, form=form).apply)(params, some)[0]
               for form, some in (("sum", columns), ("recurrence", columns), ("sum", columns[empty:]))]
    assert outputs[0].shape == (D,)
    for other in outputs[1:]:
        np.testing.assert_allclose(outputs[0], other, rtol=1e-9, atol=1e-12)
    if member == "linear":
        width, layer = 2 * D + K, params[0]
        plain = np.asarray(columns)[:, :width]
        scores = plain @ layer.W_B.T @ layer.W_C @ plain[-1]
        np.testing.assert_allclose(outputs[0], scores @ plain[:, D:2 * D], rtol=1e-9)


def test_one_gate_per_channel_is_refused_for_chains():
    with pytest.raises(SpecError, match="gate_per_channel must be false when the output is read in many channels"):
        GatedAttention(gate_per_channel=True, embedding=ChainEmbedding())
