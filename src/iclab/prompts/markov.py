"""Markov chains and k-grams in context: every prompt has a transition table of its own."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from iclab.core.errors import require
from iclab.core.spec import number, require_count, require_range, spec
from iclab.prompts.prompt import NUMBER, Prompt
from iclab.prompts.token_family import TokenFamily

MOST_CONTEXTS = 4096
"""Most rows of a table, which is drawn for every prompt."""


class MarkovTruth(NamedTuple):
    """The truth about a prompt of a Markov chain."""

    table: Float[Array, "contexts dimension"]
    """Probabilities of the next token, a row for each context; the context's oldest token counts most in its number."""
    context: Int[Array, " tokens"]
    """Number of the context that the next token depends on; -1 while there is none."""


@spec(part="prompts")
class MarkovChain(TokenFamily):
    """A Markov chain of order k with a table drawn for every prompt; at each token the next one is asked for.

    One prompt with three states, order 1:

        x         b a b c a b  b          (one-hot)
        label     a b c a b b  c

    Rows of the table are independent draws of `Dirichlet(concentration, ..., concentration)`, and the first k tokens
    are uniform, so that nothing but the counts of earlier transitions tells of the table (edelman2024evolution starts
    from the stationary distribution instead).
    """

    dimension: int = 3
    """States of the chain."""
    prompt_length: int = 31
    """l: tokens before the last one."""
    order: int = 1
    """k: how many tokens the next one depends on; 0: on none."""
    concentration: float = number(default=1.0)
    """Parameter of the Dirichlet prior, the same for all states: 1 makes all tables equally likely, less makes chains
    more predictable."""

    def check(self) -> None:
        require_count(self, "dimension", 2)
        require_count(self, "prompt_length", 1)
        require_count(self, "order", 0, below=MOST_CONTEXTS.bit_length())
        contexts = self.dimension**self.order
        require(contexts <= MOST_CONTEXTS, "order", self.order, f"make at most {MOST_CONTEXTS:,} contexts, not "
                                                                f"{contexts:,}")
        require_range(self, "concentration", 0, float("inf"), open_low=True, open_high=True)

    @property
    def contexts(self) -> int:
        """Rows of a table."""
        return self.dimension**self.order

    def prompt_bytes(self) -> int:
        """Bytes of one prompt, its table included."""
        return super().prompt_bytes() + NUMBER * self.contexts * self.dimension

    def draw(self, key: Array) -> Prompt:
        """One prompt, with its table."""
        of_table, of_tokens = jax.random.split(key)
        logs = jax.random.loggamma(of_table, self.concentration, (self.contexts, self.dimension))
        table = jax.nn.softmax(logs, axis=1)
        ends, states = jnp.cumsum(table, axis=1)[:, :-1], jnp.arange(self.contexts)

        def step(context: Array, drawn: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
            number, uniform = drawn
            known = number >= self.order
            row = ((states == context) @ ends) if self.order else ends[0]
            token = jnp.where(known, (uniform >= row).sum(), jnp.floor(uniform * self.dimension)).astype(jnp.int32)
            return (context * self.dimension + token) % self.contexts, (token, jnp.where(known, context, -1))

        tokens = self.prompt_length + 2
        uniform = jax.random.uniform(of_tokens, (tokens,))
        _, (token, context) = jax.lax.scan(step, jnp.int32(0), (jnp.arange(tokens), uniform))
        return self.prompt(token[:-1], token[1:], True, MarkovTruth(table, context[1:]))
