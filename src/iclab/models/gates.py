"""The gates of the family: how much a token lets in, and how much of the past it keeps.

Every member is the recurrence  h_t = d_t h_{t-1} + b_t v_t k_t^T,  o_t = h_t q_t.  Unrolled, token i reaches token t
with weight  G_{i,t} = b_i d_{i+1} ... d_t.  The members differ only in the decay d and the intake b:

| member          | decay d_t                        | intake b_t           | reference              |
| --------------- | -------------------------------- | -------------------- | ---------------------- |
| linear          | 1                                | 1                    | li2025mamba, sec. 3.4  |
| mamba           | 1 - sigmoid(w.p)                 | sigmoid(w.p)         | li2025mamba, eqs. 1, 3 |
| retnet          | g, fixed                         | 1                    | li2025mamba, E.6       |
| gated_retention | sigmoid(w.p)^(1/temperature)     | 1                    | li2025mamba, E.6       |
| mamba2          | exp(-softplus(w.p) e^a)          | 1                    | li2025mamba, eq. 187   |
| mamba2_step     | exp(-softplus(w.p) e^a)          | softplus(w.p)        | dao2024mamba2          |
| gla             | sigmoid(W p), one per key axis   | 1                    | li2025mamba, eq. 196   |
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class Gates(NamedTuple):
    """Gates of a sequence; the value and key axes have size 1 where a gate is shared along them."""

    log_decay: Float[Array, "tokens value key"]
    intake: Float[Array, "tokens value"]


class GateParams(NamedTuple):
    """Trainable weights of the gate; a member that lacks one holds an empty array."""

    w: Float[Array, "gates width"]
    a: Float[Array, " rates"]


MEMBERS = ("linear", "mamba", "retnet", "gated_retention", "mamba2", "mamba2_step", "gla")


@jax.custom_jvp
def negative_softplus(x: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """-softplus(x) = log(1 - sigmoid(x)), to an absolute error of one rounding, with the plain derivative -sigmoid(x).

    Beyond 30 softplus(x) is x; below, a plain exp and log take half the time of the forms that keep relative precision.
    """
    return -(jnp.log(1.0 + jnp.exp(jnp.minimum(x, 30.0))) + jnp.maximum(x - 30.0, 0.0))


@negative_softplus.defjvp
def _negative_softplus_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    return negative_softplus(x), -jax.nn.sigmoid(x) * dx


def init_gate(member: str, per_channel: bool, width: int, key: Array) -> GateParams:
    """w ~ N(0, I/width), one row per gate (li2025mamba, algorithm 1); the rate a of mamba2 starts at 0."""
    if member in ("linear", "retnet"):
        return GateParams(jnp.zeros((0, width)), jnp.zeros(0))
    rows = width if per_channel or member == "gla" else 1
    w = jax.random.normal(key, (rows, width)) / jnp.sqrt(float(width))
    return GateParams(w, jnp.zeros(1 if member.startswith("mamba2") else 0))


def gate_count(member: str, per_channel: bool, width: int) -> int:
    """How many trainable numbers `init_gate` makes."""
    if member in ("linear", "retnet"):
        return 0
    return width * (width if per_channel or member == "gla" else 1) + (1 if member.startswith("mamba2") else 0)


def gates(member: str, logits: Float[Array, "tokens gates"], rate: Float[Array, " rates"], retention: Array | float,
          temperature: Array | float) -> Gates:
    """Decay and intake at every token, by the table above, from the logits w.p and mamba2's rate a."""
    tokens = logits.shape[0]
    ones = jnp.ones((tokens, 1))
    if member == "linear":
        return Gates(jnp.zeros((tokens, 1, 1)), ones)
    if member == "retnet":
        return Gates(jnp.broadcast_to(jnp.log(jnp.asarray(retention, float)), (tokens, 1, 1)), ones)
    if member == "gla":
        return Gates(negative_softplus(-logits)[:, None, :], ones)
    if member == "mamba":
        return Gates(negative_softplus(logits)[:, :, None], jax.nn.sigmoid(logits))
    if member == "gated_retention":
        return Gates(negative_softplus(-logits)[:, :, None] / temperature, jnp.ones_like(logits))
    log_keep = negative_softplus(logits)
    intake = -log_keep if member == "mamba2_step" else jnp.ones_like(logits)
    return Gates(log_keep[:, :, None] * jnp.exp(rate), intake)
