"""Looks by the fused kernels give what the compiled programs give."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import jax
import numpy as np
import pytest

from iclab import Classification, GatedAttention, LabelEmbedding, Run, SoftmaxMLP, Training, replace, train_many
from iclab.papers.mamba.family import LOOK
from iclab.probes import gate_profile, model_errors, score_mass
from iclab.probes.by_length import context_errors
from iclab.probes.error_rate import averages
from iclab.probes.inside import gate_profiles, masses
from iclab.probes.kernel_looks import kernels_can_read
from iclab.probes.looks import Look
from iclab.training import Trained

MIXED = {"outlier_mixtures": ((0.7, 0.6), (-0.4, 0.9)), "pattern_mixtures": ((0.6, 0.8, 0.0), (0.0, 0.6, -0.8))}
PROMPTS = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2, prompt_length=6,
                         outlier_fraction=0.4)
TESTS = [replace(PROMPTS, label_rule="flip", prompt_length=length, **changes)
         for length, changes in ((6, {}), (9, MIXED), (9, {"rotation_seed": 1, "placement": "close"}),
                                 (6, {"outlier_scale": 0.0, "decisive_fraction": 0.7}),
                                 (6, {"outlier_vectors": (np.linspace(-1.0, 2.0, 9),), "rotation_seed": 1}))]
AT_RANDOM = [test for test in TESTS if test.placement == "random"]
SEEDS = [0, 1, 0, 1]


def both(models):
    """Trained runs, to be read by the kernels and by XLA."""
    by_xla = [dataclasses.replace(trained, run=replace(trained.run, training=replace(
        trained.run.training, backend="xla"))) for trained in models]
    assert kernels_can_read(models, TESTS)
    assert not kernels_can_read(by_xla, TESTS)
    return models, by_xla


@pytest.fixture(scope="module")
def gated():
    training = Training(steps=60, batch_size=16, learning_rate=0.1, record_every=60)
    return both(train_many([
        Run(model=GatedAttention(member=member, embedding=LabelEmbedding(norm=norm)), prompts=PROMPTS,
            training=training)
        for member, norm in (("mamba", 1.0), ("mamba", 2.0), ("linear", 1.0), ("mamba2_step", 1.0))]))


@pytest.fixture(scope="module")
def softmax():
    training = Training(steps=60, batch_size=16, learning_rate=0.3, record_every=60)
    run = Run(model=SoftmaxMLP(neurons=12, init_scale=0.3), prompts=PROMPTS, training=training)
    return both(train_many([run.seeded(seed) for seed in range(4)]))


def agree(mine, theirs):
    """Counts may differ where an output is nearly 0: of 2,000 prompts, in a few."""
    assert np.nanmin(theirs) < np.nanmax(theirs)
    np.testing.assert_allclose(mine, theirs, atol=0.0011)
    assert np.isclose(mine, theirs, rtol=1e-5, equal_nan=True).mean() > 0.8


@pytest.mark.parametrize("kind", ["gated", "softmax"])
@pytest.mark.parametrize("measure", ["error", "hinge"])
def test_errors_are_those_of_the_compiled_model(kind, measure, request):
    agree(*(model_errors(models, TESTS, count=2000, seeds=SEEDS, measure=measure)
            for models in request.getfixturevalue(kind)))


@pytest.mark.parametrize("kind", ["gated", "softmax"])
def test_an_output_of_0_is_wrong(kind, request):
    for models in request.getfixturevalue(kind):
        mute = [dataclasses.replace(models[0], params=jax.tree.map(np.zeros_like, models[0].params))]
        assert model_errors(mute, TESTS[:1], count=500)[0, 0] == 1.0
        assert model_errors(mute, TESTS[:1], count=500, measure="hinge")[0, 0] == 1.0
        assert (context_errors(mute, TESTS[:1], (1, 6), count=500) == 1.0).all()


@pytest.mark.parametrize("kind", ["gated", "softmax"])
def test_errors_by_length_are_those_of_the_compiled_model(kind, request):
    agree(*(context_errors(models, AT_RANDOM, (6, 1, 3), count=2000, seeds=SEEDS)
            for models in request.getfixturevalue(kind)))


@pytest.mark.parametrize("kind", ["gated", "softmax"])
def test_the_score_mass_is_that_of_the_compiled_model(kind, request):
    pair = request.getfixturevalue(kind)
    mine, theirs = (averages(masses, models, TESTS, 1000, SEEDS) for models in pair)
    np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=1e-5)
    assert mine.shape == (4, len(TESTS), 2, 1)
    np.testing.assert_allclose(score_mass(pair[0][0], TESTS[0], count=1000), mine[0, 0])


@pytest.mark.parametrize("test", TESTS, ids=lambda test: f"{test.placement} {test.prompt_length}")
def test_gates_by_distance_are_those_of_the_compiled_model(gated, test):
    mine, theirs = (gate_profiles(models, test, count=1000, seeds=SEEDS) for models in gated)
    for some, others in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(some, others, rtol=2e-5)
        assert some.shape == (4, 1, test.prompt_length)
    np.testing.assert_array_equal(np.isnan(gate_profile(gated[0][0], test).poisoned),
                                  np.isnan(gate_profile(gated[1][0], test).poisoned))


@pytest.mark.slow
def test_a_look_sees_the_same_prompts_together(gated):
    """A ratio of sums depends on which batches are looked at as one."""
    for count in (500, 3000):
        mine, theirs = (averages(LOOK, models, TESTS, count, SEEDS) for models in gated)
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=0.0021)
        np.testing.assert_allclose(mine[..., 1:], theirs[..., 1:], rtol=2e-5)


def gate_of_the_nearest(shown):
    return shown.gates[:, 0, -2].mean()


def test_a_look_of_ones_own_is_a_function_of_what_is_shown(gated):
    look = Look(gate_of_the_nearest, inside=True)
    mine, theirs = (averages(look, models, TESTS, 1000, SEEDS) for models in gated)
    assert mine.shape == (4, len(TESTS))
    np.testing.assert_allclose(mine, theirs, rtol=2e-5)
    deep = GatedAttention(layers=2)
    two_layers = [Trained(Run(model=deep), deep.init(jax.random.key(0), 30), None, np.array([1]), np.array([1.0]))]
    assert 0 < averages(look, two_layers, [Run().prompts], 500, [0])[0, 0] < 1


def test_numba_is_not_imported_before_a_kernel_is_used():
    script = "import sys, iclab.papers.catalogue, iclab.probes; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
