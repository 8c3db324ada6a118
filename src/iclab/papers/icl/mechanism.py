"""What happens inside the one-layer Transformer along training: attention, norms of queries and keys, neurons.

Seen on fixed test prompts, in and out of domain (a = b = 0.64), decisive fraction 0.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.papers.icl.settings import in_domain, out_of_domain
from iclab.probes.errors import Drawn
from iclab.training import Run, Trained
from iclab.training.sgd import begin

WATCHED = 200
PLACES = {"in domain": in_domain, "out of domain": out_of_domain}


def inside(run: Run, params: Any) -> dict[str, Any]:
    """Probe: everything that figure 2 shows, at one moment."""
    seen: dict[str, Any] = {}
    for name, make in PLACES.items():
        test = make(0.6)
        with jax.ensure_compile_time_eval():
            batch = Drawn.of(test.sample(0, WATCHED))
            units = jnp.asarray(test.patterns() / np.linalg.norm(test.patterns(), axis=1, keepdims=True), float)
        attention = batch.seen(run.model, params)[1].scores[:, 0, :-1]
        same = batch.pattern[:, :-1] == batch.pattern[:, -1:]
        seen[f"attention/{name}"] = (attention * same).sum(-1).mean()
        for letter, weights, tokens in (("query", params.W_Q, slice(-1, None)), ("key", params.W_K, slice(None, -1))):
            whole, along = _norms(weights, batch.x[:, tokens], units[batch.pattern[:, tokens]])
            seen[f"{letter} norm/{name}"], seen[f"{letter} along its pattern/{name}"] = whole, along
    return seen | _neurons(run, params)


def _norms(weights: Float[Array, "m_a width"], x: Float[Array, "batch tokens dimension"],
           unit: Float[Array, "batch tokens dimension"]) -> tuple[Array, Array]:
    """Mean norm of W x, and of its part along the token's own relevant pattern."""
    made = jnp.einsum("ad,btd->bta", weights[:, :x.shape[2]], x)
    along = jnp.einsum("btd,btd->bt", made[..., :x.shape[2]], unit)
    return jnp.linalg.norm(made, axis=-1).mean(), jnp.abs(along).mean()


def _neurons(run: Run, params: Any) -> dict[str, Array]:
    """Norms of what each neuron reads of inputs and of labels, and their cosines with the mean pattern and with q."""
    rows, dimension, M1 = run.model.rows(params), run.prompts.dimension, run.prompts.relevant_patterns
    r_x, r_y = rows[:, :dimension], rows[:, dimension:]
    with jax.ensure_compile_time_eval():
        mean = jnp.zeros(dimension).at[:M1].set(1.0 / np.sqrt(M1))
    norm_x, norm_y = (jnp.linalg.norm(part, axis=1) + 1e-12 for part in (r_x, r_y))
    return {"norm x": norm_x, "norm y": norm_y, "cosine x": r_x @ mean / norm_x, "cosine y": r_y[:, 0] / norm_y}


_before = jax.jit(inside)


def along(models: Sequence[Trained], name: str) -> Float[np.ndarray, "seeds records *values"]:
    """What the probe saw before training and at every record."""
    return np.stack([np.concatenate([[_before(m.run, begin(m.run).params)[name]], (m.probes or {})[name]])
                     for m in models])
