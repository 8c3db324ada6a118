"""Errors for every number of context examples at once, against prompts of that length."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from iclab import GatedAttention, IclabError, Run, replace
from iclab.papers.mamba.settings import attacked_prompts
from iclab.probes import model_errors
from iclab.probes.by_length import context_errors
from iclab.training import Trained


def test_the_last_examples_of_a_long_prompt_are_a_short_prompt(trained_mamba, trained_linear):
    tests = [attacked_prompts("flip", fraction, prompt_length=30) for fraction in (0.3, 0.5)]
    for model in (trained_mamba[0], trained_linear[0]):
        errors = context_errors([model], tests, (3, 10, 30), count=8000, seeds=[1])[0]
        whole = model_errors([model], tests, count=8000, seeds=[1])[0]
        np.testing.assert_allclose(errors[:, 2], whole, atol=1e-3)
        short = model_errors([model], [replace(test, prompt_length=3) for test in tests], count=8000, seeds=[2])[0]
        np.testing.assert_allclose(errors[:, 0], short, atol=0.03)


def test_any_model_can_be_measured(trained_mamba):
    deep = Trained(Run(model=GatedAttention(layers=2)), GatedAttention(layers=2).init(jax.random.key(0), 30), None,
                   np.array([1]), np.array([1.0]))
    test = attacked_prompts("flip", 0.3, prompt_length=30)
    errors = context_errors([deep], [test], (3, 30), count=2000, seeds=[1])[0, 0]
    np.testing.assert_allclose(errors[1], model_errors([deep], [test], count=2000, seeds=[1])[0, 0], atol=1e-3)
    short = model_errors([deep], [replace(test, prompt_length=3)], count=2000, seeds=[2])[0, 0]
    np.testing.assert_allclose(errors[0], short, atol=0.05)


def test_bad_arguments_are_named(trained_mamba):
    with pytest.raises(IclabError, match=r"lengths must lie in \[1, 20\]"):
        context_errors(trained_mamba[:1], [attacked_prompts("flip", 0.3)], (30,))
    with pytest.raises(IclabError, match="placement must be random"):
        context_errors(trained_mamba[:1], [attacked_prompts("flip", 0.3, placement="far")], (3,))
