"""Softmax attention that reads chains: the one-layer attention-only Transformer of the cot paper.

| here       | paper        | meaning                                                                       |
| ---------- | ------------ | ----------------------------------------------------------------------------- |
| columns[i] | p~_i         | column i of the prompt with its position code; the last is the query          |
| W          | W_K^T W_Q    | trained as one matrix, (2 d_X + K) square                                     |
| (values)   | W_V p~_i     | W_V is fixed and picks the output half of a column                            |
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from iclab.core.errors import require
from iclab.core.spec import number, part, require_range, spec
from iclab.models.embedding import ChainEmbedding
from iclab.models.sites import site

BLOCK = 2**13


class ChainParams(NamedTuple):
    """Trainable weights."""

    W: Float[Array, "width width"]


class ChainSeen(NamedTuple):
    """What a probe may look at."""

    scores: Float[Array, "1 columns"]
    """Attention of the query on every column; 0 on itself, which stands outside the sum."""


@spec(part="model")
class ChainAttention:
    """`F = sum_i W_V p~_i softmax_i(p~_i^T W p~_query)` over all columns but the query's (li2024cot, eq. 2).

    Differs from the paper: keys carry the position code, as in its eq. 10. In eq. 2 they do not; `key_positions` false
    gives that reading, in which attention never leaves the other steps (0.12 of it is there after 200 training steps,
    instead of 0.003).
    """

    usual_training: ClassVar[dict[str, Any]] = {"learning_rate": 10.0, "loss": "squared", "batch_size": 60,
                                                "steps": 2000}
    key_positions: bool = True
    """Whether the columns that are attended to carry the position code."""
    init_scale: float = number(default=0.01)
    """xi: standard deviation of the entries of W before training."""
    embedding: ChainEmbedding = part(default_factory=ChainEmbedding)
    """How steps become columns."""

    def check(self) -> None:
        require(isinstance(self.embedding, ChainEmbedding), "embedding", type(self.embedding).__name__,
                "be a ChainEmbedding: this model's output is a step of a chain")
        require_range(self, "init_scale", 0, float("inf"), open_low=True, open_high=True)

    def weight_count(self, dimension: int) -> int:
        """How many trainable numbers `init` makes."""
        return self.embedding.width(dimension) ** 2

    def init(self, key: Array, dimension: int) -> ChainParams:
        """Weights before training: N(0, xi^2)."""
        width = self.embedding.width(dimension)
        # Whole blocks are drawn, so that models of similar size share the generator's program.
        normals = jax.random.normal(key, (-(-width**2 // BLOCK) * BLOCK,))
        return ChainParams(self.init_scale * normals[:width**2].reshape(width, width))

    def apply(self, params: ChainParams, columns: Float[Array, "columns width"]
              ) -> tuple[Float[Array, " dimension"], ChainSeen]:
        """The output for one prompt's query and what led to it; columns without a step are ignored."""
        steps = columns[:, self.embedding.code(params.W.shape[0])]
        present = steps.any(axis=1) & (jnp.arange(len(columns)) < len(columns) - 1)
        output, attention = self.read(params, columns, present, columns[-1:])
        return output, ChainSeen(attention[None])

    def read(self, params: ChainParams, context: Float[Array, "columns width"], present: Bool[Array, " columns"],
             own: Float[Array, "own width"]) -> tuple[Float[Array, " dimension"], Float[Array, " columns+own-1"]]:
        """The output for the last of the query's own columns, and its attention on all earlier ones; absent context
        columns are ignored. Context and query are separate so that many queries share one product with a context."""
        query = params.W @ own[-1]
        if not self.key_positions:
            query = query.at[self.embedding.code(params.W.shape[0])].set(0.0)
        logits = jnp.where(present, context @ query, -jnp.inf)
        if len(own) > 1:
            logits = jnp.concatenate([logits, own[:-1] @ query])
        attention = site("attention", jax.nn.softmax(logits))
        # Whole columns are summed: cutting out their output halves first would copy them.
        output = attention[:len(context)] @ site("values", context, axes=("token", "channel"))
        if len(own) > 1:
            output = output + attention[len(context):] @ own[:-1]
        return output[self.embedding.answer(params.W.shape[0])], attention
