"""The label of a poisoned example and its position: label rules and placements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

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


def rule_code(spec: Any, rule: Any) -> Any:
    """The index of a named rule; None for a user's function."""
    return np.int32(list(LABEL_RULES).index(rule)) if rule in LABEL_RULES else None


def placement_code(spec: Any, placement: str) -> Any:
    """The index of a placement."""
    return np.int32(PLACEMENTS.index(placement))


def label_rule(rule: str | Callable[..., Any] | Int[Array, ""]) -> LabelRule:
    """The rule that a spec's field names, or the user's own function."""
    if isinstance(rule, str):
        return LABEL_RULES[rule]
    if callable(rule):
        return rule
    return lambda clean, coin, x: jnp.select([rule == i for i in range(len(LABEL_RULES))],
                                             [named(clean, coin, x) for named in LABEL_RULES.values()])


def place(outlier: Bool[Array, " tokens"], placement: str | Int[Array, ""]) -> Bool[Array, " tokens"]:
    """Move the poisoned examples of one prompt: `far` puts them first, `close` next to the query (the last token).

    Examples are exchangeable, so moving the marks before the examples are drawn is the same as moving the examples.
    """
    position, examples = jnp.arange(outlier.shape[0]), outlier.shape[0] - 1
    count = outlier.sum()
    far, close = position < count, (position >= examples - count) & (position < examples)
    code = PLACEMENTS.index(placement) if isinstance(placement, str) else placement
    # Not jnp.select: its default, 0, would turn booleans into numbers, and masks into indices.
    return (outlier & (code == 0)) | (far & (code == 1)) | (close & (code == 2))
