"""Softmax attention with a ReLU MLP on top: the one-layer Transformer of the icl and selectors papers.

| here       | paper      | meaning                                                              |
| ---------- | ---------- | -------------------------------------------------------------------- |
| columns[t] | p_t        | column t of the prompt; the last is the query                        |
| W_Q, W_K   | W_Q, W_K   | query and key weights, (m_a, width)                                  |
| W_V        | W_V        | value weights, (m_b, width)                                          |
| W_O        | W_O        | first MLP layer, (m, m_b); the second, a, is fixed at +-1/m          |
| rows       | W_O W_V    | what each neuron reads: r_X of the inputs, then r_Y of the labels    |
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from iclab.core.errors import require
from iclab.core.spec import number, part, require_count, require_range, spec
from iclab.models.embedding import LabelEmbedding
from iclab.models.sites import site


class SoftmaxParams(NamedTuple):
    """Trainable weights."""

    W_Q: Float[Array, "m_a width"]
    W_K: Float[Array, "m_a width"]
    W_V: Float[Array, "m_b width"]
    W_O: Float[Array, "m m_b"]


class SoftmaxSeen(NamedTuple):
    """What a probe may look at."""

    scores: Float[Array, "1 tokens"]
    """Attention of the query on every token; 0 on itself, which stands outside the sum."""
    hidden: Float[Array, " m"]
    """The neurons before their ReLU."""


@spec(part="model")
class SoftmaxMLP:
    """`F = a^T relu(W_O sum_{i<=l} W_V p_i softmax_i((W_K p_i)^T W_Q p_query))`, a fixed.

    Reference: li2024icl, eq. 2, section 4.1; li2024selectors, eq. 2.

    Differs from the paper: a is 1/m on one half of the neurons and -1/m on the other (algorithm 1 prints 1/sqrt(m),
    with which training fails).
    """

    usual_training: ClassVar[dict[str, Any]] = {"learning_rate": 0.5, "steps": 1500}
    neurons: int = 100
    """m: neurons of the MLP."""
    attention_size: int | None = None
    """m_a = m_b: rows of W_Q, W_K and W_V; none is the width of a column."""
    init_scale: float = number(default=0.13)
    """delta: starting value of the first d_X diagonal entries of W_Q and W_K, and of the diagonal of W_V."""
    embedding: LabelEmbedding = part(default_factory=lambda: LabelEmbedding(size=30, norm=3.0))
    """How labels enter the columns."""

    def check(self) -> None:
        require(isinstance(self.embedding, LabelEmbedding), "embedding", type(self.embedding).__name__,
                "be a LabelEmbedding: this model's output is one number")
        require_count(self, "neurons", 2)
        if self.attention_size is not None:
            require_count(self, "attention_size", 1)
        require_range(self, "init_scale", 0, float("inf"), open_low=True, open_high=True)

    def weight_count(self, dimension: int) -> int:
        """How many trainable numbers `init` makes."""
        width = self.embedding.width(dimension)
        return (self.attention_size or width) * (3 * width + self.neurons)

    def init(self, key: Array, dimension: int) -> SoftmaxParams:
        """Weights before training: W_O ~ N(0, 1/m), the others diagonal."""
        width = self.embedding.width(dimension)
        rows = self.attention_size or width
        diagonal = jnp.eye(rows, width) * self.init_scale
        inputs = jnp.where(jnp.arange(width) < dimension, diagonal, 0.0)
        W_O = jax.random.normal(key, (self.neurons, rows)) / jnp.sqrt(float(self.neurons))
        return SoftmaxParams(inputs, inputs, diagonal, W_O)

    def apply(self, params: SoftmaxParams, columns: Float[Array, "tokens width"]) -> tuple[Float[Array, ""],
                                                                                        SoftmaxSeen]:
        """The output for one prompt's query and what led to it."""
        W_Q, W_K, W_V, W_O = params
        context, query = columns[:-1], columns[-1]
        # Products of weights are formed once for all prompts of a batch.
        attention = site("attention", jax.nn.softmax(context @ (query @ (W_Q.T @ W_K))))
        hidden = (W_O @ W_V) @ (attention @ site("values", context, axes=("token", "channel")))
        output = site("neurons", jax.nn.relu(hidden), axes=("neuron",)) @ self.second_layer()
        return output, SoftmaxSeen(jnp.append(attention, 0.0)[None], hidden)

    def second_layer(self) -> Float[Array, " m"]:
        """a: 1/m on the first half of the neurons, -1/m on the second."""
        return jnp.where(jnp.arange(self.neurons) < self.neurons // 2, 1.0, -1.0) / self.neurons

    def neuron_inputs(self, params: SoftmaxParams) -> Float[Array, "m width"]:
        """What each neuron reads, the rows of W_O W_V; pruning goes by their norms."""
        return params.W_O @ params.W_V

    def keep_neurons(self, params: SoftmaxParams, keep: Bool[Array, " m"]) -> SoftmaxParams:
        """The weights with only these neurons left."""
        return params._replace(W_O=params.W_O * keep[:, None])
