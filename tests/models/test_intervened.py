"""Interventions against formulas written out by hand, in double precision, values and gradients; and what is refused."""

from __future__ import annotations

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
    replace,
    spec,
    train,
)
from iclab.core.identity import from_json, to_json
from iclab.core.spec import lower
from iclab.models import forward, site
from iclab.models.gates import MEMBERS
from iclab.models.intervened import clean_labels, recording

PROMPTS = Classification(dimension=8, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2, prompt_length=5,
                         outlier_fraction=0.5, label_rule="flip")
SHORT = Chain(dimension=7, patterns=5, prompt_length=3)
SMALL_LABEL = LabelEmbedding(size=2, norm=1.5)
SMALL_GPT2 = GPT2(layers=3, heads=2, size=8, positions=8, embedding=SMALL_LABEL)


def start(model, prompts=PROMPTS, seed=0):
    """A prompt, and weights away from their special start."""
    with jax.enable_x64(True):
        params = lower(model).init(jax.random.key(seed), prompts.dimension)
        leaves, tree = jax.tree.flatten(params)
        keys = jax.random.split(jax.random.key(seed + 1), len(leaves))
        leaves = [leaf + 0.3 * jax.random.normal(key, leaf.shape) for leaf, key in zip(leaves, keys, strict=True)]
        return jax.tree.map(lambda field: field[0], prompts.sample(seed, 1)), jax.tree.unflatten(tree, leaves)


