"""GPT-2 on continuous prompts: one token per column, a linear read-in, a scalar read-out at the query.

Pre-norm blocks, causal attention, learned positions, GELU in its tanh form, as in radford2019language; tested against
the `transformers` implementation with copied weights.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from iclab.core.errors import require
from iclab.core.limits import DEEPEST
from iclab.core.spec import part, require_count, spec
from iclab.models.embedding import LabelEmbedding
from iclab.models.sites import site
from iclab.models.stack import Affine, cut, layer_norm, stacked, through


class Block(NamedTuple):
    """Weights of one layer, or of all layers, stacked."""

    norm1: Affine
    """Scale (as a row) and shift of the first layer norm."""
    qkv: Affine
    out: Affine
    norm2: Affine
    up: Affine
    down: Affine


class GPT2Params(NamedTuple):
    """Trainable weights."""

    read_in: Affine
    positions: Float[Array, "positions size"]
    blocks: Block
    norm: Affine
    read_out: Affine


class GPT2Seen(NamedTuple):
    """What a probe may look at, seen from the query, in every layer."""

    scores: Float[Array, "layers tokens"]
    """Attention of the query on every token, mean over heads."""
    hidden: Float[Array, "layers neurons"]
    """Neurons of the MLP before their GELU."""


def attend(qkv: Affine, out: Affine, h: Float[Array, "tokens size"], heads: int, asked: int, number: int = 0,
           shift: Float[Array, "heads asked tokens"] | None = None
           ) -> tuple[Float[Array, "asked size"], Float[Array, "heads asked tokens"]]:
    """Causal attention of the last `asked` tokens, and its weights; `number` is the layer's, `shift` is added to the
    logits."""
    tokens, size = h.shape
    (query_W, rest_W), (query_b, rest_b) = jnp.split(qkv.W, [size], 1), jnp.split(qkv.b, [size])
    q = (h[-asked:] @ query_W + query_b).reshape(asked, heads, -1)
    k, v = (part.reshape(tokens, heads, -1) for part in jnp.split(h @ rest_W + rest_b, 2, -1))
    logits = jnp.einsum("thd,shd->hts", q, k) / jnp.sqrt(float(size // heads))
    if shift is not None:
        logits = logits + shift
    causal = jnp.arange(tokens - asked, tokens)[:, None] >= jnp.arange(tokens)
    weights = jax.nn.softmax(jnp.where(causal, logits, -jnp.inf), axis=-1)
    weights = site("attention", weights, number, ("head", "reader", "token"))
    written = site("heads", jnp.einsum("hts,shd->thd", weights, v), number, ("reader", "head", "channel"))
    return written.reshape(asked, size) @ out.W + out.b, weights


@spec(part="model")
class GPT2:
    """A small GPT-2 (li2024icl, section 5: 3 layers, 2 heads).

    Differs from GPT-2: positions are counted back from the query, so that a prompt shorter than those of training uses
    only trained positions; one longer than `positions` is refused.
    """

    usual_training: ClassVar[dict[str, Any]] = {"learning_rate": 1e-3, "optimizer": "adam", "clip_norm": 1.0,
                                                "batch_size": 64, "steps": 1000}
    layers: int = 3
    """Depth."""
    heads: int = 2
    """Attention heads."""
    size: int = 64
    """Length of a token's vector."""
    positions: int = 21
    """Longest prompt, the query included; positions beyond the training prompts' length stay untrained."""
    embedding: LabelEmbedding = part(default_factory=lambda: LabelEmbedding(size=30, norm=3.0))
    """How labels enter the columns."""

    def check(self) -> None:
        require(isinstance(self.embedding, LabelEmbedding), "embedding", type(self.embedding).__name__,
                "be a LabelEmbedding: this model's output is one number")
        require_count(self, "layers", 1, below=DEEPEST)
        for field in ("heads", "size", "positions"):
            require_count(self, field, 1)
        require(self.size % self.heads == 0, "size", self.size, f"be a multiple of heads = {self.heads}")

    def weight_count(self, dimension: int) -> int:
        """How many trainable numbers `init` makes."""
        width, size = self.embedding.width(dimension), self.size
        block = 12 * size**2 + 13 * size
        return (width + 1) * size + self.positions * size + self.layers * block + 2 * size + size + 1

    def score_count(self, tokens: int) -> int:
        """How many numbers between pairs of tokens are held for one prompt."""
        return self.layers * self.heads * tokens**2

    def init(self, key: Array, dimension: int) -> GPT2Params:
        """GPT-2's own start: weights N(0, 0.02^2), those that write into the stream smaller by sqrt(2 layers); the
        read-in N(0, 1/size)."""
        return _start(key, self.layers, self.size, self.positions, self.embedding.width(dimension))

    def apply(self, params: GPT2Params, columns: Float[Array, "tokens width"]) -> tuple[Float[Array, ""], GPT2Seen]:
        """The output for one prompt's query and what led to it."""
        tokens = columns.shape[0]
        require(tokens <= self.positions, "prompt_length", tokens - 1, f"be below positions = {self.positions}")
        h = columns @ params.read_in.W + params.read_in.b + params.positions[self.positions - tokens:]
        h, seen = self.stream(params, h, asked=1)
        return h[-1] @ params.read_out.W[:, 0] + params.read_out.b[0], seen

    def stream(self, params: GPT2Params, h: Float[Array, "tokens size"], asked: int | None = None
               ) -> tuple[Float[Array, "asked size"], GPT2Seen]:
        """Embedded tokens through all blocks and the last norm, the last `asked` of them (none: all); attention and
        neurons seen from the query."""
        def layer(h: Array, block: Block, count: int, number: int) -> tuple[Array, GPT2Seen]:
            written, weights = attend(block.qkv, block.out, layer_norm(block.norm1, h), self.heads, count, number)
            h = h[-count:] + written
            neurons = layer_norm(block.norm2, h) @ block.up.W + block.up.b
            active = site("neurons", jax.nn.gelu(neurons, approximate=True), number, ("reader", "neuron"))
            h = h + active @ block.down.W + block.down.b
            return site("stream", h, number, ("reader", "channel")), GPT2Seen(weights[:, -1].mean(axis=0), neurons[-1])

        h, seen = through(params.blocks, h, layer, asked)
        return layer_norm(params.norm, h), seen

    def neuron_inputs(self, params: GPT2Params) -> Float[Array, "neurons size"]:
        """What each neuron of each MLP reads, layer after layer; pruning goes by their norms."""
        return jnp.swapaxes(params.blocks.up.W, 1, 2).reshape(-1, self.size)

    def keep_neurons(self, params: GPT2Params, keep: Bool[Array, " neurons"]) -> GPT2Params:
        """The weights with only these neurons left: the others write nothing."""
        down = params.blocks.down
        down = down._replace(W=down.W * keep.reshape(self.layers, -1, 1))
        return params._replace(blocks=params.blocks._replace(down=down))


@partial(jax.jit, static_argnums=(1, 2, 3, 4))
def _start(key: Array, layers: int, size: int, positions: int, width: int) -> GPT2Params:
    """Weights before training."""
    small, normal = 0.02 / (2.0 * layers) ** 0.5, cut(lambda shape: jax.random.normal(key, shape), {
        "read_in": (width, size), "positions": (positions, size), "qkv": (layers, size, 3 * size),
        "out": (layers, size, size), "up": (layers, size, 4 * size), "down": (layers, 4 * size, size),
        "read_out": (size, 1)})

    def affine(name: str, scale: float = 0.02) -> Affine:
        W = scale * normal[name]
        return Affine(W, jnp.zeros((*W.shape[:-2], W.shape[-1])))

    plain = Affine(jnp.ones((1, size)), jnp.zeros(size))
    norms = stacked([plain] * layers)
    blocks = Block(norms, affine("qkv"), affine("out", small), norms, affine("up"), affine("down", small))
    return GPT2Params(affine("read_in", size**-0.5), 0.02 * normal["positions"], blocks, plain, affine("read_out"))
