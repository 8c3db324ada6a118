"""What the blocks of Mamba and Mamba-2 have in common: convolution, steps and their start, and what a probe sees."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.core.limits import DEEPEST
from iclab.core.spec import require_count
from iclab.models.readout import require_readable
from iclab.models.stack import Affine

STEPS = 1e-3, 0.1
"""Between these the steps start, by their logarithm."""


class BlockParams(NamedTuple):
    """Trainable weights of a stack of blocks between a read-in and a read-out."""

    read_in: Affine
    blocks: Any
    """Weights of all layers, stacked."""
    norm: Float[Array, " size"]
    read_out: Affine


class BlockSeen(NamedTuple):
    """What a probe may look at, seen from the query, in every layer."""

    scores: Float[Array, "layers tokens"]
    """`C_query . B_i`, mean over groups; the p_i^T W_B^T W_C p_query of the simple block."""
    gates: Float[Array, "layers tokens"]
    """How much of token i is in the state at the query, `Delta_i exp(A sum_{k>i} Delta_k)`, mean over the state and the
    channels; the G_{i,l+1} of the simple block."""
    steps: Float[Array, "layers tokens"]
    """`Delta_i`, mean over channels."""


def check_block(model: Any, *counts: str) -> None:
    """Rules of fields that both blocks have, and of other counts."""
    require_readable(model.embedding)
    require_count(model, "layers", 1, below=DEEPEST)
    for field in ("size", "expand", "state", "convolution", *counts):
        require_count(model, field, 1)


def causal_convolution(kernel: Affine, x: Float[Array, "tokens channels"]) -> Float[Array, "tokens channels"]:
    """`b + sum_k W_k x_{t-K+1+k}`, each channel by itself; what lies before the prompt is 0."""
    taps, tokens = kernel.W.shape[0], x.shape[0]
    padded = jnp.pad(x, ((taps - 1, 0), (0, 0)))
    return sum((kernel.W[k] * padded[k:k + tokens] for k in range(taps)), kernel.b)


def step_bias(uniform: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """The bias with which softplus gives steps between `STEPS`, their logarithms where `uniform` in (-1, 1) says."""
    low, high = (jnp.log(end) for end in STEPS)
    step = jnp.exp(low + (high - low) * (uniform + 1.0) / 2.0)
    return step + jnp.log(-jnp.expm1(-step))
