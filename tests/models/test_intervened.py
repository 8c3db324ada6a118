"""Interventions against formulas written by hand, in double precision, values and gradients; and what is refused."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import (
    GPT2,
    Chain,
    ChainAttention,
    Clamped,
    Classification,
    GatedAttention,
    Grafted,
    LabelEmbedding,
    Patched,
    Run,
    Scaled,
    SoftmaxMLP,
    SpecError,
    Training,
    spec,
    train,
)
from iclab.core.identity import from_json, to_json
from iclab.core.spec import lower
from iclab.models import forward, site
from iclab.models.intervened import WHERE, clean_labels, sites_of
from iclab.models.sites import Site

PROMPTS = Classification(dimension=6, relevant_patterns=3, irrelevant_patterns=2, outlier_patterns=1, prompt_length=5,
                         outlier_fraction=0.5, label_rule="flip")
SHORT = Chain(dimension=5, patterns=5, prompt_length=2)
LABEL = LabelEmbedding(size=2, norm=1.5)
SMALL_GPT2 = GPT2(layers=2, heads=2, size=4, positions=6, embedding=LABEL)
MAMBA = GatedAttention()


@cache
def a_prompt(prompts=PROMPTS):
    """One prompt, of a batch in which some examples are poisoned and some are not, in double precision."""
    batch = prompts.sample(4, 2).numpy()
    return jax.tree.map(lambda field: field[0].astype(float) if field.dtype.kind == "f" else field[0], batch)


def weights(model, prompts=PROMPTS, seed=0):
    """Random weights, so that nothing is 0 by its start."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(lambda: lower(model).init(jax.random.key(0), prompts.dimension))
    return jax.tree.map(lambda leaf: 0.4 * rng.normal(size=leaf.shape), shapes)


