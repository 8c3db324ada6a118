"""What the models of many equal layers have in common: affine maps, norms, layers stacked and run, a start by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.models.sites import watched

SMALLEST = 1e-5
"""Added to a variance before it divides."""


class Affine(NamedTuple):
    """`x W + b`."""

    W: Float[Array, "inputs outputs"]
    b: Float[Array, " outputs"]


def rms_norm(scale: Float[Array, " size"], h: Float[Array, "*tokens size"]) -> Float[Array, "*tokens size"]:
    """Each token to mean square 1, then scaled."""
    return h * jax.lax.rsqrt((h**2).mean(axis=-1, keepdims=True) + SMALLEST) * scale


def layer_norm(norm: Affine, h: Float[Array, "tokens size"]) -> Float[Array, "tokens size"]:
    """Each token to mean 0 and variance 1, then scaled and shifted."""
    centred = h - h.mean(axis=-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + SMALLEST) * norm.W[0] + norm.b


def stacked(blocks: Sequence[Any]) -> Any:
    """Layers as one block with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *blocks)


def through(blocks: Any, h: Float[Array, "tokens size"], layer: Callable[[Array, Any, int, int], tuple[Array, Any]],
            asked: int | None = None) -> tuple[Float[Array, "asked size"], Any]:
    """The last `asked` tokens (none: all) after all stacked blocks, and what each layer shows.

    `layer(h, block, count, number)` returns the last `count` tokens and a named tuple of what a probe may look at;
    `number` names its sites.
    """
    if watched():
        return _one_by_one(blocks, h, layer, asked)
    # All layers but the last are one program; the last computes only the tokens requested.
    first, last = (jax.tree.map(lambda leaf, part=part: leaf[part], blocks) for part in (slice(-1), -1))
    tokens = h.shape[0]
    h, seen = jax.lax.scan(lambda h, block: layer(h, block, tokens, 0), h, first)
    h, seen_last = layer(h, last, asked or tokens, 0)
    return h, jax.tree.map(lambda part, one: jnp.concatenate([part, one[None]]), seen, seen_last)


def _one_by_one(blocks: Any, h: Float[Array, "tokens size"], layer: Callable[[Array, Any, int, int], tuple[Array, Any]],
                asked: int | None) -> tuple[Float[Array, "asked size"], Any]:
    """`through` where a site is watched: its value cannot leave a scan."""
    tokens, depth, shown = h.shape[0], jax.tree.leaves(blocks)[0].shape[0], []
    for number in range(depth):
        block = jax.tree.map(lambda leaf, number=number: leaf[number], blocks)
        h, seen = layer(h, block, tokens if number < depth - 1 else asked or tokens, number)
        shown.append(seen)
    return h, stacked(shown)


def cut(draw: Callable[[tuple[int, ...]], Array], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Random arrays of these shapes, all from one call: every call of a generator would be compiled separately."""
    ends = np.cumsum([np.prod(shape) for shape in shapes.values()])
    parts = jnp.split(draw((int(ends[-1]),)), ends[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
