"""Error against the number of context examples, for all numbers at once, and how many are needed.

Context examples are i.i.d. given the task, so the last n of a long prompt are a prompt of n examples, and one batch of
long prompts answers for every n: a model reads it once per n. A one-layer gated model reads it once: the gate of an
example depends on what stands between it and the query, not on what comes before it, so the output with the last n
examples is a sum of contributions:

    F_n = sum_{i > l - n} G_{i,l+1} y_i p_i^T W_B^T W_C p_query

Where the fused kernels can read the models they read every n by itself, which takes them no longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.core.errors import require
from iclab.models.forward import forward_batch
from iclab.models.gated_attention import GatedAttention
from iclab.probes.error_rate import averages, wrong
from iclab.probes.looks import Look, Shown
from iclab.prompts import ArrayPrompts, Classification, Prompt
from iclab.training.trained import Trained


def context_errors(models: Sequence[Trained], tests: Sequence[Classification | ArrayPrompts], lengths: Sequence[int],
                   *, count: int = 4000, seeds: Sequence[int] | None = None
                   ) -> Float[np.ndarray, "models tests lengths"]:
    """Error with only the last n examples of a prompt, for every n in `lengths`."""
    for test in tests:
        require(test.labels.name == "sign", "tests", type(test).__name__, "have labels that are signs")
        require(min(lengths) > 0 and max(lengths) <= test.prompt_length, "lengths", list(lengths),
                f"lie in [1, {test.prompt_length}]")
        require(test.placement == "random", "placement", test.placement, "be random, or examples are not alike")
    return averages(_wrong_by_length(tuple(lengths)), models, tests, count, seeds)


@cache
def _wrong_by_length(lengths: tuple[int, ...]) -> ByLength:
    return ByLength(lambda shown: wrong(shown).mean(-1), lengths=lengths)


class ByLength(Look):
    """A look at outputs with only the last n examples, for every n in `lengths`."""

    def shown(self, model: Any, params: Any, batch: Prompt) -> Shown:
        """What the model shows, by its definition."""
        def last(examples: int) -> Prompt:
            return Prompt(batch.x[:, -examples - 1:], batch.y[:, -examples - 1:], batch.label)

        outputs = _summed(model, params, batch, self.lengths) if _sums(model) else jnp.stack(
            [forward_batch(model, params, last(examples))[0] for examples in self.lengths])
        return Shown(outputs, batch.label)


def _sums(model: Any) -> bool:
    """Whether the model's output is a sum over examples, each seen as if those before it were not there."""
    return isinstance(model, GatedAttention) and model.layers == 1 and model.member != "gla" and not model.normalise


def _summed(model: Any, params: Any, batch: Prompt, lengths: Sequence[int]) -> Float[Array, "lengths batch"]:
    tokens = batch.y.shape[1]
    # Example i (the query is the last token) counts when fewer than n others stand between it and the query.
    counted = (jnp.arange(tokens)[None] >= tokens - 1 - jnp.asarray(lengths)[:, None]).astype(float)
    inside = forward_batch(model, params, batch)[1]
    return jnp.einsum("bt,nt->nb", inside.gates[:, 0] * inside.scores[:, 0] * batch.y, counted)


def needed_examples(lengths: Sequence[int], errors: Float[np.ndarray, "... lengths"], allowed: float
                    ) -> Float[np.ndarray, ...]:
    """The number of examples at which the error first falls to `allowed`, between two lengths by their logarithms; NaN
    if it never does."""
    def one(curve: np.ndarray) -> float:
        below = np.flatnonzero(curve <= allowed)
        if len(below) == 0:
            return float("nan")
        last = below[0]
        if last == 0:
            return float(lengths[0])
        step = (curve[last - 1] - allowed) / (curve[last - 1] - curve[last])
        return float(np.exp(np.log(lengths[last - 1]) + step * np.log(lengths[last] / lengths[last - 1])))

    return np.apply_along_axis(one, -1, errors)