def agree(models, formulas, params, prompt):
    """Outputs of models and their gradients are those of formulas of (params, columns of the first bare model)."""
    embedding = getattr(models[0], "model", models[0]).embedding

    def mine(params):
        return jnp.stack([(forward(lower(model), params, prompt)[0] ** 2).sum() for model in models])

    def yours(params):
        return jnp.stack([(formula(params, embedding.columns(prompt)) ** 2).sum() for formula in formulas])

    with jax.enable_x64(True):
        both = jax.jit(lambda p: [(f(p), jax.jacrev(f)(p)) for f in (mine, yours)])(params)
    for a, b in zip(*map(jax.tree.leaves, both), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    return both[0][0]


def gates_of(w, P):
    """`G_i = s_i prod_{k>i} (1 - s_k)`, i from the first token to the query."""
    s = jax.nn.sigmoid(P @ w)
    return jnp.stack([s[i] * jnp.prod(1 - s[i + 1:]) for i in range(len(P))])


def gated_sum(change):
    """`F = sum_i change(G)_i y_i p_i^T W_B^T W_C p_query`, G the gates of Mamba."""
    def formula(params, P):
        W_B, W_C, (w, _) = params[0]
        return jnp.sum(change(gates_of(w[0], P)) * P[:, -1] * (P @ W_B.T @ W_C @ P[-1]))

    return formula


def test_a_clamped_gate_is_that_of_the_sum():
    prompt, params = a_prompt(), weights(MAMBA)
    outlier, pattern = prompt.truth.outlier, prompt.truth.pattern
    example = np.arange(len(outlier)) < len(outlier) - 1
    meant = {"all": example | True, "examples": example, "query": ~example, "poisoned": outlier,
             "clean": ~outlier & example, "same": (pattern == pattern[-1]) & example, "other": pattern != pattern[-1]}
    assert len({tuple(mask) for mask in meant.values()}) == len(WHERE)
    models = [Clamped(model=MAMBA, site="gates", value=0.7, where=where) for where in WHERE]
    formulas = [gated_sum(lambda G, where=where: jnp.where(meant[where], 0.7, G)) for where in WHERE]
    agree(models, formulas, params, prompt)
    # The query's label is 0, so that its own gate is seen among the intermediates only.
    with jax.enable_x64(True):
        gates = jax.jit(lambda: jnp.stack([forward(lower(model), params, prompt)[1].gates[0] for model in models]))()
    np.testing.assert_array_equal(np.array(gates) == 0.7, [meant[where] for where in WHERE])


def test_what_else_can_be_done_to_gates_and_scores():
    """Scaled scores, a selection by a function, two in their order, values of another prompt, half of a gate."""
    def reversed_inputs(prompt):
        return prompt._replace(x=prompt.x[::-1])

    prompt, params = a_prompt(), weights(MAMBA)
    positive, poisoned = prompt.y > 0, prompt.truth.outlier
    clean = np.append(~poisoned[:-1], False)

    def patched(params, P):
        others = gates_of(params[0].gate.w[0], MAMBA.embedding.columns(reversed_inputs(prompt)))
        return gated_sum(lambda G: jnp.where(poisoned, others, G))(params, P)

    def kept(params, P):
        return gated_sum(lambda _: jax.nn.sigmoid(P @ params[0].gate.w[0]))(params, P)

    def taken(params, P):
        return gated_sum(lambda G: 2.0 * G / jax.nn.sigmoid(P @ params[0].gate.w[0]))(params, P)

    values = agree(
        [Scaled(model=MAMBA, site="scores", factor=-2.0, where=lambda prompt: prompt.y > 0),
         Scaled(model=Clamped(model=MAMBA, value=0.5), site="gates", factor=3.0, where="clean"),
         Patched(model=MAMBA, site="gates", source=reversed_inputs, where="poisoned"),
         Clamped(model=MAMBA, site="log_decay", value=0.0), Clamped(model=MAMBA, site="intake", value=2.0), MAMBA],
        [gated_sum(lambda G: G * jnp.where(positive, -2.0, 1.0)), gated_sum(lambda G: jnp.where(clean, 1.5, 0.5)),
         patched, kept, taken, gated_sum(lambda G: G)], params, prompt)
    assert len(np.unique(np.round(values, 9))) == 6


def test_a_graft_takes_the_gates_of_the_other_model():
    model = Grafted(model=GatedAttention(member="linear"), donor=MAMBA, site="gates")
    agree([model], [lambda pair, P: gated_sum(lambda G: G)((pair[0][0]._replace(gate=pair[1][0].gate),), P)],
          weights(model), a_prompt())


def test_neurons_and_attention_of_the_softmax_model():
    model = SoftmaxMLP(neurons=4, embedding=LABEL)

    def formula(keep=(1, 1, 1, 1), meant=False):
        def F(params, P):
            W_Q, W_K, W_V, W_O = params
            attention = jnp.where(meant, 0.0, jax.nn.softmax((P[:-1] @ W_K.T) @ (W_Q @ P[-1])))
            return jax.nn.relu(W_O @ W_V @ P[:-1].T @ attention) @ (np.array([1, 1, -1, -1]) * keep / 4)

        return F

    agree([Clamped(model=model, site="neurons", value=0.0, units=(0, 3)),
           Clamped(model=model, site="neurons", value=0.0, units=(2,)),
           Clamped(model=model, site="attention", value=0.0, where="poisoned")],
          [formula((0, 1, 1, 0)), formula((1, 1, 0, 1)), formula(meant=a_prompt().truth.outlier[:-1])], weights(model),
          a_prompt())


def test_attention_over_chains():
    prompt, model = a_prompt(SHORT), ChainAttention()
    same = prompt.step == prompt.step[-1]

    def formula(params, P):
        weights = jnp.where(P[:-1, 10:].any(axis=1), jnp.exp(P[:-1] @ params.W @ P[-1]), 0.0)
        return jnp.where(same[:-1], 0.0, weights / weights.sum()) @ P[:-1, 5:10]

    agree([Clamped(model=model, site="attention", value=0.0, where=lambda prompt: prompt.step == prompt.step[-1])],
          [formula], weights(model, SHORT), prompt)


@pytest.mark.parametrize("model", [
    GatedAttention(layers=2), GatedAttention(member="gla", layers=2),
    GatedAttention(gate_per_channel=True, layers=2, normalise=True),
    GatedAttention(member="linear", causal=False, layers=2), SMALL_GPT2],
    ids=("mamba", "gla", "per channel", "not causal", "gpt2"))
def test_a_model_that_is_watched_computes_the_same(model):
    """Output, intermediates and gradient."""
    prompt, params = a_prompt(), weights(model)

    def plain(params):
        return model.apply(params, model.embedding.columns(prompt))

    def watched(params):
        return lower(Scaled(model=model, site="stream")).apply(params, model.embedding.columns(prompt))

    with jax.enable_x64(True):
        both = jax.jit(lambda p: [jax.value_and_grad(f, has_aux=True)(p) for f in (plain, watched)])(params)
    for a, b in zip(*map(jax.tree.leaves, both), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


def test_streams_and_heads_of_gpt2():
    """From another prompt's stream on, the output is that prompt's; a head that is ablated writes nothing."""
    def other(prompt):
        return prompt._replace(x=2.0 * prompt.x)

    prompt, params = a_prompt(), weights(SMALL_GPT2)
    without = jax.tree.map(np.array, params)
    without.blocks.out.W[1, 2:] = 0.0  # the second head of the second layer
    cases = [(Patched(model=SMALL_GPT2, site="stream", layer=0, source=other), params, prompt),
             (Patched(model=SMALL_GPT2, site="stream", source=other), params, prompt),
             (SMALL_GPT2, params, other(prompt)), (SMALL_GPT2, params, prompt),
             (Clamped(model=SMALL_GPT2, site="heads", layer=1, units=(1,), value=0.0), params, prompt),
             (SMALL_GPT2, without, prompt)]
    with jax.enable_x64(True):
        first, every, there, here, ablated, cut = np.array(jax.jit(
            lambda: jnp.stack([forward(lower(model), *args)[0] for model, *args in cases]))())
    np.testing.assert_allclose([first, every, ablated], [there, there, cut], rtol=1e-9)
    assert abs(there - here) > 1e-6
    assert abs(cut - here) > 1e-6


def test_nothing_changes_where_nobody_watches():
    value = jnp.ones(3)
    assert site("gates", value) is value
    jax.eval_shape(lambda: forward(Clamped(value=0.0), weights(MAMBA), a_prompt()))
    assert site("gates", value) is value


@pytest.mark.parametrize(("fields", "words"), [
    ({"site": "gate"}, "site must be one of log_decay, intake, scores, gates, stream, the sites of GatedAttention, "
                       "got 'gate'; did you mean gates"),
    ({"layer": 1}, "layer must be one of 0 at site gates, got 1"),
    ({"units": (0,)}, r"units must be none at site gates, which has neither heads nor neurons, got \(0,\)"),
    ({"where": "outliers"}, "where must be one of all, examples, query, poisoned"),
    ({"value": float("inf")}, r"value must be in \(-inf, inf\)"),
    ({"model": SoftmaxMLP(neurons=4), "site": "neurons", "units": (4,)},
     r"units must lie in \[0, 4\) at site neurons, got \(4,\)"),
    ({"model": SoftmaxMLP(), "site": "neurons", "where": "clean"}, "where must be all at site neurons, which has no"),
])
def test_an_intervention_that_cannot_be_is_refused(fields, words):
    with pytest.raises(SpecError, match=words):
        Clamped(**fields)


@spec
class Unnamed(GatedAttention):
    """Its site does not say which axes it has."""

    def apply(self, params, columns):
        return site("output", columns[-1, -1]), None


@pytest.mark.parametrize(("model", "prompt", "words"), [
    (Clamped(model=ChainAttention(), site="attention", where="poisoned"), a_prompt(SHORT),
     "where must be something that the truth about these prompts tells, got 'poisoned'"),
    (Clamped(where="poisoned"), a_prompt()._replace(truth=None), "an intervention that needs the truth about a prompt"),
    (Clamped(where=lambda prompt: prompt.y[1:] > 0), a_prompt(), r"where must tell of every token .* got \(5,\)"),
    (Grafted(donor=GatedAttention(layers=2)), a_prompt(), r"source must give site gates in layer 0 the shape \(1, 6\)"),
    (Grafted(donor=MAMBA, model=GatedAttention(layers=2), layer=1), a_prompt(),
     "site must be recorded in layer 1 too; the source has log_decay"),
    (Clamped(model=Unnamed(), site="output"), a_prompt(), r"axes of site 'output' must name each of the 0 axes"),
])
def test_a_source_or_a_place_that_does_not_fit_is_refused(model, prompt, words):
    params = weights(model, SHORT if prompt.step is not None else PROMPTS)
    with jax.enable_x64(True), pytest.raises(SpecError, match=words):
        jax.eval_shape(lambda: forward(lower(model), params, prompt))


def test_the_donor_reads_the_same_columns():
    with pytest.raises(SpecError, match=r"donor.embedding must be that of the model"):
        Grafted(donor=GatedAttention(embedding=LABEL))


def test_training_goes_on_through_an_intervention():
    """Without its poisoned examples a linear Transformer learns."""
    model = Clamped(model=GatedAttention(member="linear"), value=0.0, where="poisoned")
    trained = train(Run(model=model, prompts=PROMPTS,
                        training=Training(steps=50, batch_size=32, learning_rate=0.3, record_every=25)))
    assert trained.loss[1] < 0.7 * trained.loss[0]
    kinds = {cls.__name__: cls for cls in (Clamped, GatedAttention, LabelEmbedding)}
    assert from_json(to_json(model), kinds) == model


def test_clean_labels_are_those_without_poison():
    prompt = a_prompt()
    restored = clean_labels(prompt)
    np.testing.assert_array_equal(restored.y, np.append(prompt.truth.clean[:-1], 0.0))
    assert (restored.y != prompt.y).any()


def test_all_sites_of_a_forward_pass_are_found():
    places = sites_of(Clamped(model=SMALL_GPT2, site="neurons"), dimension=6, tokens=6)
    assert [(place.name, place.layer) for place in places] == [
        (name, layer) for layer in (0, 1) for name in ("attention", "heads", "neurons", "stream")]
    assert places[4] == Site("attention", 1, ("head", "reader", "token"), (2, 1, 6))
