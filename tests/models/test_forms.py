"""The three forms against a naive loop, in double precision, values and gradients, for every member."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iclab import GatedAttention, replace
from iclab.models import MEMBERS


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def naive(model, params, columns):
    """The recurrence written as loops over tokens, straight from the equations of the papers."""
    columns = np.array(columns, dtype=np.float64)
    tokens, width = columns.shape
    for layer in params:
        W_B, W_C, w, a = (np.asarray(x, np.float64) for x in (layer.W_B, layer.W_C, *layer.gate))
        state, outputs = np.zeros((width, width)), np.zeros((tokens, width))
        for t in range(tokens):
            p = columns[t]
            for j in range(width):
                for m in range(width):
                    key = W_B[m] @ p
                    row = (w[j] if len(w) == width else w[0]) if len(w) else None
                    if model.member == "linear":
                        decay, intake = 1.0, 1.0
                    elif model.member == "retnet":
                        decay, intake = model.retention, 1.0
                    elif model.member == "mamba":
                        # Zero-order hold with A = -1 and step softplus(w.p): li2025mamba, eq. 1.
                        step = np.log1p(np.exp(row @ p))
                        decay = np.exp(-step)
                        intake = (np.exp(-step) - 1.0) / (-step) * step
                    elif model.member == "gated_retention":
                        decay, intake = sigmoid(row @ p) ** (1.0 / model.temperature), 1.0
                    elif model.member == "gla":
                        decay, intake = sigmoid(w[m] @ p), 1.0
                    else:
                        step = np.log1p(np.exp(row @ p))
                        decay = np.exp(-step * np.exp(a[0]))
                        intake = step if model.member == "mamba2_step" else 1.0
                    state[j, m] = decay * state[j, m] + intake * p[j] * key
            outputs[t] = state @ (W_C @ p)
        columns = columns + outputs * (1.0 / tokens if model.normalise else 1.0)
    return columns[-1, width - model.embedding.size] * model.embedding.norm


def random_case(model, tokens, dimension, seed):
    keys = jax.random.split(jax.random.key(seed), 3)
    params = model.init(keys[0], dimension)
    leaves, structure = jax.tree.flatten(params)
    noise = jax.random.split(keys[1], len(leaves))
    leaves = [leaf + 0.3 * jax.random.normal(k, leaf.shape) for leaf, k in zip(leaves, noise, strict=True)]
    return jax.tree.unflatten(structure, leaves), jax.random.normal(keys[2], (tokens, dimension + 1))


@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
def test_every_form_equals_the_naive_loop(float64, member, per_channel, layers):
    model = GatedAttention(member=member, gate_per_channel=per_channel, layers=layers, normalise=layers > 1, chunk=3)
    params, columns = random_case(model, tokens=7, dimension=3, seed=1)
    expected = naive(model, params, columns)
    for form in ("sum", "recurrence", "chunked"):
        output, _ = replace(model, form=form).apply(params, columns)
        np.testing.assert_allclose(output, expected, rtol=1e-10, atol=1e-12)


@settings(max_examples=4)
@given(member=st.sampled_from(MEMBERS), tokens=st.integers(1, 12), dimension=st.integers(1, 4), chunk=st.integers(1, 5),
       per_channel=st.booleans(), layers=st.integers(1, 2), seed=st.integers(0, 99))
def test_forms_agree_in_values_and_gradients(member, tokens, dimension, chunk, per_channel, layers, seed):
    with jax.enable_x64(True):
        model = GatedAttention(member=member, gate_per_channel=per_channel, layers=layers, chunk=chunk, normalise=True)
        params, columns = random_case(model, tokens, dimension, seed)

        def slope(form):
            shaped = replace(model, form=form)
            return jax.jit(jax.value_and_grad(lambda p, c: shaped.apply(p, c)[0], argnums=(0, 1)))(params, columns)

        results = {form: slope(form) for form in ("sum", "recurrence", "chunked")}
        np.testing.assert_allclose(results["sum"][0], naive(model, params, columns), rtol=1e-8, atol=1e-10)
        for form in ("recurrence", "chunked"):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10), results["sum"],
                         results[form])


@pytest.mark.parametrize("member", MEMBERS)
def test_the_gradient_is_that_of_the_naive_loop(float64, member):
    model = GatedAttention(member=member)
    params, columns = random_case(model, tokens=4, dimension=2, seed=3)
    gradient = jax.grad(lambda p: model.apply(p, columns)[0])(params)
    leaves, structure = jax.tree.flatten(params)
    for number, (leaf, slope) in enumerate(zip(leaves, jax.tree.leaves(gradient), strict=True)):
        for place in list(np.ndindex(leaf.shape))[:4]:
            ends = []
            for shift in (1e-6, -1e-6):
                moved = [np.array(x) for x in leaves]
                moved[number][place] += shift
                ends.append(naive(model, jax.tree.unflatten(structure, moved), columns))
            np.testing.assert_allclose(slope[place], (ends[0] - ends[1]) / 2e-6, rtol=2e-5, atol=1e-7)


def test_long_prompts_stay_finite_where_gates_saturate():
    model = GatedAttention(member="mamba", layers=2, form="chunked", chunk=16, normalise=True)
    params = model.init(jax.random.key(0), 4)
    params = jax.tree.map(lambda leaf: 50.0 * leaf, params)
    columns = jax.random.normal(jax.random.key(1), (300, 5))
    output, slope = jax.value_and_grad(lambda p: model.apply(p, columns)[0])(params)
    assert np.isfinite(output)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))


def test_chunked_memory_grows_linearly_with_length():
    model = GatedAttention(layers=3, form="chunked", normalise=True)
    params = model.init(jax.random.key(0), 30)

    def temporary(tokens):
        apply = jax.jit(lambda p, c: model.apply(p, c)[0])
        shape = jax.ShapeDtypeStruct((tokens, 31), jnp.float32)
        return apply.lower(params, shape).compile().memory_analysis().temp_size_in_bytes

    short, long = temporary(4096), temporary(16384)
    assert long < 5 * short
