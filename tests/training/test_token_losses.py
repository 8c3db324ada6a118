"""A loss at every token: its value, trainings that follow it, probes and measures on token prompts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import (
    MarkovChain,
    Recall,
    Run,
    SoftmaxAttention,
    SpecError,
    Sweep,
    TokenEmbedding,
    Training,
    label_weights,
    load_checkpoint,
    measure_error,
    model_errors,
    replace,
    save_checkpoint,
    score_mass,
    train,
)
from iclab.commands.eval import label_rates
from iclab.probes.by_length import context_errors
from iclab.probes.token_phases import phase_probe
from iclab.prompts.labels import token_cross_entropy

PROMPTS = MarkovChain(dimension=2, prompt_length=7)
RUN = Run(model=SoftmaxAttention(heads=1, size=8, reach=3, embedding=TokenEmbedding()), prompts=PROMPTS,
          training=Training(steps=60, batch_size=16, learning_rate=0.02, optimizer="adam", loss="token_cross_entropy",
                            record_every=20))


@pytest.fixture(scope="module")
def trained():
    return train(RUN)


def test_the_loss_is_the_mean_over_the_tokens_that_are_asked():
    outputs = np.random.default_rng(0).normal(size=(4, 3))
    label = np.array([2, -1, 0, -1])
    by_hand = [-np.log(np.exp(outputs[t, label[t]]) / np.exp(outputs[t]).sum()) for t in (0, 2)]
    assert float(token_cross_entropy(jnp.asarray(outputs), jnp.asarray(label))) == pytest.approx(np.mean(by_hand), 1e-5)
    slope = jax.grad(token_cross_entropy)(jnp.asarray(outputs), jnp.asarray(label))
    assert (np.abs(slope).sum(axis=1) > 0).tolist() == [True, False, True, False]
    none = token_cross_entropy(jnp.asarray(outputs), jnp.full(4, -1))
    assert float(none) == 0
    with pytest.raises(SpecError, match=r"model must return a score for every token and class, shape \(4, 'classes'\)"):
        token_cross_entropy(jnp.zeros(3), jnp.asarray(label))


def test_training_lowers_the_loss(trained):
    assert trained.loss[-1] < trained.loss[0]
    measured = measure_error(trained, PROMPTS, count=1000)
    assert measured.low < measured.error < measured.high
    assert measured.error < np.log(2)


@pytest.mark.slow
def test_all_ways_to_measure_agree_and_a_checkpoint_restores_the_model(trained, tmp_path):
    measured = measure_error(trained, PROMPTS, count=1000)
    assert model_errors([trained], [PROMPTS], count=1000, seeds=[0])[0, 0] == pytest.approx(measured.error, rel=1e-4)
    assert label_rates(trained, PROMPTS, 500, 0)["cross_entropy"] < np.log(2)
    save_checkpoint(tmp_path / "model", trained)
    again = load_checkpoint(tmp_path / "model")
    batch = PROMPTS.sample(0, 3)
    np.testing.assert_array_equal(again.predict(batch), trained.predict(batch))


@pytest.mark.slow
def test_a_sweep_measures_the_cross_entropy():
    brief = replace(RUN, training=replace(RUN.training, steps=2))
    frame = Sweep(base=brief, seeds=2, prompts=500, measure=("cross_entropy", "loss")).run().frame
    assert (frame["cross_entropy"] > 0).all()
    with pytest.raises(SpecError, match="for labels of kind tokens one of cross_entropy, loss"):
        Sweep(base=brief, seeds=2, measure=("error",)).run()


@pytest.mark.slow
def test_the_phases_of_a_training_are_recorded():
    probes = train(RUN, probe=phase_probe(PROMPTS)).probes
    assert probes["loss"].shape == (3, 8)
    assert probes["previous"].shape == probes["induction"].shape == (3, 1, 1)
    assert 0 < probes["from unigram"][-1] < 0.5
    assert 0 < probes["from order 1"][-1] < 0.5


@pytest.mark.parametrize(("look", "words"), [
    (lambda trained: label_weights(trained, PROMPTS), "prompts must have labels that are signs or numbers"),
    (lambda trained: score_mass(trained, PROMPTS), "tell the pattern of each token and which are poisoned"),
    (lambda trained: context_errors([trained], [PROMPTS], [2]), "tests must have labels that are signs"),
    (lambda trained: phase_probe(Recall()), "prompts must be a MarkovChain")])
def test_probes_that_do_not_apply_refuse_in_one_line(trained, look, words):
    with pytest.raises(SpecError, match=words) as refusal:
        look(trained)
    assert "\n" not in str(refusal.value)


def test_a_notebook_shows_tokens_and_what_is_asked_after_them():
    shown = Recall(keys=2, values=2, pairs=1, queries=1).sample(0, 2)._repr_html_()
    assert "<b>.</b>" in shown
    assert "the first of 2 prompts; below each token the class that is asked for after it" in shown
