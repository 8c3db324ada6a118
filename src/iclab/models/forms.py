"""Three ways to compute  o_t = sum_{i<=t} G_{i,t} v_i (k_i^T q_t):  state by state, as one sum, and in chunks.

They agree in values and gradients; the time and memory of `direct_sum` are quadratic in the length, those of the
others linear.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.models.gates import Gates

SHORT = 256
"""Up to this many tokens a running sum is a small triangular matrix product, which beats a scan on a CPU."""


class Streams(NamedTuple):
    """What one layer makes of its input."""

    keys: Float[Array, "tokens state"]
    queries: Float[Array, "tokens state"]
    values: Float[Array, "tokens width"]
    gates: Gates


def running_sum(x: Float[Array, "tokens *rest"]) -> Float[Array, "tokens *rest"]:
    """Sum of all entries up to and including each token."""
    tokens = x.shape[0]
    if tokens > SHORT:
        return jnp.cumsum(x, axis=0)
    lower = jnp.asarray(np.tril(np.ones((tokens, tokens))), x.dtype)
    return jnp.tensordot(lower, x, axes=1)


def reach(log_decay: Float[Array, "tokens axis"]) -> Float[Array, "tokens axis"]:
    """`prod_{i<k<=T} d_k`: what is left of each token at the last one."""
    tokens = log_decay.shape[0]
    if tokens > SHORT:
        after = jnp.cumsum(log_decay[::-1], axis=0)[::-1] - log_decay
    else:
        # The triangle on the right: on the left, a batch of prompts would have to be transposed around it.
        strictly_before = jnp.asarray(np.tril(np.ones((tokens, tokens)), -1), log_decay.dtype)
        after = (log_decay.T @ strictly_before).T
    return jnp.exp(after)


def reaches(gates: Gates, readers: int) -> Float[Array, "readers tokens axis"]:
    """`G_{i,t} = b_i prod_{i<k<=t} d_k` for the last tokens t as readers; 0 where i comes after t. The last axis
    is that along which gates differ, of size 1 if they do not."""
    total = running_sum(gates.log_decay)
    return (_decays(total[-readers:], total) * gates.intake[..., None]).reshape(readers, len(total), -1)


def _decays(at: Float[Array, "readers value key"], total: Float[Array, "tokens value key"]
            ) -> Float[Array, "readers tokens value key"]:
    """`prod_{i<k<=t} d_k` from the running sums of the log decays at the last tokens t and at all tokens i."""
    tokens = total.shape[0]
    past = jnp.asarray(np.tril(np.ones((tokens, tokens), bool))[-at.shape[0]:])[:, :, None, None]
    # Masked before exp, or the gradient of a huge unused exponent would be NaN.
    return jnp.where(past, jnp.exp(jnp.where(past, at[:, None] - total[None], 0.0)), 0.0)


def direct_sum(streams: Streams) -> Float[Array, "tokens width"]:
    """The double sum over pairs of tokens, li2025mamba, eq. 3 at every token."""
    return _within(streams, running_sum(streams.gates.log_decay))


def _within(streams: Streams, total: Float[Array, "tokens value key"]) -> Float[Array, "tokens width"]:
    """Contribution of the tokens of one stretch to each other; `total` is the running sum of the log decays."""
    keys, queries, values, gates = streams
    weights = _decays(total, total)
    let_in = values * gates.intake
    if weights.shape[3] > 1:
        pairs = jnp.einsum("tik,ik,tk->ti", weights[:, :, 0], keys, queries)
        return pairs @ let_in
    pairs = queries @ keys.T
    if weights.shape[2] > 1:
        return jnp.einsum("tiv,ti,iv->tv", weights[..., 0], pairs, let_in)
    return (weights[..., 0, 0] * pairs) @ let_in


def recurrence(streams: Streams) -> Float[Array, "tokens width"]:
    """State by state: `h_t = d_t h_{t-1} + b_t v_t k_t^T`, `o_t = h_t q_t`, h_0 = 0. li2025mamba, eq. 1."""
    keys, queries, values, gates = streams

    def step(state, token):
        key, query, value, log_decay, intake = token
        state = jnp.exp(log_decay) * state + jnp.outer(intake * value, key)
        return state, state @ query

    start = jnp.zeros((values.shape[1], keys.shape[1]), values.dtype)
    return jax.lax.scan(step, start, (keys, queries, values, *gates))[1]


def chunked(streams: Streams, size: int) -> Float[Array, "tokens width"]:
    """Chunks of `size` tokens: the direct sum inside a chunk, the state carried between chunks."""
    tokens = streams.keys.shape[0]
    chunks = -(-tokens // size)
    pad = chunks * size - tokens

    def split(x: Array) -> Array:
        # Padded in front: a token of zeros adds nothing to an empty state.
        padded = jnp.concatenate([jnp.zeros((pad, *x.shape[1:]), x.dtype), x])
        return padded.reshape(chunks, size, *x.shape[1:])

    @jax.checkpoint
    def step(state, chunk: Streams):
        keys, queries, values, gates = chunk
        total = running_sum(gates.log_decay)
        decay, to_end, let_in = jnp.exp(total), jnp.exp(total[-1] - total), values * gates.intake
        # A decay has size 1 on the value axis or on the key axis, so it can go to one factor of each product.
        if decay.shape[2] > 1:
            carried, added = (queries * decay[:, 0]) @ state.T, let_in.T @ (keys * to_end[:, 0])
        else:
            carried, added = decay[..., 0] * (queries @ state.T), (let_in * to_end[..., 0]).T @ keys
        return decay[-1] * state + added, carried + _within(chunk, total)

    start = jnp.zeros((streams.values.shape[1], streams.keys.shape[1]), streams.values.dtype)
    outputs = jax.lax.scan(step, start, jax.tree.map(split, streams))[1]
    return outputs.reshape(chunks * size, -1)[pad:]
