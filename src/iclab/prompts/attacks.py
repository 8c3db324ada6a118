"""What a poisoned example says and where it stands: label rules and placements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

LabelRule = Callable[[Array, Array, Array], Array]
"""`(clean, coin, x) -> labels`: the label each example would have without the attack, a fair coin for each (both
+-1, shape (tokens,)) and the inputs (tokens, dimension), to the label (+-1) that the example carries when poisoned."""


def flip(clean: Float[Array, " n"], coin: Float[Array, " n"], x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Every poisoned example carries the wrong label."""
    return -clean


def target(clean: Float[Array, " n"], coin: Float[Array, " n"], x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Every poisoned example carries +1."""
    return jnp.ones_like(clean)


def random(clean: Float[Array, " n"], coin: Float[Array, " n"], x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Every poisoned example carries a fair coin; the rule of the training prompts."""
    return coin


LABEL_RULES: dict[str, LabelRule] = {"flip": flip, "target": target, "random": random}
PLACEMENTS = ("random", "far", "close")


def label_rule(rule: str | Callable[..., Any]) -> LabelRule:
    """The rule that a spec's field names, or the user's own function."""
    return LABEL_RULES[rule] if isinstance(rule, str) else rule


def place(outlier: Bool[Array, " tokens"], placement: str) -> Bool[Array, " tokens"]:
    """Move the poisoned examples of one prompt: `far` puts them first, `close` next to the query (the last token).

    Examples are exchangeable, so moving the marks before the examples are drawn is the same as moving the examples.
    """
    if placement == "random":
        return outlier
    position, examples = jnp.arange(outlier.shape[0]), outlier.shape[0] - 1
    count = outlier.sum()
    if placement == "far":
        return position < count
    return (position >= examples - count) & (position < examples)
