"""Inside a trained Mamba: corollaries 1 and 2 of the paper, and that an untrained one shows neither."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from iclab import gate_profile, score_mass
from iclab.papers.mamba.settings import attacked_prompts
from iclab.training.sgd import begin

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
