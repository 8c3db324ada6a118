"""Interventions on trained runs: one line each, usable wherever a trained run is."""

from __future__ import annotations

import numpy as np
import pytest

from iclab import (
    GPT2,
    Chain,
    ChainAttention,
    Classification,
    GatedAttention,
    Run,
    SoftmaxMLP,
    SpecError,
    Trained,
    Training,
    ablate,
    chain_errors,
    chain_test,
    clamp,
    graft,
    intervene,
    load_checkpoint,
    measure_error,
    model_errors,
    neuron_norms,
    patched,
    prune,
    save_checkpoint,
    site_values,
    sites,
    train_many,
)
from iclab.models.chain_attention import ChainParams
from iclab.papers.mamba.settings import attacked_prompts
from iclab.papers.mamba.trained import ungated
from iclab.probes.pruning import kept_neurons
from iclab.sweeps.sweep import Sweep
from iclab.training.packing import groups
from iclab.training.sgd import begin

SMALL = Classification(dimension=8, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2, prompt_length=4,
                       outlier_fraction=0.5)


def with_weights(model, prompts=SMALL, params=None):
    run = Run(model=model, prompts=prompts, training=Training(loss=prompts.labels.losses[0], backend="xla"))
    return Trained(run, begin(run).params if params is None else params, None, np.array([1]), np.array([1.0]))


def test_mamba_without_its_gate_is_a_linear_transformer(trained_mamba):
    attack = attacked_prompts("flip", 0.6)
    batch = attack.sample(0, 100)
    without = intervene(trained_mamba[0], clamp("gates", 1.0))
    np.testing.assert_allclose(without.predict(batch), ungated(trained_mamba[0]).predict(batch), rtol=1e-3, atol=1e-3)
    opened = intervene(trained_mamba[0], clamp("gates", 1.0, where="poisoned"))
    errors = model_errors([trained_mamba[0], without, opened], [attack], count=500, seeds=[0, 0, 0])[:, 0]
    assert errors[0] < 0.05
    assert min(errors[1:]) > 0.4
    assert measure_error(opened, attack, count=500).error == pytest.approx(errors[2], abs=0.05)
    np.testing.assert_allclose(without.look(batch)[1].gates, 1.0)


def test_a_graft_is_a_run_that_can_be_saved(trained_mamba, trained_linear, tmp_path):
    grafted = graft(trained_linear[0], trained_mamba[0], "gates")
    assert measure_error(grafted, attacked_prompts("flip", 0.6), count=300).error < 0.05
    save_checkpoint(tmp_path / "grafted.safetensors", grafted)
    again = load_checkpoint(tmp_path / "grafted.safetensors")
    assert again.run == grafted.run
    batch = attacked_prompts("flip", 0.6).sample(0, 10)
    np.testing.assert_array_equal(again.predict(batch), grafted.predict(batch))


def test_values_are_patched_from_another_batch_or_model(trained_mamba):
    mamba, other = trained_mamba[:2]
    batch, source = (attacked_prompts("flip", 0.5).sample(seed, 20) for seed in (0, 1))
    values = site_values(mamba, source)
    predict = patched(mamba, "gates", source, where="poisoned")
    seen = site_values(mamba, batch)
    outlier, label = np.asarray(batch.truth.outlier), np.asarray(batch.y)
    gates = np.where(outlier, values["gates/0"][:, 0], seen["gates/0"][:, 0])
    np.testing.assert_allclose(predict(batch), (gates * seen["scores/0"][:, 0] * label).sum(axis=1), rtol=1e-3,
                               atol=1e-3)
    with pytest.raises(SpecError, match="source must be prompts as many and as long"):
        predict(source._replace(x=source.x[:3]))
    np.testing.assert_allclose(patched(mamba, "gates", mamba).predict(batch), mamba.predict(batch), rtol=1e-3,
                               atol=1e-3)
    assert np.abs(patched(mamba, "gates", other).predict(batch) - mamba.predict(batch)).max() > 0.1


def test_ablated_neurons_are_pruned_ones():
    trained = with_weights(SoftmaxMLP(neurons=10))
    out = np.flatnonzero(~kept_neurons(neuron_norms(trained), 0.3, "large"))
    batch = SMALL.sample(0, 20)
    np.testing.assert_allclose(intervene(trained, ablate("neurons", units=out)).predict(batch),
                               prune(trained, 0.3, "large").predict(batch), rtol=1e-5, atol=1e-7)


def test_the_sites_of_every_model():
    found = {type(model).__name__: " ".join(dict.fromkeys(place.name for place in sites(model, prompts)))
             for model, prompts in ((GatedAttention(), SMALL), (SoftmaxMLP(), SMALL), (GPT2(), SMALL.sample(0, 3)),
                                    (ChainAttention(), Chain()))}
    assert found == {"GatedAttention": "log_decay intake scores gates stream", "SoftmaxMLP": "attention values neurons",
                     "GPT2": "attention heads neurons stream", "ChainAttention": "attention values"}


def test_chains_are_decoded_with_an_intervention():
    """Without attention every answer is the first pattern."""
    training = Chain(dimension=8, patterns=6, prompt_length=4)
    matching = np.diag(10.0 * np.asarray(ChainAttention().embedding.known(8)))
    trained = with_weights(ChainAttention(), training, ChainParams(matching))
    test = chain_test(training)
    errors = chain_errors([trained, intervene(trained, ablate("attention"))], [test], (4,), count=100, seed=0)
    assert errors.cot[0] < 0.2
    assert errors.cot[1] > 0.6
    with pytest.raises(SpecError, match="only a part of each prompt is read"):
        chain_errors([intervene(trained, ablate("attention", where="same"))], [test], (4,), count=100)


@pytest.mark.slow
def test_runs_with_other_values_share_a_program():
    runs = [Run(model=clamp("gates", value, where="poisoned")(GatedAttention()), prompts=SMALL,
                training=Training(steps=2, batch_size=4, record_every=2)) for value in (0.0, 0.5)]
    assert len(groups(runs)) == 1
    first, second = train_many(runs)
    assert first.loss[-1] != second.loss[-1]
    sweep = Sweep(base=runs[0], grid={"model.value": (0.0, 1.0), "model.where": ("poisoned", "all")})
    assert [trial.run.model.value for trial in sweep.trials()] == [0.0, 0.0, 1.0, 1.0]
