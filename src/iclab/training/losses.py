"""Losses of one prompt's output."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

Loss = Callable[[Float[Array, "*answer"], Float[Array, "*answer"]], Float[Array, ""]]


def hinge(output: Float[Array, ""], label: Float[Array, ""]) -> Float[Array, ""]:
    """`max(0, 1 - z F)`: li2025mamba, eq. 4; li2024icl, eq. 4."""
    return jnp.maximum(0.0, 1.0 - label * output)


def squared(output: Float[Array, "*answer"], label: Float[Array, "*answer"]) -> Float[Array, ""]:
    """`|F - z|^2 / 2`, of a number or of a vector: li2024cot, eq. 3."""
    return 0.5 * jnp.sum((output - label) ** 2)


LOSSES: dict[str, Loss] = {"hinge": hinge, "squared": squared}
