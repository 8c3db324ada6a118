"""The outcome of a training: trained, stuck or diverged, and what to try."""

from __future__ import annotations

import jax
import numpy as np
import optax
import pytest

from iclab import Sweep, from_labelled, replace, train, train_many
from iclab.models import SoftmaxMLP
from iclab.training import Trained
from iclab.training.sgd import begin


def with_training(run, **changes):
    return replace(run, training=replace(run.training, **changes))


def with_losses(run, losses, every=10):
    """A finished run with these records, whose weights have moved."""
    params = jax.tree.map(lambda leaf: np.asarray(leaf) + 0.1, begin(run).params)
    return Trained(run, params, None, every * (1 + np.arange(len(losses))), np.array(losses))


def test_a_trained_model_prints_as_one_line(tiny_run):
    assert repr(with_losses(replace(tiny_run, init_seed=3), [1.0, 0.25])) == (
        "Trained(GatedAttention on Classification, seeds 3 and 0, 20 steps, loss 0.25: trained)")


def kill(_):
    """An optimizer whose first step sets every weight to 0, where every gradient is 0."""
    return optax.GradientTransformation(
        lambda params: (), lambda gradient, state, params: (jax.tree.map(lambda weight: -weight, params), state))


def test_a_loss_that_never_moved_is_stuck(tiny_run):
    blind = replace(tiny_run, model=replace(tiny_run.model, init_scale=1e-12))
    expected = "stuck at a loss of 1; try a larger learning_rate or init_scale"
    assert train(blind).status == expected
    assert train(with_training(blind, record_every=30)).status == expected
    assert train(blind).state == "stuck"


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_inputs_of_the_wrong_size_are_named_where_they_may_have_any(tiny_run, scale):
    inputs = np.random.default_rng(0).standard_normal((20, 9))
    run = replace(tiny_run, prompts=from_labelled(scale * inputs, np.arange(20) % 2, prompt_length=6))
    assert train(run).status.endswith(", or scale the inputs (standardize=True of from_csv and from_labelled)")
    scaled = from_labelled(scale * inputs, np.arange(20) % 2, prompt_length=6, standardize=True)
    assert train(replace(run, prompts=scaled)).state == "trained"


def test_a_dead_network_is_stuck(tiny_run):
    dead = train(with_training(replace(tiny_run, model=SoftmaxMLP()), optimizer=kill))
    assert dead.status == "stuck since step 20, with outputs that are all 0; try a smaller learning_rate or a clip_norm"


def test_weights_that_never_moved_are_stuck(tiny_run):
    frozen = [with_training(tiny_run, learning_rate=1e-14).seeded(seed) for seed in range(2)]
    for trained in train_many(frozen):
        assert np.ptp(trained.loss) > 0
        assert trained.status == "stuck at its starting weights; try a larger learning_rate"


def test_divergence_says_where_and_what_to_try(tiny_run):
    trained = with_losses(tiny_run, [1.0, 3.0, np.nan])
    assert trained.status == "diverged at step 30; try a smaller learning_rate or a clip_norm"
    assert trained.state == "diverged"


@pytest.mark.parametrize("losses", [
    [0.0, 0.0, 0.0],            # separated from the first batch on
    [1e-9, 1e-9],
    [0.7, 0.7001],              # slow is not stuck
    [0.9, 0.25, 0.25],          # a loss that levelled off
    [1.0, 1.0, 0.99999],
    [0.7],                      # one record alone tells nothing
    [0.8, 1.0],                 # nor does one loss of 1 by accident
])
def test_no_false_alarm(tiny_run, losses):
    assert with_losses(tiny_run, losses).status == "trained"


def test_the_first_step_says_nothing(tiny_run):
    assert with_losses(tiny_run, [1.0], every=1).status == "trained"


def test_a_stuck_run_is_measured_averaged_and_counted(tiny_run):
    sweep = Sweep(base=tiny_run, grid={"model.init_scale": [0.2, 1e-12]}, seeds=2, prompts=500)
    seen = []
    results = sweep.run(watch=seen.append)
    assert results.counts == {"trained": 2, "stuck": 2, "diverged": 0, "failed": 0}
    assert seen[-1].stuck == 2
    stuck = results.frame.filter(results.frame["status"] == "stuck")
    assert stuck["reason"][0] == "at a loss of 1; try a larger learning_rate or init_scale"
    assert stuck["hinge"].to_list() == pytest.approx([1.0, 1.0])
    assert stuck["error"].null_count() == 0
    row = results.over_seeds(["stuck>0"]).row(0, named=True)
    assert (row["seeds"], row["of"], row["trained"], row["stuck"]) == (2, 2, 0, 2)
    assert row["error"] == pytest.approx(stuck["error"].mean())
