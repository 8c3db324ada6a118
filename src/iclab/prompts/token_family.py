"""Token prompts: a sequence of discrete tokens, and at each of them the class that a model is asked for, or nothing.

A model reads tokens as one-hot rows; its answer is a row of scores, one per class, at every token.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from iclab.prompts.labels import TOKENS, UNASKED, LabelKind
from iclab.prompts.prompt import Family, Prompt


class TokenFamily(Family):
    """A distribution of token prompts: `prompt_length + 1` tokens of a vocabulary of `dimension` tokens."""

    labels: ClassVar[LabelKind] = TOKENS

    def prompt(self, tokens: Int[Array, " tokens"], label: Int[Array, " tokens"], asked: Bool[Array, " tokens"] | bool,
               truth: Any = None) -> Prompt:
        """The prompt of these tokens, with the labels of those at which something is asked."""
        hot = (tokens[:, None] == jnp.arange(self.dimension)).astype(float)
        return Prompt(hot, jnp.zeros(tokens.shape), jnp.where(asked, label, UNASKED).astype(jnp.int32), truth)
