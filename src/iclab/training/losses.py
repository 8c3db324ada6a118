"""Losses of one prompt's output."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from iclab.core.errors import require
from iclab.prompts.labels import token_cross_entropy

Loss = Callable[[Array, Array], Float[Array, ""]]
"""`(output, label) -> loss` of one prompt."""


def _require_like(output: Array, label: Array) -> None:
    """Refuse an output that would be broadcast against its label."""
    wanted, shape = jnp.shape(label), jnp.shape(output)
    require(shape == wanted, "model", f"shape {shape}",
            f"return an answer like the label, shape {wanted}" if wanted else "return one score per prompt, shape ()")


def hinge(output: Float[Array, ""], label: Float[Array, ""]) -> Float[Array, ""]:
    """`max(0, 1 - z F)`: li2025mamba, eq. 4; li2024icl, eq. 4."""
    _require_like(output, label)
    return jnp.maximum(0.0, 1.0 - label * output)


def squared(output: Float[Array, "*answer"], label: Float[Array, "*answer"]) -> Float[Array, ""]:
    """`|F - z|^2 / 2`, of a number or of a vector: li2024cot, eq. 3."""
    _require_like(output, label)
    return 0.5 * jnp.sum((output - label) ** 2)


def logistic(output: Float[Array, ""], label: Float[Array, ""]) -> Float[Array, ""]:
    """`log(1 + exp(-z F))`, for labels +1 and -1."""
    _require_like(output, label)
    return jax.nn.softplus(-label * output)


def cross_entropy(output: Float[Array, " classes"], label: Int[Array, ""]) -> Float[Array, ""]:
    """`-log softmax_z(F)`, for labels 0, 1, ... and one output per class."""
    return -jax.nn.log_softmax(output)[label]


LOSSES: dict[str, Loss] = {"hinge": hinge, "squared": squared, "logistic": logistic, "cross_entropy": cross_entropy,
                           "token_cross_entropy": token_cross_entropy}


def loss_function(loss: str | Loss) -> Loss:
    """The loss of a name, or the user's own function."""
    return LOSSES[loss] if isinstance(loss, str) else loss
