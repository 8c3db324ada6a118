"""Error against the number of context examples, all numbers at once.

In a one-layer model the gate of an example depends on what stands between it and the query, not on what stands before.
So the output with only the last n examples is the sum of their contributions, and one long prompt answers for every n:

    F_n = sum_{i > l - n} G_{i,l+1} y_i p_i^T W_B^T W_C p_query
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.errors import require
from iclab.probes.errors import Drawn, averages


def context_errors(models: Sequence[Any], tests: Sequence[Any], lengths: Sequence[int], *, count: int = 4000,
                   seeds: Sequence[int] | None = None) -> Float[np.ndarray, "models tests lengths"]:
    """Error of one-layer gated models with only the last n examples of a prompt, for every n in `lengths`."""
    for trained in models:
        model = trained.run.model
        require(getattr(model, "layers", None) == 1 and model.member != "gla" and not model.normalise, "model", model,
                "be a one-layer gated model whose gate is one number a token")
    for test in tests:
        require(min(lengths) > 0 and max(lengths) <= test.prompt_length, "lengths", list(lengths),
                f"lie in [1, {test.prompt_length}]")
    return averages(_wrong_by_length(tuple(lengths)), models, tests, count, seeds)


@cache
def _wrong_by_length(lengths: tuple[int, ...]) -> Any:
    def wrong(model: Any, params: Any, batch: Drawn) -> Float[Array, " lengths"]:
        tokens = batch.y.shape[1]
        # Example i (the query is the last token) counts when fewer than n others stand between it and the query.
        seen = (jnp.arange(tokens)[None] >= tokens - 1 - jnp.asarray(lengths)[:, None]).astype(float)
        _, inside = batch.seen(model, params)
        parts = inside.gates[:, 0] * inside.scores[:, 0] * batch.y
        margins = jnp.einsum("bt,nt->bn", parts, seen) * batch.label[:, None]
        return jnp.where(margins > 0, 0.0, 1.0).mean(axis=0)

    return wrong
