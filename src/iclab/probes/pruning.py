"""Pruning: remove neurons by the norm of what they read, or at random, from any model with an MLP.

A model that can be pruned is `Prunable` (`iclab.models.protocol`).
Reference: li2024icl, section 3.5.
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from iclab.core.errors import require
from iclab.models.protocol import Prunable
from iclab.training.trained import Trained

ORDERS = ("small", "large", "random")


def neuron_norms(trained: Trained) -> Float[np.ndarray, " neurons"]:
    """The norm of what each neuron reads."""
    model = trained.run.model
    require(isinstance(model, Prunable), "model", type(model).__name__, "have neurons to prune")
    return np.linalg.norm(np.asarray(model.neuron_inputs(jax.tree.map(jnp.asarray, trained.params))), axis=1)


def kept_neurons(norms: Float[np.ndarray, " neurons"], rate: float, order: str, seed: int = 0
                 ) -> Bool[np.ndarray, " neurons"]:
    """Which neurons stay when a fraction `rate` is removed: smallest first, largest first, or at random."""
    require(0 <= rate <= 1, "rate", rate, "lie in [0, 1]")
    require(order in ORDERS, "order", order, f"be one of {', '.join(ORDERS)}")
    ranked = {"small": np.argsort(norms), "large": np.argsort(-norms),
              "random": np.random.default_rng(seed).permutation(len(norms))}[order]
    keep = np.ones(len(norms), bool)
    keep[ranked[:round(rate * len(norms))]] = False
    return keep


def prune(trained: Trained, rate: float, order: str = "small", *, seed: int = 0) -> Trained:
    """The same run without a fraction `rate` of its neurons."""
    keep = kept_neurons(neuron_norms(trained), rate, order, seed)
    params = trained.run.model.keep_neurons(jax.tree.map(jnp.asarray, trained.params), jnp.asarray(keep))
    return dataclasses.replace(trained, params=jax.tree.map(np.asarray, params))
