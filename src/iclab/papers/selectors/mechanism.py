"""What happens inside along training: how patterns grow in queries and keys, and what the neurons read.

The input of a neuron is a sum of two parts, what it reads of the features and of the labels that attention brings:
with `p = sum_i softmax_i p_i`, `W_O W_V p = (W_O W_V)[:, :d] p[:d] + (W_O W_V)[:, d:] p[d:]`. Both are averaged over
the neurons that vote for the truth, those whose output weight has the sign of the query's label.

Differs from the paper: it cuts after W_V, `W_O[:, :d] sa[:d] + W_O[:, d:] sa[d:]` with `sa = W_V p` (here `parts` with
`after_values`). But training mixes the coordinates of W_V, so that sa[:d] knows the label as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.papers.selectors.settings import training_prompts
from iclab.probes.errors import Drawn
from iclab.training import Run, Trained
from iclab.training.sgd import begin

WATCHED = 400


def inside(run: Run, params: Any) -> dict[str, Array]:
    """Probe: everything that figure 1 shows, at one moment."""
    d, M1, M2 = run.prompts.dimension, run.prompts.relevant_patterns, run.prompts.irrelevant_patterns
    with jax.ensure_compile_time_eval():
        batch = Drawn.of(training_prompts().sample(0, WATCHED))
    seen: dict[str, Array] = {}
    for letter, weights in (("query", params.W_Q), ("key", params.W_K)):
        # Patterns stand along the axes, so a column of the weights times beta is what becomes of a pattern.
        norms = run.prompts.pattern_norm * jnp.linalg.norm(weights[:, :d], axis=0)
        seen[f"{letter} relevant"], seen[f"{letter} irrelevant"] = norms[:M1].mean(), norms[M1:M1 + M2].mean()
    features, labels = parts(run, params, batch)
    cut = parts(run, params, batch, after_values=True)
    voting = run.model.second_layer() * batch.label[:, None] > 0
    share = jnp.where(voting, labels > features, False).sum() / voting.sum()
    return seen | {"features": jnp.where(voting, features, 0.0).sum() / voting.sum(),
                   "labels": jnp.where(voting, labels, 0.0).sum() / voting.sum(), "share": share,
                   "error of features": _error(run, features, batch), "error of labels": _error(run, labels, batch),
                   "share after values": jnp.where(voting, cut[1] > cut[0], False).sum() / voting.sum(),
                   "error of features after values": _error(run, cut[0], batch)}


def parts(run: Run, params: Any, batch: Drawn, after_values: bool = False
          ) -> tuple[Float[Array, "batch m"], Float[Array, "batch m"]]:
    """What each neuron reads of the features and of the labels, before its ReLU."""
    d = run.prompts.dimension
    attention = batch.seen(run.model, params)[1].scores[:, 0]
    columns = jax.vmap(run.model.embedding.columns)(batch)
    brought = jnp.einsum("bt,btw->bw", attention, columns)
    sa, reads = (brought @ params.W_V.T, params.W_O) if after_values else (brought, params.W_O @ params.W_V)
    return sa[:, :d] @ reads[:, :d].T, sa[:, d:] @ reads[:, d:].T


def _error(run: Run, hidden: Float[Array, "batch m"], batch: Drawn) -> Float[Array, ""]:
    """Error of the output that these inputs of the neurons alone would give."""
    outputs = jax.nn.relu(hidden) @ run.model.second_layer()
    return jnp.where(outputs * batch.label > 0, 0.0, 1.0).mean()


_before = jax.jit(inside)


def along(models: Sequence[Trained], name: str) -> Float[np.ndarray, "seeds records"]:
    """What the probe saw before training and at every record."""
    return np.stack([np.concatenate([[_before(m.run, begin(m.run).params)[name]], (m.probes or {})[name]])
                     for m in models])
