"""Shared fixtures."""

from __future__ import annotations

import jax
import pytest
from hypothesis import settings

from iclab import Classification, GatedAttention, Run, Training, train_many
from iclab.papers.mamba.settings import training_prompts

settings.register_profile("iclab", deadline=None, max_examples=8)
settings.load_profile("iclab")


@pytest.fixture
def float64():
    """Everything in double precision for one test."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def tiny_run() -> Run:
    """A run of a second."""
    prompts = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2,
                             prompt_length=6, outlier_fraction=0.4)
    return Run(model=GatedAttention(member="mamba"), prompts=prompts,
               training=Training(steps=30, batch_size=16, learning_rate=0.5, record_every=10))


@pytest.fixture(scope="session")
def trained_mamba():
    """Four seeds of the paper's one-layer Mamba, trained briefly: enough to filter outliers."""
    run = Run(model=GatedAttention(member="mamba"), prompts=training_prompts(),
              training=Training(steps=3000, learning_rate=1.0, record_every=500))
    return train_many([run.seeded(seed) for seed in range(4)])


@pytest.fixture(scope="session")
def trained_linear():
    """Four seeds of the linear Transformer on the same prompts."""
    run = Run(model=GatedAttention(member="linear"), prompts=training_prompts(),
              training=Training(steps=1000, learning_rate=0.1, record_every=500))
    return train_many([run.seeded(seed) for seed in range(4)])
