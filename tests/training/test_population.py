"""Population dynamics: symmetric, exact where a closed form exists, and what training follows."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from iclab import (
    Classification,
    GatedAttention,
    Run,
    SoftmaxMLP,
    SpecError,
    Training,
    order_parameters,
    order_probe,
    population_dynamics,
    replace,
    train,
)
from iclab.training.order import pattern_weights
from iclab.training.population import averaged, orbits_of

PROMPTS = Classification(outlier_fraction=0.6, tasks="cyclic:2")


def a_run(member="mamba", rate=0.02, steps=1, prompts=PROMPTS, **training):
    return Run(model=GatedAttention(member=member), prompts=prompts,
               training=Training(steps=steps, learning_rate=rate, **training))


@pytest.mark.parametrize(("member", "reach"), [("linear", 20.0), ("mamba", (1 - 2.0**-20) / 2)])
@pytest.mark.parametrize("shifts", [1, 2])
def test_the_first_step_is_that_of_the_expected_gradient(member, reach, shifts):
    """All outputs are small, so the gradient along A is E[z sum_i G_i y_i p_i p_q^T]: an example agrees with the query
    in its pattern half of the time, and otherwise carries a partner of the query with the other label."""
    eta, delta, beta, M1 = 0.02, 0.01, 3.0, 6
    run = a_run(member, eta, prompts=replace(PROMPTS, tasks=f"cyclic:{shifts}"))
    run = replace(run, model=replace(run.model, init_scale=delta))
    scores = population_dynamics(run, prompts=20_000).weights
    moved = eta * delta * beta**2 * reach * (1 - 0.6) / 2 / M1
    assert np.isclose(scores.between(scores.W_B, 0) - delta, moved, rtol=0.03)
    for shift in (1, 2, 3):
        expected = -moved / (2 * shifts) if shift <= shifts else 0.0
        assert np.isclose(scores.between(scores.W_C, shift), expected, atol=0.03 * moved)


def test_averaging_is_over_the_symmetries_of_the_prompts():
    orbits, rng = orbits_of(PROMPTS), np.random.default_rng(0)
    n = len(orbits.gate)
    W = averaged(rng.standard_normal((n, n)), orbits.matrix)
    assert np.allclose(averaged(W, orbits.matrix), W)
    next_pattern = np.r_[np.roll(np.arange(6), 1), np.roll(np.arange(6, 16), 3), 17, 16, 18]
    reversed_patterns = np.r_[np.arange(6)[::-1], np.arange(6, n)]
    for exchange in (next_pattern, reversed_patterns):
        assert np.allclose(W[np.ix_(exchange, exchange)], W)
    signs = np.where(np.arange(n) == 7, -1.0, 1.0)
    assert np.allclose(signs[:, None] * W * signs, W)
    assert len(np.unique(W[:6, :6])) == 4


def test_what_symmetry_removes_is_sampling_noise():
    """A huge batch moves the weights alike whether or not they are averaged."""
    run = a_run("linear", 0.002, 20, replace(PROMPTS, tasks="cyclic:1"))
    averaged_, free = (population_dynamics(run, prompts=20_000, own_start=own).weights for own in (False, True))
    moved = np.abs(averaged_.W_B - 0.2 * np.eye(20)).max()
    assert np.abs(averaged_.W_B - free.W_B)[:-1, :-1].max() < 0.03 * moved


@pytest.mark.parametrize("member", ["linear", "mamba"])
def test_training_follows_it(member):
    run = a_run(member, {"linear": 0.001, "mamba": 0.1}[member], 100, record_every=50)
    predicted = population_dynamics(run, own_start=member == "mamba")
    trained = train(run, probe=order_probe(run.prompts))
    assert np.array_equal(predicted.steps, trained.steps)
    assert np.allclose(predicted.loss, trained.loss, atol=0.03)
    assert predicted.error[-1] < 0.1
    for name, values in predicted.order.items():
        assert np.allclose(values, trained.probes[name], atol=0.05), name


def test_it_needs_no_seed_and_no_basis():
    first = population_dynamics(a_run(steps=20))
    other = population_dynamics(a_run(steps=20, prompts=replace(PROMPTS, rotation_seed=3)).seeded(7))
    assert np.array_equal(first.loss, other.loss)


def test_weights_along_patterns_do_not_depend_on_the_basis():
    run = a_run(steps=20, prompts=replace(PROMPTS, rotation_seed=3), record_every=20)
    trained = train(run, probe=order_probe(run.prompts))
    mine = order_parameters(pattern_weights(trained.params, run.prompts))
    assert set(mine) == set(trained.probes)
    for name, value in mine.items():
        assert np.isclose(value, trained.probes[name][-1], atol=1e-5), name


def test_it_stops_at_a_loss():
    run = a_run("mamba", 0.1, 200, record_every=5)
    population = population_dynamics(run, until=0.5)
    assert population.loss[-1] <= 0.5 < population.loss[-2]


@pytest.mark.parametrize(("run", "words"), [
    (replace(a_run(), prompts=replace(PROMPTS, tasks=((0, 1), (1, 2)))), "prompts.tasks must stay the same"),
    (replace(a_run(), prompts=replace(PROMPTS, label_rule="target")), "prompts.label_rule must be random or flip"),
    (replace(a_run(), prompts=replace(PROMPTS, outlier_mixtures=((1, 1, 0),))), "outlier_mixtures must be None"),
    (replace(a_run(), model=GatedAttention(layers=2)), "run must have one layer"),
    (Run(model=SoftmaxMLP(), prompts=PROMPTS), "model must be a GatedAttention or a ChainAttention"),
])
def test_runs_without_the_symmetries_are_refused(run, words):
    with pytest.raises(SpecError, match=words):
        population_dynamics(run)


@pytest.mark.parametrize("name", ["steps", "prompts"])
def test_numbers_are_checked(name):
    with pytest.raises(SpecError, match=f"{name} must be a whole number of at least 1, got 0"):
        population_dynamics(a_run(), **{name: 0})


def test_without_kernels_it_is_refused():
    with jax.enable_x64(True), pytest.raises(SpecError, match="run must be in single precision for population"):
        population_dynamics(a_run())
