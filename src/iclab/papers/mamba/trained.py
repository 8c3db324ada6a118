"""The one-layer models of figure 2, which most entries reuse, and broken versions of them for testing the rules."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from iclab.core.spec import replace
from iclab.lab.laboratory import Lab, per_seed
from iclab.models.gates import GateParams
from iclab.papers.mamba.settings import LEARNING_RATES, SIZES, one_layer_run
from iclab.training import Trained
from iclab.training.sgd import begin


def one_layer_models(lab: Lab, member: str, seeds: int | None = None) -> list[Trained]:
    """The first `seeds` of figure 2's models (all by default); the first caller trains every seed of both members."""
    size = SIZES[lab.scale]
    trained = lab.train([run for name in LEARNING_RATES
                         for run in per_seed(one_layer_run(name, size.steps), lab.seeds(size.seeds))])
    first = size.seeds * list(LEARNING_RATES).index(member)
    return trained[first:first + (seeds or size.seeds)]


def untrained(trained: Trained) -> Trained:
    """The same model before its first step."""
    return dataclasses.replace(trained, params=jax.tree.map(np.asarray, begin(trained.run).params))


def ungated(trained: Trained) -> Trained:
    """A gated model with every gate fixed to 1."""
    run = replace(trained.run, model=replace(trained.run.model, member="linear"))
    layers = tuple(layer._replace(gate=GateParams(jnp.zeros((0, layer.W_B.shape[1])), jnp.zeros(0)))
                   for layer in trained.params)
    return dataclasses.replace(trained, run=run, params=layers)

