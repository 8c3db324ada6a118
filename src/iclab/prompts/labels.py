"""Kinds of labels: what a prompt's label is, and how an answer errs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Error = Callable[[Array, Array], Float[Array, ""]]
"""`(output, label) -> error` of one prompt; its mean over prompts is the error that probes report."""


def wrong_sign(output: Float[Array, ""], label: Float[Array, ""]) -> Float[Array, ""]:
    """1 when `z F <= 0`: an output of exactly 0 is wrong."""
    return jnp.where(output * label > 0, 0.0, 1.0)


def squared_error(output: Float[Array, "*answer"], label: Float[Array, "*answer"]) -> Float[Array, ""]:
    """`|F - z|^2`."""
    return jnp.sum((output - label) ** 2)


def wrong_class(output: Float[Array, " classes"], label: Int[Array, ""]) -> Float[Array, ""]:
    """1 unless the largest output is that of the label's class."""
    return jnp.where(jnp.argmax(output) == label, 0.0, 1.0)


@dataclass(frozen=True)
class LabelKind:
    """What a label is, and how an answer errs."""

    name: str
    """What the label is: sign (+1 or -1), number, vector, class (0, 1, ...) or step (of a chain)."""
    error: Error
    """How an answer errs."""
    losses: tuple[str, ...]
    """The named losses that suit it; the first is the default."""
    is_rate: bool
    """Whether the mean error is a fraction of prompts, in [0, 1]."""


SIGN = LabelKind("sign", wrong_sign, ("hinge", "logistic", "squared"), True)
REAL = LabelKind("number", squared_error, ("squared",), False)
VECTOR = LabelKind("vector", squared_error, ("squared",), False)
STEP = LabelKind("step", squared_error, ("squared",), False)
"""The output of one step of a chain, a vector of unit length."""
CLASS = LabelKind("class", wrong_class, ("cross_entropy",), True)
