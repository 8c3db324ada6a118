"""Properties of the family beyond its equations."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from iclab import Classification, GatedAttention, LabelEmbedding, SpecError, replace
from iclab.models import forward

PROMPTS = Classification(outlier_fraction=0.4)


def one_prompt(seed=0):
    return jax.tree.map(lambda field: field[0], PROMPTS.sample(seed, 1))


def test_the_output_is_the_sum_of_gated_scores():
    model = GatedAttention()
    params = model.init(jax.random.key(0), 30)
    prompt = one_prompt()
    output, seen = forward(model, params, prompt)
    np.testing.assert_allclose(output, np.sum(seen.gates[0] * seen.scores[0] * np.asarray(prompt.y)), rtol=1e-5)


def test_gates_of_mamba_sum_to_less_than_one():
    params = GatedAttention().init(jax.random.key(1), 30)
    _, seen = forward(GatedAttention(), params, one_prompt())
    assert 0 < float(seen.gates.sum()) < 1


def test_one_layer_needs_only_the_label_channels_gate():
    shared, per_channel = GatedAttention(), GatedAttention(gate_per_channel=True)
    params = per_channel.init(jax.random.key(2), 30)
    label_gate = params[0].gate._replace(w=params[0].gate.w[-1:])
    alone = (params[0]._replace(gate=label_gate),)
    output, expected = forward(per_channel, params, one_prompt())[0], forward(shared, alone, one_prompt())[0]
    np.testing.assert_allclose(output, expected, rtol=1e-6)


def test_the_linear_member_is_mamba_with_its_gate_at_one():
    params = GatedAttention(member="linear").init(jax.random.key(0), 30)
    _, seen = forward(GatedAttention(member="linear"), params, one_prompt())
    np.testing.assert_array_equal(seen.gates, 1.0)


def test_a_stack_that_is_not_causal_ignores_the_order_of_its_examples():
    def outputs(model):
        params = model.init(jax.random.key(0), 30)
        return [float(forward(model, params, prompt)[0]) for prompt in (one_prompt(), turned)]

    prompt = one_prompt()
    order = np.r_[np.random.default_rng(0).permutation(20), 20]
    turned = prompt._replace(x=prompt.x[order], y=prompt.y[order])
    causal = GatedAttention(member="linear", layers=3, init_scale=0.6, normalise=True)
    ordered, shuffled = outputs(replace(causal, causal=False))
    np.testing.assert_allclose(ordered, shuffled, rtol=1e-4)
    ordered, shuffled = outputs(causal)
    assert abs(ordered - shuffled) > 1e-3 * abs(ordered)
    one_layer = replace(causal, layers=1)
    np.testing.assert_allclose(outputs(one_layer), outputs(replace(one_layer, causal=False)), rtol=1e-5)


def test_a_vector_label_scales_the_output_as_it_must():
    scalar, vector = GatedAttention(member="linear"), GatedAttention(member="linear",
                                                                      embedding=LabelEmbedding(size=4, norm=3.0))
    prompt = one_prompt()
    ours = forward(vector, vector.init(jax.random.key(0), 30), prompt)[0]
    plain = forward(scalar, scalar.init(jax.random.key(0), 30), prompt)[0]
    np.testing.assert_allclose(ours, 9.0 * plain, rtol=1e-5)


@pytest.mark.parametrize(("changes", "message"), [
    ({"member": "lstm"}, "member must be one of linear, mamba"),
    ({"layers": 0}, "layers must be a whole number >= 1, got 0"),
    ({"causal": False}, "causal must be true unless member is linear"),
    ({"retention": 1.5}, "retention must be in (0, 1], got 1.5"),
    ({"form": "loop"}, "form must be one of sum, recurrence, chunked, got 'loop'"),
])
def test_bad_fields_are_named(changes, message):
    with pytest.raises(SpecError) as error:
        replace(GatedAttention(), **changes)
    assert message in str(error.value)