def agree(model, formula, params, prompt, tolerance=1e-9):
    """A model's output and gradient are those of a formula of (params, columns of the model without intervention)."""
    with jax.enable_x64(True):
        embedding = getattr(model, "model", model).embedding
        mine, yours = (jax.value_and_grad(lambda p, f=f: f(p).sum() ** 2)(params) for f in (
            lambda p: forward(lower(model), p, prompt)[0], lambda p: formula(p, embedding.columns(prompt))))
        for a, b in zip(jax.tree.leaves(mine), jax.tree.leaves(yours), strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        return mine[0]


def mamba_sum(gate):
    """`F = sum_i gate(G)_i y_i p_i^T W_B^T W_C p_query` in a loop, G the gates of Mamba."""
    def formula(params, P):
        W_B, W_C, (w, _) = params[0]
        s = jax.nn.sigmoid(P @ w[0])
        last, F = len(P) - 1, 0.0
        for i in range(len(P)):
            G = s[i] * jnp.prod(jnp.array([1 - s[k] for k in range(i + 1, last + 1)]))
            F += gate(i, G) * P[i, -1] * (P[i] @ W_B.T @ W_C @ P[last])
        return F

    return formula


@pytest.mark.parametrize("where", ["all", "examples", "query", "poisoned", "clean", "same", "other"])
def test_a_clamped_gate_is_that_of_the_sum(where):
    model = GatedAttention()
    prompt, params = start(model)
    outlier, pattern = np.array(prompt.truth.outlier), np.array(prompt.truth.pattern)
    example = np.arange(len(outlier)) < len(outlier) - 1
    meant = {"all": example | True, "examples": example, "query": ~example, "poisoned": outlier,
             "clean": ~outlier & example, "same": (pattern == pattern[-1]) & example, "other": pattern != pattern[-1]}
    assert meant[where].any()
    assert where == "all" or not meant[where].all()
    agree(Clamped(model=model, site="gates", value=0.7, where=where),
          mamba_sum(lambda i, G: 0.7 if meant[where][i] else G), params, prompt)


def test_scaled_scores_and_a_selection_by_a_function():
    model = GatedAttention()
    prompt, params = start(model)
    meant = np.array(prompt.y) > 0
    agree(Scaled(model=model, site="scores", factor=-2.0, where=lambda prompt: prompt.y > 0),
          mamba_sum(lambda i, G: G * (-2.0 if meant[i] else 1.0)), params, prompt)


def test_two_interventions_are_done_in_their_order():
    inner = Clamped(model=GatedAttention(), site="gates", value=0.5)
    prompt, params = start(inner)
    agree(Scaled(model=inner, site="gates", factor=3.0, where="clean"), lambda params, P: mamba_sum(
        lambda i, G: 1.5 if i < len(P) - 1 and not prompt.truth.outlier[i] else 0.5)(params, P), params, prompt)


def test_a_patched_site_has_the_values_of_the_other_prompt():
    def other(prompt):
        return prompt._replace(x=prompt.x[::-1])

    model = GatedAttention()
    prompt, params = start(model)

    def formula(params, P):
        Q = model.embedding.columns(other(prompt))
        s = jax.nn.sigmoid(Q @ params[0].gate.w[0])
        gates = [s[i] * jnp.prod(jnp.array([1 - s[k] for k in range(i + 1, len(P))])) for i in range(len(P))]
        return mamba_sum(lambda i, G: jnp.stack(gates)[i] if prompt.truth.outlier[i] else G)(params, P)

    patched = Patched(model=model, site="gates", source=other, where="poisoned")
    value = agree(patched, formula, params, prompt)
    assert value != agree(model, mamba_sum(lambda i, G: G), params, prompt)


def test_a_graft_takes_the_gates_of_the_other_model():
    model = Grafted(model=GatedAttention(member="linear"), donor=GatedAttention(), site="gates")
    prompt, params = start(model)
    agree(model, lambda pair, P: mamba_sum(lambda i, G: G)((pair[0][0]._replace(gate=pair[1][0].gate),), P), params,
          prompt)


@pytest.mark.parametrize("units", [(0, 3), (2,)])
def test_ablated_neurons_and_attention(units):
    model = SoftmaxMLP(neurons=4, embedding=SMALL_LABEL)
    prompt, params = start(model)

    def formula(keep, attend):
        def F(params, P):
            W_Q, W_K, W_V, W_O = params
            attention = attend(jax.nn.softmax(jnp.array([(W_K @ p) @ (W_Q @ P[-1]) for p in P[:-1]])))
            read = sum(a * W_V @ p for a, p in zip(attention, P[:-1], strict=True))
            return sum(s * keep[i] * jax.nn.relu(W_O[i] @ read) / 4 for i, s in enumerate((1, 1, -1, -1)))

        return F

    keep = [float(i not in units) for i in range(4)]
    agree(Clamped(model=model, site="neurons", value=0.0, units=units), formula(keep, lambda a: a), params, prompt)
    meant = jnp.asarray(prompt.truth.outlier[:-1])
    agree(Clamped(model=model, site="attention", value=0.0, where="poisoned"),
          formula([1.0] * 4, lambda a: jnp.where(meant, 0.0, a)), params, prompt)


def test_attention_over_chains():
    prompt, params = start(ChainAttention(), SHORT)
    same = np.array(prompt.step == prompt.step[-1])

    def formula(params, P):
        weights = [jnp.where(P[i, 14:].any(), jnp.exp(P[i] @ params.W @ P[-1]), 0.0) for i in range(len(P) - 1)]
        return sum(w / sum(weights) * P[i, 7:14] for i, w in enumerate(weights) if not same[i])

    agree(Clamped(model=ChainAttention(), site="attention", value=0.0,
                  where=lambda prompt: prompt.step == prompt.step[-1]), formula, params, prompt)


@pytest.mark.parametrize("model", [
    *(GatedAttention(member=member, layers=2) for member in MEMBERS), GatedAttention(form="chunked", chunk=2, layers=2),
    GatedAttention(gate_per_channel=True, layers=3, normalise=True),
    GatedAttention(member="linear", causal=False, layers=2), SMALL_GPT2, SoftmaxMLP(embedding=SMALL_LABEL)],
    ids=lambda model: f"{type(model).__name__} {getattr(model, 'member', '')}")
def test_a_model_that_is_watched_computes_the_same(model):
    """Values, intermediates and gradients."""
    prompt, params = start(model)
    plain, seen = [], []
    with jax.enable_x64(True):
        for watched in (False, True):
            def output(params, watched=watched):
                columns = model.embedding.columns(prompt)
                if watched:
                    return recording(model, params, columns)[0]
                return model.apply(params, columns)[0]

            plain.append(jax.value_and_grad(output)(params))
        identity = Scaled(model=model, site="gates" if isinstance(model, GatedAttention) else "neurons", factor=1.0)
        seen = [lower(m).apply(params, model.embedding.columns(prompt))[1] for m in (model, identity)]
    for a, b in zip(*map(jax.tree.leaves, (plain[0], plain[1])), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    for a, b in zip(*map(jax.tree.leaves, seen), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


def test_the_stream_of_a_layer_decides_what_follows():
    """GPT-2 from its second layer's stream of another prompt on is GPT-2 on that prompt."""
    def other(prompt):
        return prompt._replace(x=2.0 * prompt.x)

    prompt, params = start(SMALL_GPT2)
    with jax.enable_x64(True):
        outputs = [forward(lower(model), params, which)[0] for model, which in (
            (Patched(model=SMALL_GPT2, site="stream", layer=1, source=other), prompt), (SMALL_GPT2, other(prompt)),
            (SMALL_GPT2, prompt))]
    assert outputs[0] == pytest.approx(outputs[1], rel=1e-9)
    assert abs(outputs[0] - outputs[2]) > 1e-6


def test_a_head_is_ablated():
    prompt, params = start(SMALL_GPT2)
    without = jax.tree.map(np.array, params)
    without.blocks.out.W[1, 4:] = 0.0  # the second head of the second layer writes nothing
    with jax.enable_x64(True):
        ablated = forward(lower(Clamped(model=SMALL_GPT2, site="heads", layer=1, units=(1,), value=0.0)), params, prompt)
        assert float(ablated[0]) == pytest.approx(float(forward(SMALL_GPT2, without, prompt)[0]), rel=1e-9)


def test_nothing_changes_where_nobody_watches():
    value = jnp.ones(3)
    assert site("gates", value) is value
    prompt, params = start(GatedAttention())
    forward(Clamped(model=GatedAttention(), value=0.0), params, prompt)
    assert site("gates", value) is value


@pytest.mark.parametrize(("fields", "words"), [
    ({"site": "gate"}, "site must be one of scores, gates, stream, the sites of GatedAttention, got 'gate'; did you"),
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


def test_sources_that_do_not_fit_are_refused():
    prompt, params = start(GatedAttention())
    with pytest.raises(SpecError, match="where must be something that the truth about these prompts tells"):
        forward(Clamped(model=ChainAttention(), site="attention", where="poisoned"),
                *start(ChainAttention(), SHORT)[::-1])
    with pytest.raises(SpecError, match="an intervention that needs the truth about a prompt"):
        forward(Clamped(where="poisoned"), params, prompt._replace(truth=None))
    with pytest.raises(SpecError, match=r"source must give site gates in layer 0 the shape \(1, 6\), got"):
        forward(Grafted(donor=GatedAttention(layers=2), model=GatedAttention(), site="gates"),
                (params, start(GatedAttention(layers=2))[1]), prompt)
    with pytest.raises(SpecError, match=r"donor.embedding must be that of the model"):
        Grafted(donor=GatedAttention(embedding=SMALL_LABEL))

    @spec
    class Unnamed(GatedAttention):
        def apply(self, params, columns):
            return site("output", columns[-1, -1]), None

    with pytest.raises(SpecError, match=r"axes of site 'output' must name each of the 0 axes"):
        forward(Clamped(model=Unnamed(), site="output"), params, prompt)


def test_training_goes_on_through_an_intervention():
    """With the gates of poisoned examples at 0, training is that of a model that never reads them."""
    run = Run(model=Clamped(site="gates", value=0.0, where="poisoned"), prompts=PROMPTS,
              training=Training(steps=60, learning_rate=0.3, record_every=30))
    trained = train(run)
    assert trained.loss[-1] < 0.9 * train(replace(run, model=GatedAttention())).loss[-1]
    assert np.abs(trained.params[0].gate.w).max() > 0
    again = from_json(to_json(run.model), {cls.__name__: cls for cls in (Clamped, GatedAttention, LabelEmbedding)})
    assert again == run.model


def test_clean_labels_are_those_without_poison():
    prompt = jax.tree.map(lambda field: field[0], PROMPTS.sample(1, 1))
    restored = clean_labels(prompt)
    np.testing.assert_array_equal(restored.y[:-1], prompt.truth.clean[:-1])
    assert restored.y[-1] == 0
    assert (restored.y != prompt.y).any()
