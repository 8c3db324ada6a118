"""The Mamba-2 block as it was released (dao2024mamba2): heads with one rate each, B and C shared by groups of heads.

| here    | meaning                                                                        |
| ------- | ------------------------------------------------------------------------------ |
| in_proj | a token's vector to the gate z, to x, B, C (all convolved) and to a step a head |
| dt_bias | `Delta_t = softplus(dt_t + dt_bias)`, one step per head                        |
| A_log   | `A = -exp(A_log)`, one rate per head                                           |
| gated   | scale of the RMS norm of `y silu(z)`, taken over each group                    |

`h_t = exp(Delta_t A) h_{t-1} + Delta_t x_t B_t^T`,  `y_t = h_t C_t + D x_t` in every head; block:
`P <- P + out_proj(norm(y silu(z)))`, all made of the normalised P. Held to `Mamba2Model` of transformers 5.23 (its slow
path, inputs as embeddings, final norm included) with copied weights: values, and gradients of the inputs and of every
weight, in double precision.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.core.errors import require
from iclab.core.spec import part, spec
from iclab.models.embedding import LabelEmbedding, TokenEmbedding
from iclab.models.forms import running_sum
from iclab.models.readout import answer, at_query
from iclab.models.selective import BlockParams, BlockSeen, causal_convolution, check_block, step_bias
from iclab.models.sites import site
from iclab.models.stack import Affine, cut, rms_norm, through


class Mamba2Weights(NamedTuple):
    """Weights of one layer, or of all layers, stacked."""

    norm: Float[Array, " size"]
    in_proj: Float[Array, "size parts"]
    conv: Affine
    dt_bias: Float[Array, " heads"]
    A_log: Float[Array, " heads"]
    D: Float[Array, " heads"]
    gated: Float[Array, " channels"]
    out_proj: Float[Array, "channels size"]


class HeadStreams(NamedTuple):
    """What the recurrence of one layer reads."""

    step: Float[Array, "tokens heads"]
    """Delta."""
    A: Float[Array, " heads"]
    B: Float[Array, "tokens groups state"]
    C: Float[Array, "tokens groups state"]
    x: Float[Array, "tokens heads channels"]


def scan_heads(streams: HeadStreams) -> Float[Array, "tokens heads channels"]:
    """`h_t = exp(Delta_t A) h_{t-1} + Delta_t x_t B_t^T`, `y_t = h_t C_t`, h_0 = 0: this defines the model."""
    heads, groups = streams.A.shape[0], streams.B.shape[1]

    def token(state, now):
        step, B, C, x = now
        B, C = (jnp.repeat(part, heads // groups, axis=0) for part in (B, C))
        state = jnp.exp(step * streams.A)[:, None, None] * state + (step[:, None] * x)[:, :, None] * B[:, None]
        return state, jnp.einsum("hcn,hn->hc", state, C)

    start = jnp.zeros((*streams.x.shape[1:], streams.B.shape[2]), streams.x.dtype)
    return jax.lax.scan(token, start, (streams.step, streams.B, streams.C, streams.x))[1]


def decays(streams: HeadStreams, asked: int) -> Float[Array, "heads asked tokens"]:
    """`exp(A sum_{i<k<=t} Delta_k)` for the last `asked` tokens t; 0 where i comes after t."""
    tokens = streams.step.shape[0]
    total = running_sum(streams.step * streams.A).T
    past = jnp.arange(tokens - asked, tokens)[:, None] >= jnp.arange(tokens)
    # Masked before exp, or the gradient of a huge unused exponent would be NaN.
    return jnp.where(past, jnp.exp(jnp.where(past, total[:, -asked:, None] - total[:, None], 0.0)), 0.0)


def paired(streams: HeadStreams, asked: int) -> Float[Array, "asked heads channels"]:
    """`scan_heads` at the last `asked` tokens as a sum over pairs: `sum_i (C_t . B_i) exp(...) Delta_i x_i`."""
    pairs = jnp.einsum("tgn,ign->gti", streams.C[-asked:], streams.B)
    pairs = jnp.repeat(pairs, streams.A.shape[0] // pairs.shape[0], axis=0)
    return jnp.einsum("hti,ih,ihc->thc", pairs * decays(streams, asked), streams.step, streams.x)


def mamba2_layer(h: Float[Array, "tokens size"], layer: Mamba2Weights, asked: int, state: int, number: int = 0
                 ) -> tuple[Float[Array, "asked size"], BlockSeen]:
    """The last `asked` tokens after one block, and what led to the query; `number` is the layer's."""
    tokens, channels, heads = h.shape[0], layer.out_proj.shape[0], layer.A_log.shape[0]
    projected = rms_norm(layer.norm, h) @ layer.in_proj
    z, mixed, dt = jnp.split(projected, [channels, projected.shape[1] - heads], axis=1)
    mixed = jax.nn.silu(causal_convolution(layer.conv, mixed))
    x, B, C = jnp.split(mixed, [channels, (channels + mixed.shape[1]) // 2], axis=1)
    B, C = (part.reshape(tokens, -1, state) for part in (B, C))
    B, C = (site(name, part, number, ("token", "group", "state")) for name, part in (("writing", B), ("reading", C)))
    step = site("steps", jax.nn.softplus(dt + layer.dt_bias), number, ("token", "head"))
    streams = HeadStreams(step, -jnp.exp(layer.A_log), B, C, x.reshape(tokens, heads, -1))
    y = paired(streams, asked) + layer.D[:, None] * streams.x[-asked:]
    groups = B.shape[1]
    y = (y.reshape(asked, channels) * jax.nn.silu(z[-asked:])).reshape(asked, groups, -1)
    y = rms_norm(layer.gated.reshape(groups, -1), y).reshape(asked, channels)
    gates = (streams.step * decays(streams, 1)[:, 0].T).mean(axis=1)
    scores = jnp.einsum("tgn,gn->tg", B, C[-1]).mean(axis=1)
    h = site("stream", h[-asked:] + y @ layer.out_proj, number, ("reader", "channel"))
    return h, BlockSeen(scores, gates, streams.step.mean(axis=1))


@spec(part="model")
class Mamba2Block:
    """One or more Mamba-2 blocks as released, between a linear read-in and a read-out, at the query or at every token.

    Differs from the released models: columns come in through a linear map instead of a table of words.
    """

    usual_training: ClassVar[dict[str, Any]] = {"learning_rate": 3e-3, "optimizer": "adam", "clip_norm": 1.0,
                                                "batch_size": 64, "steps": 1000}
    layers: int = 1
    """Depth."""
    size: int = 32
    """Length of a token's vector."""
    expand: int = 2
    """Channels per coordinate of that vector."""
    heads: int = 4
    """Heads, each with its own step and rate."""
    groups: int = 1
    """Groups of heads; the heads of a group share B and C."""
    state: int = 16
    """Numbers in the state of a channel."""
    convolution: int = 4
    """Tokens that the convolution reads."""
    embedding: LabelEmbedding | TokenEmbedding = part(default_factory=LabelEmbedding)
    """How labels enter the columns; or tokens, with an answer at each of them."""

    def check(self) -> None:
        check_block(self, "heads", "groups")
        require(self.heads % self.groups == 0, "heads", self.heads, f"be a multiple of groups = {self.groups}")
        require(self.size * self.expand % self.heads == 0, "heads", self.heads,
                f"divide size * expand = {self.size * self.expand}")

    def weight_count(self, dimension: int) -> int:
        """How many trainable numbers `init` makes."""
        width, size, channels = self.embedding.width(dimension), self.size, self.size * self.expand
        mixed = channels + 2 * self.groups * self.state
        layer = (size * (channels + mixed + self.heads + 1) + (self.convolution + 1) * mixed + 3 * self.heads
                 + channels * (size + 1))
        return (width + 1) * size + self.layers * layer + size + (size + 1) * self.embedding.outputs(dimension)

    def score_count(self, tokens: int) -> int:
        """How many numbers between pairs of tokens are held for one prompt: at the query, the last layer has
        one row."""
        return (self.layers - at_query(self)) * self.heads * tokens**2

    def init(self, key: Array, dimension: int) -> BlockParams:
        """The released start: linear maps uniform within 1/sqrt(inputs), those that write into the stream smaller by
        sqrt(layers); A uniform in (-16, -1); D = 1; steps between 0.001 and 0.1."""
        return _start(key, self.layers, self.size, self.size * self.expand, self.heads, self.groups * self.state,
                      self.convolution, self.embedding.width(dimension), self.embedding.outputs(dimension))

    def apply(self, params: BlockParams, columns: Float[Array, "tokens width"]
              ) -> tuple[Float[Array, "*answer"], BlockSeen]:
        """The output for one prompt's query, or at each of its tokens, and what led to it."""
        return answer(self, params, columns)

    def stream(self, params: BlockParams, h: Float[Array, "tokens size"], asked: int | None = None
               ) -> tuple[Float[Array, "asked size"], BlockSeen]:
        """Embedded tokens through all blocks and the last norm, the last `asked` of them (none: all)."""
        h, seen = through(params.blocks, h, partial(_layer, self.state), asked)
        return rms_norm(params.norm, h), seen


def _layer(state: int, h: Array, layer: Mamba2Weights, asked: int, number: int) -> tuple[Array, BlockSeen]:
    return mamba2_layer(h, layer, asked, state, number)


@partial(jax.jit, static_argnums=(1, 2, 3, 4, 5, 6, 7, 8))
def _start(key: Array, layers: int, size: int, channels: int, heads: int, states: int, taps: int, width: int,
           outputs: int) -> BlockParams:
    """Weights before training."""
    mixed = channels + 2 * states
    within = cut(lambda shape: jax.random.uniform(key, shape, float, -1.0, 1.0), {
        "read_in": (width, size), "in_proj": (layers, size, channels + mixed + heads), "conv": (layers, taps, mixed),
        "steps": (layers, heads), "rates": (layers, heads), "out_proj": (layers, channels, size),
        "read_out": (size, outputs)})
    linear = {name: draws * draws.shape[-2] ** -0.5 for name, draws in within.items()}
    blocks = Mamba2Weights(
        jnp.ones((layers, size)), linear["in_proj"], Affine(linear["conv"], jnp.zeros((layers, mixed))),
        step_bias(within["steps"]), jnp.log(8.5 + 7.5 * within["rates"]), jnp.ones((layers, heads)),
        jnp.ones((layers, channels)), linear["out_proj"] * layers**-0.5)
    return BlockParams(Affine(linear["read_in"], jnp.zeros(size)), blocks, jnp.ones(size),
                       Affine(linear["read_out"], jnp.zeros(outputs)))
