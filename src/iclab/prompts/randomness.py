"""Counter-based random bits: a few cheap words per token, the same on every machine, alone or in any ensemble.

Threefry-2x32 (Salmon et al. 2011) turns a key and a counter into two 32-bit words. JAX's own generator runs it as a
loop over memory on the CPU; written out here, XLA fuses it into the code that uses the bits, about ten times faster.
13 rounds pass BigCrush; keys are made with the full 20, as JAX makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from iclab.core.errors import require

# The upper counter word says what the bits of a key are for.
# 0 and 1: the first and the second pair of a token's words; 2: a prompt's words; 3: a prompt's key.
CELL_COUNTER = 2
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)


class Key(NamedTuple):
    """Two words that select a stream of random bits."""

    high: UInt32[Array | np.ndarray, "*s"]
    low: UInt32[Array | np.ndarray, "*s"]


class TokenWords(NamedTuple):
    """Four random words for every token of a prompt."""

    first: UInt32[Array, "*s"]
    second: UInt32[Array, "*s"]
    third: UInt32[Array, "*s"]
    fourth: UInt32[Array, "*s"]


class Bits(NamedTuple):
    """All randomness of a batch of prompts; a prompt is a function of its share."""

    tokens: TokenWords
    prompt: UInt32[Array, " batch"]
    """One word per prompt."""
    batch: UInt32[Array, " batch"]
    """One word for the whole batch, repeated."""
    key: Key
    """One key per prompt, for samplers that need many words."""


def threefry(key: Key, high: Any, low: Any, rounds: int = 13) -> tuple[Any, Any]:
    """Two random words for each counter `(high, low)`: words of 32 bits, as arrays of NumPy or of JAX."""
    schedule = (key.high, key.low, key.high ^ key.low ^ np.uint32(0x1BD11BDA))
    x0, x1 = high + schedule[0], low + schedule[1]
    for round_ in range(rounds):
        turn = ROTATIONS[round_ % 8]
        x0 = x0 + x1
        x1 = ((x1 << turn) | (x1 >> (32 - turn))) ^ x0
        if round_ % 4 == 3:
            injection = round_ // 4 + 1
            x0 = x0 + schedule[injection % 3]
            x1 = x1 + schedule[(injection + 1) % 3] + np.uint32(injection)
    return x0, x1


def stored(draw: Callable[[Any], Any]) -> Any:
    """`draw(0)` and `draw(1)`, stacked, and stored before anything reads them.

    They are drawn in a loop, because XLA does not fuse across its end. Fused into the code that reads them, random
    words are computed again by every reader: a comparison of all pairs of words took minutes to compile on a CPU with
    AVX-512. An optimization barrier does not help: on a CPU, XLA removes it before it fuses.
    """
    return jax.lax.map(draw, jnp.arange(2, dtype=jnp.uint32))


def many_words(key: Key, pairs: int) -> UInt32[Array, "2 pairs"]:
    """The two words of each counter below `pairs`."""
    half = -(-pairs // 2)
    counters = jnp.arange(half, dtype=jnp.uint32)
    words = stored(lambda part: jnp.stack(threefry(key, jnp.uint32(0), part * half + counters)))
    return jnp.concatenate([words[0], words[1]], axis=-1)[:, :pairs]


def as_key(seed: Array | int | Key) -> Key:
    """A key from a whole number or from a JAX key."""
    if isinstance(seed, Key):
        return seed
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        words = jax.random.key_data(seed)
        return Key(words[..., -2], words[..., -1])
    if np.ndim(seed) == 1 and np.shape(seed) == (2,):  # a key of JAX's old kind
        return Key(jnp.uint32(seed[0]), jnp.uint32(seed[1]))  # type: ignore[index]
    if isinstance(seed, jax.Array):
        return seed_key(seed.astype(jnp.uint32))
    require(0 <= seed < 2**32, "seed", seed, "be a whole number in [0, 2^32)")
    return seed_key(np.uint32(seed))


def seed_key(seed: Any) -> Key:
    """The key of a seed, or of each of many."""
    return Key(np.zeros((), np.uint32), seed)


def jax_key(key: Key) -> Array:
    """The key in JAX's own form, for its own samplers (starting weights)."""
    return jax.random.wrap_key_data(jnp.stack([key.high, key.low], axis=-1), impl="threefry2x32")


