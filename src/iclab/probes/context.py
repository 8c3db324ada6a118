"""Error against the number of context examples, all numbers at once.

In a one-layer model the gate of an example depends on what stands between it and the query, not on what stands before.
So the output with only the last n examples is the sum of their contributions, and one long prompt answers for every n:

    F_n = sum_{i > l - n} G_{i,l+1} y_i p_i^T W_B^T W_C p_query
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.errors import require
from iclab.parallel import Compiled, each
from iclab.probes.errors import TEST_BATCH, batch_keys
from iclab.prompts.randomness import Key

_compiled = Compiled()


def context_errors(trained: Any, tests: Any, lengths: Sequence[int], *, count: int = 4000, seed: int = 0
                   ) -> Float[np.ndarray, "tests lengths"]:
    """Error of a one-layer gated model on a stack of tests with only the last n examples, for every n in `lengths`."""
    model = trained.run.model
    require(getattr(model, "layers", None) == 1 and model.member != "gla" and not model.normalise, "model", model,
            "be a one-layer gated model whose gate is one number a token")
    longest = tests.prompt_length
    require(min(lengths) > 0 and max(lengths) <= longest, "lengths", list(lengths), f"lie in [1, {longest}]")
    keys = batch_keys(np.uint32(seed), -(-count // TEST_BATCH))
    args = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), (model, trained.params, tests, keys))
    leaves, tree = jax.tree.flatten(args)
    name = (tree, tuple(lengths), tuple((leaf.shape, leaf.dtype) for leaf in leaves))
    return np.asarray(_compiled.get(name, partial(_errors, tuple(lengths)), *args)(*args))


def all_context_errors(models: Sequence[Any], tests: Any, lengths: Sequence[int], *, count: int, seeds: Sequence[int]
                       ) -> Float[np.ndarray, "models tests lengths"]:
    """`context_errors` of many models, side by side."""
    found = dict(each(lambda i: context_errors(models[i], tests, lengths, count=count, seed=seeds[i]),
                      range(len(models))))
    return np.stack([found[i] for i in range(len(models))])


def _errors(lengths: tuple[int, ...], model: Any, params: Any, tests: Any, keys: Key) -> Float[Array, "tests lengths"]:
    batches = keys.high.shape[0]
    tokens = tests.prompt_length + 1
    # Example i (the query is the last token) counts when fewer than n others stand between it and the query.
    seen = (jnp.arange(tokens)[None] >= tokens - 1 - jnp.asarray(lengths)[:, None]).astype(float)

    def one_test(test: Any) -> Array:
        def body(carry: Any, key: Any) -> Any:
            total, bits = carry
            batch = test.prompts(bits)
            _, inside = jax.vmap(model, in_axes=(None, 0))(params, batch)
            parts = inside.gates[:, 0] * inside.scores[:, 0] * batch.y
            margins = jnp.einsum("bt,nt->bn", parts, seen) * batch.label[:, None]
            wrong = jnp.where(margins > 0, 0.0, 1.0).mean(axis=0)
            return (total + wrong, test.bits(key, TEST_BATCH)), None

        start = (jnp.zeros(len(lengths)), test.bits(jax.tree.map(lambda k: k[0], keys), TEST_BATCH))
        ahead = jax.tree.map(lambda k: jnp.roll(k, -1), keys)
        return jax.lax.scan(body, start, ahead)[0][0] / batches

    return jax.lax.map(one_test, tests)
