"""Multi-head softmax attention, many layers, and nothing else: no MLP and no positions.

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
from iclab.core.spec import part, require_count, spec
from iclab.models.embedding import LabelEmbedding
from iclab.models.gpt2 import attend
from iclab.models.sites import site
from iclab.models.stack import Affine, cut, layer_norm, stacked, through


class AttentionWeights(NamedTuple):
    """Weights of one layer, or of all layers, stacked."""

    norm: Affine
    """Scale (as a row) and shift of the layer norm."""
    qkv: Affine
    out: Affine


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


@spec(part="model")
class SoftmaxAttention:
    """Layers of causal multi-head softmax attention between a linear read-in and a read-out at the query.

    There are no positions: one layer ignores the order of the examples, and deeper ones see it only through the mask.
    """

    usual_training: ClassVar[dict[str, Any]] = {"learning_rate": 3e-3, "optimizer": "adam", "clip_norm": 1.0,
                                                "batch_size": 64, "steps": 1000}
    layers: int = 1
    """Depth."""
    heads: int = 4
    """Attention heads."""
    size: int = 32
    """Length of a token's vector."""
    embedding: LabelEmbedding = part(default_factory=LabelEmbedding)
    """How labels enter the columns."""

    def check(self) -> None:
        require(isinstance(self.embedding, LabelEmbedding), "embedding", type(self.embedding).__name__,
                "be a LabelEmbedding: this model's output is one number")
        require_count(self, "layers", 1, below=DEEPEST)
        for field in ("heads", "size"):
            require_count(self, field, 1)
        require(self.size % self.heads == 0, "size", self.size, f"be a multiple of heads = {self.heads}")

    def weight_count(self, dimension: int) -> int:
        """How many trainable numbers `init` makes."""
        width, size = self.embedding.width(dimension), self.size
        return (width + 1) * size + self.layers * (4 * size**2 + 6 * size) + 3 * size + 1

    def score_count(self, tokens: int) -> int:
        """How many numbers between pairs of tokens are held for one prompt: the last layer has one query."""
        return (self.layers - 1) * self.heads * tokens**2

    def init(self, key: Array, dimension: int) -> AttentionParams:
        """Linear maps N(0, 1/inputs), those that write into the stream smaller by sqrt(layers)."""
        return _start(key, self.layers, self.size, self.embedding.width(dimension))

    def apply(self, params: AttentionParams, columns: Float[Array, "tokens width"]
              ) -> tuple[Float[Array, ""], AttentionSeen]:
        """The output for one prompt's query and what led to it."""
        h, seen = self.stream(params, columns @ params.read_in.W + params.read_in.b, asked=1)
        return h[-1] @ params.read_out.W[:, 0] + params.read_out.b[0], seen

    def stream(self, params: AttentionParams, h: Float[Array, "tokens size"], asked: int | None = None
               ) -> tuple[Float[Array, "asked size"], AttentionSeen]:
        """Embedded tokens through all blocks and the last norm, the last `asked` of them (none: all)."""
        def layer(h: Array, block: AttentionWeights, count: int, number: int) -> tuple[Array, AttentionSeen]:
            written, weights = attend(block.qkv, block.out, layer_norm(block.norm, h), self.heads, count, number)
            h = site("stream", h[-count:] + written, number, ("reader", "channel"))
            return h, AttentionSeen(weights[:, -1].mean(axis=0))

        h, seen = through(params.blocks, h, layer, asked)
        return layer_norm(params.norm, h), seen


@partial(jax.jit, static_argnums=(1, 2, 3))
def _start(key: Array, layers: int, size: int, width: int) -> AttentionParams:
    """Weights before training."""
    normal = cut(lambda shape: jax.random.normal(key, shape), {
        "read_in": (width, size), "qkv": (layers, size, 3 * size), "out": (layers, size, size), "read_out": (size, 1)})

    def affine(name: str, scale: float = 1.0) -> Affine:
        W = scale * normal[name] * normal[name].shape[-2] ** -0.5
        return Affine(W, jnp.zeros((*W.shape[:-2], W.shape[-1])))

    plain = Affine(jnp.ones((1, size)), jnp.zeros(size))
    blocks = AttentionWeights(stacked([plain] * layers), affine("qkv"), affine("out", layers**-0.5))
    return AttentionParams(affine("read_in"), blocks, plain, affine("read_out"))
