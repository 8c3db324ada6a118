"""The compiled loop takes the steps of Algorithm 1 on the data it says."""

from __future__ import annotations

import jax
import numpy as np
import optax
import pytest

from iclab import SpecError, Training, load_checkpoint, replace, save_checkpoint, train
from iclab.models import forward
from iclab.training.losses import hinge
from iclab.training.sgd import begin, step_keys


def by_hand(run):
    """The same training as a plain loop over steps."""
    state = begin(run)
    params, rule = state.params, run.training.transformation()
    optimizer = rule.init(params)
    losses = []
    keys = step_keys(run.data_seed, 0, run.training.steps)

    def mean_loss(params, batch):
        outputs, _ = jax.vmap(lambda prompt: forward(run.model, params, prompt))(batch)
        return jax.vmap(hinge)(outputs, batch.label).mean()

    slope, update = jax.jit(jax.value_and_grad(mean_loss)), jax.jit(rule.update)
    for step in range(run.training.steps):
        batch = run.prompts.sample(jax.tree.map(lambda words, i=step: words[i], keys), run.training.batch_size)
        loss, gradient = slope(params, batch)
        updates, optimizer = update(gradient, optimizer, params)
        params = optax.apply_updates(params, updates)
        losses.append(float(loss))
    return params, losses


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_compiled_loop_equals_a_plain_one(float64, tiny_run, optimizer):
    run = replace(tiny_run, training=replace(tiny_run.training, steps=7, record_every=3, optimizer=optimizer,
                                             clip_norm=1.0))
    params, losses = by_hand(run)
    trained = train(run)
    np.testing.assert_array_equal(trained.steps, [3, 6, 7])
    np.testing.assert_allclose(trained.loss, [np.mean(losses[:3]), np.mean(losses[3:6]), losses[6]], rtol=1e-9)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12), trained.params, params)


def test_training_lowers_the_loss(trained_mamba):
    for trained in trained_mamba:
        assert trained.status == "trained"
        assert trained.loss[-1] < 0.01 < trained.loss[0]


def test_seeds_are_separate(tiny_run):
    a, b, c = (train(replace(tiny_run, **seeds)) for seeds in ({}, {"init_seed": 1}, {"data_seed": 1}))
    assert not np.array_equal(a.params[0].gate.w, b.params[0].gate.w)
    assert not np.array_equal(a.loss, c.loss)
    np.testing.assert_array_equal(begin(a.run).params[0].gate.w, begin(c.run).params[0].gate.w)


def test_divergence_is_a_status(tiny_run):
    run = replace(tiny_run, model=replace(tiny_run.model, member="linear"),
                  training=replace(tiny_run.training, learning_rate=1e6, steps=200))
    assert train(run).status.startswith("diverged at step")


def test_probes_are_recorded_on_the_schedule(tiny_run):
    trained = train(tiny_run, probe=lambda run, params: {"norm": (params[0].W_B ** 2).sum()})
    assert trained.probes["norm"].shape == (3,)
    np.testing.assert_allclose(trained.probes["norm"][-1], (trained.params[0].W_B ** 2).sum(), rtol=1e-5)


def test_probe_records_continue_when_a_run_resumes(tiny_run, tmp_path):
    def norm(run, params):
        return (params[0].W_B ** 2).sum()

    longer = replace(tiny_run, training=replace(tiny_run.training, steps=50))
    save_checkpoint(tmp_path / "m.safetensors", train(tiny_run, probe=norm))
    half = load_checkpoint(tmp_path / "m.safetensors")
    whole = train(longer, start=half, probe=norm)
    np.testing.assert_array_equal(whole.probes["value"], train(longer, probe=norm).probes["value"])
    np.testing.assert_array_equal(train(tiny_run, start=half).probes["value"], half.probes["value"])
    with pytest.raises(SpecError, match="probe must be given"):
        train(longer, start=half)


def test_a_users_optimizer_and_loss(tiny_run):
    training = Training(steps=20, batch_size=8, learning_rate=0.01, optimizer=optax.rmsprop, loss="squared",
                        record_every=20)
    assert train(replace(tiny_run, training=training)).status == "trained"


@pytest.mark.parametrize(("changes", "message"), [
    ({"steps": 0}, "steps must be a whole number >= 1, got 0"),
    ({"learning_rate": -1.0}, "learning_rate must be in (0, inf), got -1.0"),
    ({"optimizer": "magic"}, "optimizer must be the name of an optax optimizer"),
    ({"optimizer": "apply_updates"}, "optimizer must be the name of an optax optimizer"),
    ({"loss": "zero"}, "loss must be one of hinge, squared, logistic, cross_entropy, token_cross_entropy, got 'zero'"),
])
def test_bad_fields_are_named(changes, message):
    with pytest.raises(SpecError) as error:
        replace(Training(), **changes)
    assert message in str(error.value)
