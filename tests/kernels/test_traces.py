"""What probes read through the kernels against the models, in double precision, on the prompts of the same keys."""

from __future__ import annotations

import jax
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from test_gated_kernel import LENGTH, MEMBERS, families
from test_softmax_kernel import runs

from iclab import GatedAttention, LabelEmbedding, Run, Training, replace
from iclab.core.spec import lower
from iclab.kernels.gated_pack import GatedPack
from iclab.kernels.softmax_pack import SoftmaxPack
from iclab.models import forward_batch
from iclab.papers.icl.settings import one_layer_run
from iclab.prompts import Prompt
from iclab.prompts.randomness import Key
from iclab.training.sgd import begin, step_keys

BATCH, KEYS, FEWER = 12, 2, 2
forward = jax.jit(forward_batch)


def restless(run, spread):
    """Weights that are nowhere 0."""
    rng = np.random.default_rng(run.data_seed)
    return jax.tree.map(lambda leaf: np.asarray(leaf + spread * rng.standard_normal(leaf.shape)), begin(run).params)


def last(batch, examples):
    return Prompt(batch.x[:, -examples - 1:], batch.y[:, -examples - 1:], batch.label)


def check(pack_class, variants, params):
    """Hold everything in the traces of a pack to its models, one for each set of weights."""
    keys, prompts = step_keys(variants[0].data_seed, 0, KEYS), variants[0].prompts
    pack = pack_class(variants, params, shared=True)
    trace = pack.trace(keys, inside=True)
    lengths = (FEWER, LENGTH, FEWER)
    by_length = pack.trace(keys, lengths)
    assert by_length.scores.size == by_length.pattern.size == 0
    np.testing.assert_array_equal(trace.outputs, pack.trace(keys).outputs)
    for t in range(KEYS):
        batch = prompts.sample(Key(keys.high[t], keys.low[t]), BATCH)
        np.testing.assert_array_equal(trace.label[t], batch.label)
        np.testing.assert_array_equal(by_length.label[t], batch.label)
        np.testing.assert_array_equal(trace.pattern[t].reshape(BATCH, -1), batch.truth.pattern)
        np.testing.assert_array_equal(trace.outlier[t].reshape(BATCH, -1), batch.truth.outlier)
        for r, (run, weights) in enumerate(zip(variants, params, strict=True)):
            model = lower(run.model)
            outputs, seen = forward(model, weights, batch)
            outputs_of_few, _ = forward(model, weights, last(batch, FEWER))
            expected = [(trace.outputs[t, r, 0], outputs), (trace.scores[t, r], seen.scores.reshape(-1)),
                        *zip(by_length.outputs[t, r], (outputs_of_few, outputs, outputs_of_few), strict=True)]
            if pack_class is GatedPack:
                expected.append((trace.gates[t, r], seen.gates.reshape(-1)))
            for mine, theirs in expected:
                np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max())


@settings(max_examples=16)
@given(families(), st.sampled_from(MEMBERS), st.booleans(), st.booleans(), st.integers(0, 2**20))
def test_the_gated_family_shows_what_the_model_shows(prompts, member, per_channel, normalise, seed):
    model = GatedAttention(member=member, normalise=normalise, gate_per_channel=per_channel, retention=0.7,
                           temperature=3.0, embedding=LabelEmbedding(size=2, norm=1.3))
    run = Run(model=model, prompts=prompts, data_seed=seed, training=Training(batch_size=BATCH))
    with jax.enable_x64(True):
        check(GatedPack, [run, replace(run, model=replace(model, retention=0.4))],
              [restless(run, spread) for spread in (0.2, 0.1)])


@settings(max_examples=12)
@given(runs(), st.sampled_from([0.3, 3.0]))
def test_softmax_attention_shows_what_the_model_shows(run, spread):
    """Also where nearly all attention is on one example."""
    with jax.enable_x64(True):
        check(SoftmaxPack, [run, run], [restless(run, size) for size in (spread, 0.2)])


def test_attention_on_the_last_examples_does_not_vanish_beside_that_on_the_first():
    """In single precision, with scores so far apart that e to their difference is 0."""
    run = replace(one_layer_run(0.8, 1), training=Training(batch_size=BATCH))
    params = restless(run, 0.0)
    params = params._replace(W_Q=40 * params.W_Q, W_K=40 * params.W_K)
    keys, lengths = step_keys(0, 0, 1), (2, 5)
    batch = run.prompts.sample(Key(keys.high[0], keys.low[0]), BATCH)
    whole = forward(lower(run.model), params, batch)[1].scores[:, 0, -3:-1]
    assert (whole.sum(axis=1) == 0).any()
    outputs = SoftmaxPack([run], [params], shared=True).trace(keys, lengths).outputs[0, 0]
    for mine, examples in zip(outputs, lengths, strict=True):
        theirs, seen = forward(lower(run.model), params, last(batch, examples))
        assert np.asarray(seen.scores).max() > 0.99
        np.testing.assert_allclose(mine, theirs, atol=1e-3 * np.abs(theirs).max())
