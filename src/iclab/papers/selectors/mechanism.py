"""What happens inside during training: how patterns grow in queries and keys, and what the neurons read.

The input of a neuron is a sum of two parts, what it reads from the features and from the labels that attention brings:
with `p = sum_i softmax_i p_i`, `W_O W_V p = (W_O W_V)[:, :d] p[:d] + (W_O W_V)[:, d:] p[d:]`. Both are averaged over
the neurons that vote for the truth, those whose output weight has the sign of the query's label.

Differs from the paper: there the split is after W_V, `W_O[:, :d] sa[:d] + W_O[:, d:] sa[d:]` with `sa = W_V p` (here
`parts` with `after_values`). But training mixes the coordinates of W_V, so that sa[:d] contains the label as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.models import forward_batch
from iclab.papers.selectors.settings import theorem_prompts, training_prompts
from iclab.probes.watched import watched_prompts
from iclab.prompts import Prompt
from iclab.training import Setup, Trained, begin, probed

WATCHED = 400


def inside(setup: Setup, params: Any) -> dict[str, Array]:
    """Probe: everything that figure 1 shows, at one training step."""
    d, M1, M2 = setup.prompts.dimension, setup.prompts.relevant_patterns, setup.prompts.irrelevant_patterns
    # The settings of a run are traced here, so its prompts are told by their dimension, which is not.
    prompts = next(prompts for prompts in (training_prompts(), theorem_prompts()) if prompts.dimension == d)
    batch = watched_prompts(prompts, WATCHED)
    mean_norms: dict[str, Array] = {}
    for name, weights in (("query", params.W_Q), ("key", params.W_K)):
        # Patterns lie along the axes, so the weights map a pattern to beta times one of their columns.
        norms = setup.prompts.pattern_norm * jnp.linalg.norm(weights[:, :d], axis=0)
        mean_norms[f"{name} relevant"] = norms[:M1].mean()
        mean_norms[f"{name} irrelevant"] = norms[M1:M1 + M2].mean()
    features, labels = parts(setup, params, batch)
    late_features, late_labels = parts(setup, params, batch, after_values=True)
    voting = setup.model.second_layer() * batch.label[:, None] > 0
    share = jnp.where(voting, labels > features, False).sum() / voting.sum()
    # A neuron is lucky if its label part exceeds its feature part in most of the prompts for whose truth it votes.
    lucky = jnp.where(voting, late_labels > late_features, False).sum(axis=0) > voting.sum(axis=0) / 2
    inputs = jnp.abs(late_features + late_labels).mean(axis=0) * jnp.sqrt(float(params.W_O.shape[0]))
    attention = forward_batch(setup.model, params, batch)[1].scores[:, 0]
    same = batch.truth.pattern[:, :-1] == batch.truth.pattern[:, -1:]
    return mean_norms | {
        "features": jnp.where(voting, features, 0.0).sum() / voting.sum(),
        "labels": jnp.where(voting, labels, 0.0).sum() / voting.sum(), "share": share,
        "error of features": _error(setup, features, batch), "error of labels": _error(setup, labels, batch),
        "share after values": jnp.where(voting, late_labels > late_features, False).sum() / voting.sum(),
        "features after values": jnp.where(voting, late_features, 0.0).sum() / voting.sum(),
        "labels after values": jnp.where(voting, late_labels, 0.0).sum() / voting.sum(),
        "error of features after values": _error(setup, late_features, batch),
        "error of labels after values": _error(setup, late_labels, batch),
        # In units of the standard deviation xi of the entries of W_O at the start.
        "input of lucky": jnp.where(lucky, inputs, 0.0).sum() / jnp.maximum(lucky.sum(), 1),
        "input of others": jnp.where(lucky, 0.0, inputs).sum() / jnp.maximum((~lucky).sum(), 1),
        "missing": 1 - jnp.where(same, attention[:, :same.shape[1]], 0.0).sum(axis=1).mean()}


def parts(setup: Setup, params: Any, batch: Prompt, after_values: bool = False
          ) -> tuple[Float[Array, "batch m"], Float[Array, "batch m"]]:
    """What each neuron reads from the features and from the labels, before its ReLU."""
    d = setup.prompts.dimension
    attention = forward_batch(setup.model, params, batch)[1].scores[:, 0]
    columns = jax.vmap(setup.model.embedding.columns)(batch)
    attended = jnp.einsum("bt,btw->bw", attention, columns)
    sa, reads = (attended @ params.W_V.T, params.W_O) if after_values else (attended, params.W_O @ params.W_V)
    return sa[:, :d] @ reads[:, :d].T, sa[:, d:] @ reads[:, d:].T


def _error(setup: Setup, hidden: Float[Array, "batch m"], batch: Prompt) -> Float[Array, ""]:
    """Error of the output computed from these neuron inputs alone."""
    outputs = jax.nn.relu(hidden) @ setup.model.second_layer()
    return jnp.where(outputs * batch.label > 0, 0.0, 1.0).mean()


Records = dict[str, Float[np.ndarray, "seeds records"]]
"""The probe's values by name."""


def along(models: Sequence[Trained], name: str) -> Float[np.ndarray, "seeds records"]:
    """The probe's values before training and at every record."""
    return np.stack([np.concatenate([[probed(inside, m.run, begin(m.run).params)[name]], (m.probes or {})[name]])
                     for m in models])


def at_ends(models: Sequence[Trained]) -> dict[str, Float[np.ndarray, "models 2"]]:
    """The probe's values before and after training, of models that need not have been probed."""
    both = [[probed(inside, model.run, params) for params in (begin(model.run).params, model.params)]
            for model in models]
    return {name: np.array([[float(values[name]) for values in ends] for ends in both]) for name in both[0][0]}


def pattern_norms(models: Sequence[Trained]) -> Records:
    """Mean norms of patterns in queries and keys."""
    return {name: along(models, name) for name in ("query relevant", "query irrelevant", "key relevant",
                                                   "key irrelevant")}
