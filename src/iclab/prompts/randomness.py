"""Random bits by counter: a few cheap words a token, the same on every machine, alone or in any ensemble.

Threefry-2x32 (Salmon et al. 2011) turns a key and a counter into two 32-bit words. JAX's own generator runs it as a
loop over memory on the CPU; written out here, XLA fuses it into the code that uses the bits, about ten times faster.
13 rounds pass BigCrush; keys are made by JAX with the full 20.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from iclab.errors import require

# The upper counter word tells apart what the bits of one key are for.
FIRST_PAIR, SECOND_PAIR, CELL_COUNTER, KEY_COUNTER = 0, 1, 2, 3
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)


class Key(NamedTuple):
    """Two words that select a stream of random bits."""

    high: UInt32[Array, ""]
    low: UInt32[Array, ""]


class TokenWords(NamedTuple):
    """Four random words for every token of a prompt."""

    first: UInt32[Array, ...]
    second: UInt32[Array, ...]
    third: UInt32[Array, ...]
    fourth: UInt32[Array, ...]


class Bits(NamedTuple):
    """All randomness of a batch of prompts; a prompt is a function of its share."""

    tokens: TokenWords
    prompt: UInt32[Array, " batch"]
    """One word a prompt."""
    batch: UInt32[Array, " batch"]
    """One word for the whole batch, repeated."""
    key: Key
    """A key a prompt, for samplers that need many words."""


def threefry(key: Key, high: Array | int, low: Array | int, rounds: int = 13) -> tuple[Array, Array]:
    """Two random words for each counter `(high, low)`."""
    schedule = (key.high, key.low, key.high ^ key.low ^ jnp.uint32(0x1BD11BDA))
    x0 = jnp.asarray(high, jnp.uint32) + schedule[0]
    x1 = jnp.asarray(low, jnp.uint32) + schedule[1]
    for round_ in range(rounds):
        turn = ROTATIONS[round_ % 8]
        x0 = x0 + x1
        x1 = ((x1 << turn) | (x1 >> (32 - turn))) ^ x0
        if round_ % 4 == 3:
            injection = round_ // 4 + 1
            x0 = x0 + schedule[injection % 3]
            x1 = x1 + schedule[(injection + 1) % 3] + jnp.uint32(injection)
    return x0, x1


def as_key(seed: Array | int | Key) -> Key:
    """A key from a whole number or from a JAX key."""
    if isinstance(seed, Key):
        return seed
    if isinstance(seed, jax.Array) and jnp.issubdtype(seed.dtype, jax.dtypes.prng_key):
        words = jax.random.key_data(seed)
        return Key(words[..., -2], words[..., -1])
    if np.ndim(seed) == 1 and np.shape(seed) == (2,):  # a key of JAX's old kind
        return Key(jnp.uint32(seed[0]), jnp.uint32(seed[1]))  # type: ignore[index]
    if isinstance(seed, (int, np.integer)):
        require(0 <= seed < 2**32, "seed", seed, "be a whole number in [0, 2^32)")
    return Key(jnp.uint32(0), jnp.asarray(seed, jnp.uint32))


def jax_key(key: Key) -> Array:
    """The key in JAX's own form, for its slower samplers (normal draws)."""
    return jax.random.wrap_key_data(jnp.stack([key.high, key.low], axis=-1), impl="threefry2x32")


def fold(key: Key, number: Array | int, stream: int = 0) -> Key:
    """A new key for each number (a step, a batch) and stream (a purpose).

    By JAX's generator: its loop stays a loop, where XLA would copy an unrolled one into every use of the key.
    """
    base = jax.random.fold_in(jax_key(key), stream)
    numbers = jnp.asarray(number, jnp.uint32)
    words = jax.vmap(lambda n: jax.random.key_data(jax.random.fold_in(base, n)))(numbers.reshape(-1))
    return Key(words[:, 0].reshape(numbers.shape), words[:, 1].reshape(numbers.shape))


def draw_bits(key: Key | Array | int, batch: int, tokens: int) -> Bits:
    """The randomness of `batch` prompts of `tokens` tokens each."""
    key = as_key(key)
    counter = jnp.arange(batch * tokens, dtype=jnp.uint32).reshape(batch, tokens)
    words = TokenWords(*threefry(key, FIRST_PAIR, counter), *threefry(key, SECOND_PAIR, counter))
    prompts = jnp.arange(batch, dtype=jnp.uint32)
    mine, shared = threefry(key, CELL_COUNTER, prompts)
    return Bits(words, mine, jnp.broadcast_to(shared[0], mine.shape), Key(*threefry(key, KEY_COUNTER, prompts)))


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
