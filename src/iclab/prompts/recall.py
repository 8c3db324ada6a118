"""Associative recall: keys with their values, then some of the keys again, each a query for its value."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from iclab.core.errors import require
from iclab.core.spec import require_count, spec
from iclab.prompts.prompt import Prompt
from iclab.prompts.token_family import TokenFamily


class RecallTruth(NamedTuple):
    """The truth about a recall prompt."""

    source: Int[Array, " tokens"]
    """Where the value stands that answers a query; -1 at other tokens."""


@spec(part="prompts")
class Recall(TokenFamily):
    """Pairs of a key and a value, then queries, in one sequence (arora2023zoology, multi-query associative recall).

    One prompt with three pairs and two queries; digits are keys, letters values:

        x         4 b  1 a  7 b | 1  4          (one-hot)
        label     . .  . .  . . | a  b

    Keys of a prompt differ, values are independent and uniform, queries different keys of the prompt. Differs from
    arora2023zoology: queries follow each other at once, and no values stand between them.
    """

    keys: int = 16
    """Keys in the vocabulary."""
    values: int = 16
    """Values in the vocabulary; they follow the keys."""
    pairs: int = 8
    """Pairs in a prompt."""
    queries: int = 8
    """Queries in a prompt."""
    everywhere: bool = False
    """Whether the next token is asked for at the pairs, too."""

    def check(self) -> None:
        for field in ("keys", "values", "pairs", "queries"):
            require_count(self, field, 1)
        require(self.values >= 2, "values", self.values, "be at least 2, or there is nothing to recall")
        require(self.pairs <= self.keys, "pairs", self.pairs, f"be at most keys = {self.keys}")
        require(self.queries <= self.pairs, "queries", self.queries, f"be at most pairs = {self.pairs}")

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """Tokens of the vocabulary."""
        return self.keys + self.values

    @property
    def prompt_length(self) -> int:  # type: ignore[override]
        """Tokens before the last query."""
        return 2 * self.pairs + self.queries - 1

    def draw(self, key: Array) -> Prompt:
        """One prompt."""
        of_keys, of_values, of_queries = jax.random.split(key, 3)
        keys = jax.random.permutation(of_keys, self.keys)[:self.pairs]
        values = self.keys + jax.random.randint(of_values, (self.pairs,), 0, self.values)
        asked = jax.random.permutation(of_queries, self.pairs)[:self.queries]
        shown = jnp.stack([keys, values], axis=1).ravel()
        tokens = jnp.concatenate([shown, keys[asked]])
        label = jnp.concatenate([tokens[1:2 * self.pairs + 1], values[asked]])
        query = jnp.arange(len(tokens)) >= 2 * self.pairs
        source = jnp.concatenate([jnp.full(2 * self.pairs, -1), 2 * asked + 1])
        return self.prompt(tokens, label, query | self.everywhere, RecallTruth(source))

    def unknown(self) -> Float[np.ndarray, " tokens"]:
        """The entropy of each label given all tokens up to it: the least cross-entropy; NaN where nothing is asked.

        A value is one of all, a key one of those not yet shown, the first query one of the pairs; what a query asks for
        has been shown.
        """
        at_pairs = np.stack([np.full(self.pairs, np.log(self.values)),
                             np.log(np.append(self.keys - np.arange(1, self.pairs), self.pairs))], axis=1).ravel()
        return np.append(at_pairs if self.everywhere else np.full(2 * self.pairs, np.nan), np.zeros(self.queries))
