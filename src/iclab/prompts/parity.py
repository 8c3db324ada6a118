"""Parity: bits, then the parity of all of them, at once or step by step."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from iclab.core.spec import require_count, spec
from iclab.prompts.prompt import Prompt
from iclab.prompts.token_family import TokenFamily

END = 2
"""The token after the last bit."""


class ParityTruth(NamedTuple):
    """The truth about a parity prompt."""

    parity: Int[Array, ""]
    """Of all bits."""


@spec(part="prompts")
class Parity(TokenFamily):
    """Random bits and an end mark, after which the parity is asked for; or, with steps, the parities of the first bit,
    of the first two, and so on, each written down before the next is asked for.

    One prompt of four bits without steps, and with them:

        x         1 0 1 1 |            1 0 1 1 |  1 1 0
        label     . . . . 1            . . . . 1  1 0 1
    """

    length: int = 16
    """n: bits in a prompt."""
    steps: bool = True
    """Whether the parities of all beginnings are asked for, and stand in the prompt."""
    everywhere: bool = False
    """Whether the next token is asked for at the bits, too."""

    def check(self) -> None:
        require_count(self, "length", 2)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """Tokens of the vocabulary: the bits and the end mark."""
        return END + 1

    @property
    def prompt_length(self) -> int:  # type: ignore[override]
        """Tokens before the last one."""
        return 2 * self.length - 1 if self.steps else self.length

    def draw(self, key: Array) -> Prompt:
        """One prompt."""
        bits = jax.random.bernoulli(key, shape=(self.length,)).astype(jnp.int32)
        parities = jnp.cumsum(bits) % 2
        answers = parities if self.steps else parities[-1:]
        tokens = jnp.concatenate([bits, jnp.array([END]), answers[:-1]])
        label = jnp.append(tokens[1:], answers[-1])
        asked = (jnp.arange(len(tokens)) >= self.length) | self.everywhere
        return self.prompt(tokens, label, asked, ParityTruth(parities[-1]))

    def unknown(self) -> Float[np.ndarray, " tokens"]:
        """The entropy of each label given all tokens up to it: the least cross-entropy; NaN where nothing is asked.

        Nothing tells of the next bit; after the bits all is known.
        """
        at_bits = np.append(np.full(self.length - 1, np.log(2.0)), 0.0) if self.everywhere else np.full(self.length,
                                                                                                       np.nan)
        return np.append(at_bits, np.zeros(self.prompt_length + 1 - self.length))
