"""What happens inside the one-layer Transformer during training: attention, norms of queries and keys, neurons.

Measured on fixed test prompts, in and out of domain (a = b = 0.64), decisive fraction 0.6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.lab.premises import Spec
from iclab.models import forward_batch
from iclab.papers.icl.settings import in_domain, out_of_domain
from iclab.probes.watched import watched_prompts
from iclab.training import Setup, Trained, begin, probed

WATCHED = 200
DECISIVE = 0.6
PLACES = {"in domain": in_domain, "out of domain": out_of_domain}
NEURONS = ("norm x", "norm y", "cosine x", "cosine y")
"""What the probe sees of every neuron."""


def inside(setup: Setup, params: Any) -> dict[str, Any]:
    """Probe: everything that figure 2 shows, at one moment."""
    values: dict[str, Any] = {}
    for name, make in PLACES.items():
        test = make(DECISIVE)
        batch = watched_prompts(test, WATCHED)
        units = jnp.asarray(test.patterns() / np.linalg.norm(test.patterns(), axis=1, keepdims=True), float)
        attention = forward_batch(setup.model, params, batch)[1].scores[:, 0, :-1]
        columns = jax.vmap(setup.model.embedding.columns)(batch)
        pattern = batch.truth.pattern
        same = pattern[:, :-1] == pattern[:, -1:]
        values[f"attention/{name}"] = (attention * same).sum(-1).mean()
        for vector, weights, tokens in (("query", params.W_Q, slice(-1, None)), ("key", params.W_K, slice(None, -1))):
            whole, part = _norms(weights, columns[:, tokens], units[pattern[:, tokens]])
            values[f"{vector} norm/{name}"], values[f"{vector} along its pattern/{name}"] = whole, part
    return values | _neurons(setup, params)


def _norms(weights: Float[Array, "m_a width"], columns: Float[Array, "batch tokens width"],
           unit: Float[Array, "batch tokens dimension"]) -> tuple[Array, Array]:
    """Mean norm of W p, p with its label, and of its part along the token's relevant pattern."""
    projected = jnp.einsum("ad,btd->bta", weights, columns)
    along_pattern = jnp.einsum("btd,btd->bt", projected[..., :unit.shape[2]], unit)
    return jnp.linalg.norm(projected, axis=-1).mean(), jnp.abs(along_pattern).mean()


def _neurons(setup: Setup, params: Any) -> dict[str, Array]:
    """Norms of each neuron's input and label parts, and their cosines with the mean pattern and with q."""
    dimension, M1 = setup.prompts.dimension, setup.prompts.relevant_patterns
    rows = setup.model.neuron_inputs(params)
    r_x, r_y = rows[:, :dimension], rows[:, dimension:]
    mean_pattern = jnp.asarray(np.where(np.arange(dimension) < M1, 1.0 / np.sqrt(M1), 0.0), float)
    norm_x, norm_y = (jnp.linalg.norm(part, axis=1) + 1e-12 for part in (r_x, r_y))
    return {"norm x": norm_x, "norm y": norm_y, "cosine x": r_x @ mean_pattern / norm_x,
            "cosine y": r_y[:, 0] / norm_y}


def along(models: Sequence[Trained], name: str) -> Float[np.ndarray, "seeds records *values"]:
    """Probe values before training and at every record."""
    return np.stack([np.concatenate([[probed(inside, m.run, begin(m.run).params)[name]], (m.probes or {})[name]])
                     for m in models])


def signs(neurons: Mapping[str, Float[np.ndarray, "seeds neurons"]]) -> Float[np.ndarray, " neurons"]:
    """The signs of the neurons' output weights."""
    count = neurons["norm x"].shape[1]
    return np.where(np.arange(count) < count // 2, 1.0, -1.0)


def watched_specs(models: Sequence[Trained]) -> list[Spec]:
    """The run and the tests that the probe watches."""
    return [(models[0].run, make(DECISIVE)) for make in PLACES.values()]
