"""Inside a trained Mamba: corollaries 1 and 2 of the paper, and that an untrained one shows neither."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import LabelEmbedding, SoftmaxMLP, SpecError, gate_profile, part, replace, score_mass, spec, train
from iclab.core.spec import lower
from iclab.models import forward_batch
from iclab.papers.mamba.settings import attacked_prompts
from iclab.probes.error_rate import TEST_BATCH, batch_keys
from iclab.prompts.randomness import Key
from iclab.training.sgd import begin


@spec
class Answers:
    """A model that shows nothing of its inside."""

    embedding: LabelEmbedding = part(default_factory=LabelEmbedding)

    def init(self, key, dimension):
        return jnp.ones(self.embedding.width(dimension))

    def apply(self, params, columns):
        return (columns @ params).mean(), ()


TEST = attacked_prompts("flip", 0.5)


def test_scores_gather_on_the_querys_pattern(trained_mamba):
    mass = score_mass(trained_mamba[0], TEST, count=400)
    assert mass.same[0] > 10 * abs(mass.other[0]) or mass.other[0] < 0 < mass.same[0]


def test_gates_shut_outliers_out_and_decay_with_distance(trained_mamba):
    profile = gate_profile(trained_mamba[0], TEST, count=400)
    assert np.nanmax(profile.poisoned[0]) < 0.1 * profile.clean[0][0]
    assert (np.diff(np.log(profile.clean[0])) < 0.15).all()
    assert profile.clean[0][0] > 3 * profile.clean[0][10]


def test_an_untrained_gate_does_not_tell_outliers_apart(trained_mamba):
    params = jax.tree.map(np.asarray, begin(trained_mamba[0].run).params)
    profile = gate_profile(dataclasses.replace(trained_mamba[0], params=params), TEST, count=400)
    assert np.nanmax(profile.poisoned[0]) > 0.2 * profile.clean[0][0]


def test_a_model_without_scores_or_gates_is_named(tiny_run):
    hidden = train(replace(tiny_run, model=Answers()))
    with pytest.raises(SpecError, match=r"the model's intermediates must be a named tuple with scores .*, got a tuple"):
        score_mass(hidden, tiny_run.prompts, count=500)
    attention = train(replace(tiny_run, model=SoftmaxMLP(), training=replace(tiny_run.training, steps=1)))
    with pytest.raises(SpecError, match="the model's intermediates must have gates"):
        gate_profile(attention, tiny_run.prompts, count=500)


def test_both_probes_are_sums_over_examples(trained_mamba):
    """Against a loop over the examples of the same prompts."""
    model, params = trained_mamba[0].run.model, trained_mamba[0].params
    high, low = batch_keys(0, 1)
    batch = TEST.sample(Key(high[0], low[0]), TEST_BATCH).numpy()
    seen = forward_batch(lower(model), params, batch)[1]
    scores, gates = np.asarray(seen.scores, float), np.asarray(seen.gates, float)
    mass, sums = np.zeros(2), np.zeros((2, 2, TEST.prompt_length))
    for b in range(TEST_BATCH):
        for t in range(TEST.prompt_length):
            mass[int(batch.truth.pattern[b, t] != batch.truth.pattern[b, -1])] += scores[b, 0, t] / TEST_BATCH
            sums[int(batch.truth.outlier[b, t]), :, TEST.prompt_length - 1 - t] += gates[b, 0, t], 1.0
    np.testing.assert_allclose(np.concatenate(score_mass(trained_mamba[0], TEST, count=TEST_BATCH)), mass, rtol=1e-4)
    profile = gate_profile(trained_mamba[0], TEST, count=TEST_BATCH)
    for mine, (total, number) in zip(profile, sums, strict=True):
        np.testing.assert_allclose(mine[0], total / number, rtol=1e-4)