def fold(key: Key, number: Any, stream: int = 0) -> Key:
    """A new key for each number (a step, a batch) and stream (a purpose), as `jax.random.fold_in` makes them.

    In NumPy, outside compiled programs: none has to compile it or to compute it again for every token.
    """
    zero, words = np.uint32(0), Key(*(np.asarray(word, np.uint32) for word in key))
    with np.errstate(over="ignore"):
        base = Key(*threefry(words, zero, np.uint32(stream), rounds=20))
        return Key(*threefry(base, zero, np.asarray(number, np.uint32), rounds=20))


@partial(jax.jit, static_argnums=(1, 2))
def draw_bits(key: Key, batch: int, tokens: int) -> Bits:
    """The randomness of `batch` prompts of `tokens` tokens each."""
    # The words of the tokens, and in a last column those of the prompt.
    prompt, token = jnp.arange(batch, dtype=jnp.uint32)[:, None], jnp.arange(tokens + 1, dtype=jnp.uint32)
    of_prompt = token == tokens
    counter = jnp.where(of_prompt, prompt, prompt * tokens + token)
    first, second = stored(lambda pair: threefry(key, jnp.where(of_prompt, pair + CELL_COUNTER, pair), counter))
    words = TokenWords(first[0, :, :-1], second[0, :, :-1], first[1, :, :-1], second[1, :, :-1])
    mine, shared = first[0, :, -1], second[0, :, -1]
    return Bits(words, mine, jnp.broadcast_to(shared[0], mine.shape), Key(first[1, :, -1], second[1, :, -1]))


def low_half(word: UInt32[Array, "*s"]) -> UInt32[Array, "*s"]:
    """Bits 0 to 15."""
    return word & 0xFFFF


def high_half(word: UInt32[Array, "*s"]) -> UInt32[Array, "*s"]:
    """Bits 16 to 31."""
    return word >> 16


def choice(bits16: UInt32[Array, "*s"], count: int) -> Int[Array, "*s"]:
    """A whole number below `count` from 16 bits; frequencies differ by at most `count / 65536` of themselves."""
    return ((bits16 * jnp.uint32(count)) >> 16).astype(jnp.int32)


def uniform16(bits16: UInt32[Array, "*s"]) -> Float[Array, "*s"]:
    """A number in (0, 1) from 16 bits, the middle of its cell."""
    return (bits16.astype(float) + 0.5) * 2.0**-16


def uniform23(word: UInt32[Array, "*s"]) -> Float[Array, "*s"]:
    """A number in (0, 1) from the upper 23 bits of a word: one more and the largest would round to 1 in float32."""
    return ((word >> 9).astype(float) + 0.5) * 2.0**-23


def normals(key: Key, rows: int, columns: int) -> Float[Array, "rows columns"]:
    """Standard normal numbers, one per word by the inverse distribution function; sines would cost ten times as
    much."""
    pairs = -(-columns // 2)
    words = jnp.concatenate(list(many_words(key, rows * pairs).reshape(2, rows, pairs)), axis=1)[:, :columns]
    return jnp.sqrt(2.0) * jax.lax.erf_inv(2.0 * uniform23(words) - 1.0)


def in_unit_ball(key: Key, rows: int, columns: int) -> Float[Array, "rows columns"]:
    """Uniform points in the unit ball: a point of a sphere without its last two coordinates."""
    points = normals(key, rows, columns + 2)
    return points[:, :columns] / jnp.linalg.norm(points, axis=1, keepdims=True)
