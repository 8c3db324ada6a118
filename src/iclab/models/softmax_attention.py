"""Multi-head softmax attention, many layers, and nothing else: no MLP, and positions only as learned distances.

Pre-norm blocks `P <- P + sum_h softmax(Q_h K_h^T / sqrt(size / heads)) V_h O_h`, causal, as in vaswani2017attention;
tested against PyTorch's `MultiheadAttention` with copied weights.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.core.errors import require
from iclab.core.limits import DEEPEST
from iclab.core.spec import later, part, require_count, spec
from iclab.models.embedding import LabelEmbedding, TokenEmbedding
from iclab.models.gpt2 import attend
from iclab.models.readout import answer, at_query, require_readable
from iclab.models.sites import site
from iclab.models.stack import Affine, cut, layer_norm, stacked, through


class AttentionWeights(NamedTuple):
    """Weights of one layer, or of all layers, stacked."""

    norm: Affine
    """Scale (as a row) and shift of the layer norm."""
    qkv: Affine
    out: Affine
    distances: Float[Array, "heads reach"] | None = None
    """What is added to the logits of tokens at distance 0, 1, ...; None without a reach."""


class AttentionParams(NamedTuple):
    """Trainable weights."""

    read_in: Affine
    blocks: AttentionWeights
    norm: Affine
    read_out: Affine


class AttentionSeen(NamedTuple):
    """What a probe may look at, seen from the query, in every layer."""

    scores: Float[Array, "layers tokens"]
    """Attention of the query on every token, mean over heads."""


def by_distance(table: Float[Array, "heads reach"], channels: int, asked: int, tokens: int
                ) -> Float[Array, "heads asked tokens"]:
    """What is added to each logit, `sqrt(channels)` times a learned number: as fast as products of queries and keys,
    whose many factors all move, a single number could not move. 0 beyond the reach."""
    distance = jnp.arange(tokens - asked, tokens)[:, None] - jnp.arange(tokens)
    reach = table.shape[1]
    return jnp.sqrt(float(channels)) * jnp.where(
        (distance >= 0) & (distance < reach), table[:, jnp.clip(distance, 0, reach - 1)], 0.0)


@spec(part="model")
class SoftmaxAttention:
    """Layers of causal multi-head softmax attention between a linear read-in and a read-out, at the query or at every
    token.

    Without a reach there are no positions: one layer ignores the order of the examples, and deeper ones see it only
    through the mask. With it, logits of near tokens are shifted by learned numbers, one for each head and distance, as
    in raffel2020exploring, here times the root of a head's size.
    """

    usual_training: ClassVar[dict[str, Any]] = {"learning_rate": 3e-3, "optimizer": "adam", "clip_norm": 1.0,
                                                "batch_size": 64, "steps": 1000}
    layers: int = 1
    """Depth."""
    heads: int = 4
    """Attention heads."""
    size: int = 32
    """Length of a token's vector."""
    reach: int = later(default=0)
    """Distances, from 0 up, for which every head learns a shift of its logits; 0: no positions."""
    embedding: LabelEmbedding | TokenEmbedding = part(default_factory=LabelEmbedding)
    """How labels enter the columns; or tokens, with an answer at each of them."""

    def check(self) -> None:
        require_readable(self.embedding)
        require_count(self, "reach", 0)
        require_count(self, "layers", 1, below=DEEPEST)
        for field in ("heads", "size"):
            require_count(self, field, 1)
        require(self.size % self.heads == 0, "size", self.size, f"be a multiple of heads = {self.heads}")

    def weight_count(self, dimension: int) -> int:
        """How many trainable numbers `init` makes."""
        width, size = self.embedding.width(dimension), self.size
        layer = 4 * size**2 + 6 * size + self.heads * self.reach
        return (width + 1) * size + self.layers * layer + 2 * size + (size + 1) * self.embedding.outputs(dimension)

    def score_count(self, tokens: int) -> int:
        """How many numbers between pairs of tokens are held for one prompt: at the query, the last layer has
        one row."""
        return (self.layers - at_query(self)) * self.heads * tokens**2

    def init(self, key: Array, dimension: int) -> AttentionParams:
        """Linear maps N(0, 1/inputs), those that write into the stream smaller by sqrt(layers); no shifts by
        distance."""
        params = _start(key, self.layers, self.size, self.embedding.width(dimension), self.embedding.outputs(dimension))
        if self.reach == 0:
            return params
        none = jnp.zeros((self.layers, self.heads, self.reach))
        return params._replace(blocks=params.blocks._replace(distances=none))

    def apply(self, params: AttentionParams, columns: Float[Array, "tokens width"]
              ) -> tuple[Float[Array, "*answer"], AttentionSeen]:
        """The output for one prompt's query, or at each of its tokens, and what led to it."""
        return answer(self, params, columns)

    def stream(self, params: AttentionParams, h: Float[Array, "tokens size"], asked: int | None = None
               ) -> tuple[Float[Array, "asked size"], AttentionSeen]:
        """Embedded tokens through all blocks and the last norm, the last `asked` of them (none: all)."""
        def layer(h: Array, block: AttentionWeights, count: int, number: int) -> tuple[Array, AttentionSeen]:
            shift = None if block.distances is None else by_distance(
                block.distances, self.size // self.heads, count, h.shape[0])
            written, weights = attend(block.qkv, block.out, layer_norm(block.norm, h), self.heads, count, number, shift)
            h = site("stream", h[-count:] + written, number, ("reader", "channel"))
            return h, AttentionSeen(weights[:, -1].mean(axis=0))

        h, seen = through(params.blocks, h, layer, asked)
        return layer_norm(params.norm, h), seen


@partial(jax.jit, static_argnums=(1, 2, 3, 4))
def _start(key: Array, layers: int, size: int, width: int, outputs: int) -> AttentionParams:
    """Weights before training."""
    normal = cut(lambda shape: jax.random.normal(key, shape), {
        "read_in": (width, size), "qkv": (layers, size, 3 * size), "out": (layers, size, size),
        "read_out": (size, outputs)})

    def affine(name: str, scale: float = 1.0) -> Affine:
        W = scale * normal[name] * normal[name].shape[-2] ** -0.5
        return Affine(W, jnp.zeros((*W.shape[:-2], W.shape[-1])))

    plain = Affine(jnp.ones((1, size)), jnp.zeros(size))
    blocks = AttentionWeights(stacked([plain] * layers), affine("qkv"), affine("out", layers**-0.5))
    return AttentionParams(affine("read_in"), blocks, plain, affine("read_out"))
