"""Pruning removes the neurons it names, for every model with an MLP."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from iclab import GPT2, Classification, IclabError, LabelEmbedding, Run, SoftmaxMLP, Trained, measure_error, prune
from iclab.probes.pruning import kept_neurons, neuron_norms
from iclab.training.sgd import begin

PROMPTS = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=0, prompt_length=6)
MODELS = (SoftmaxMLP(neurons=10, embedding=LabelEmbedding(size=4, norm=3.0)),
          GPT2(layers=2, heads=1, size=8, positions=7, embedding=LabelEmbedding(size=4, norm=3.0)))


def untrained(model):
    run = Run(model=model, prompts=PROMPTS)
    return Trained(run, jax.tree.map(np.asarray, begin(run).params), None, np.array([0]), np.array([1.0]))


def test_which_neurons_stay():
    norms = np.array([3.0, 1.0, 2.0, 5.0, 4.0])
    assert kept_neurons(norms, 0.4, "small").tolist() == [True, False, False, True, True]
    assert kept_neurons(norms, 0.4, "large").tolist() == [True, True, True, False, False]
    assert kept_neurons(norms, 0.4, "random", seed=1).sum() == 3
    assert kept_neurons(norms, 0.0, "small").all()
    for rate, order, line in ((1.5, "small", "rate must lie"), (0.5, "middle", "order must be one of small")):
        with pytest.raises(IclabError, match=line):
            kept_neurons(norms, rate, order)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_pruned_neuron_has_no_effect(model):
    whole = untrained(model)
    norms, batch = neuron_norms(whole), PROMPTS.sample(0, 5)
    np.testing.assert_allclose(prune(whole, 0.0).predict(batch), whole.predict(batch), rtol=1e-6)
    half = prune(whole, 0.5, "large")
    keep = kept_neurons(norms, 0.5, "large")
    changed = jax.tree.map(np.array, whole.params)
    if isinstance(model, SoftmaxMLP):
        changed.W_O[~keep] = 0
    else:
        changed.blocks.down.W[~keep.reshape(2, -1)] = 0
    np.testing.assert_array_equal(half.predict(batch), Trained(whole.run, changed, None, whole.steps,
                                                               whole.loss).predict(batch))


def test_without_neurons_every_answer_is_wrong():
    assert measure_error(prune(untrained(MODELS[0]), 1.0), PROMPTS, count=100).error == 1


def test_a_model_without_neurons_is_named(trained_mamba):
    with pytest.raises(IclabError, match="model must have neurons to prune, got 'GatedAttention'"):
        prune(trained_mamba[0], 0.5)
