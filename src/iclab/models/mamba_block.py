"""The Mamba block as it was released (gu2023mamba): what li2025mamba simplifies.

| here    | paper             | meaning                                                     |
| ------- | ----------------- | ----------------------------------------------------------- |
| in_proj | linear projection | a token's vector to its channels x and to their gate z      |
| conv    | convolution       | each channel over a token and those before it, then SiLU    |
| x_proj  | s_B, s_C, s_Delta | channels to the low rank of the step, to B and to C         |
| dt_proj | broadcast, bias   | `Delta_t = softplus(dt_proj(...))`, one step per channel    |
| A_log   | A                 | `A = -exp(A_log)`, one rate per channel and state           |
| D       | D                 | what of x_t itself is added                                 |

`h_t = exp(Delta_t A) h_{t-1} + Delta_t B_t x_t`,  `y_t = C_t h_t + D x_t`;  block: `P <- P + out_proj(y silu(z))`, with
x and z made of the normalised P. Held to `MambaModel` of transformers 5.23 (its slow path, inputs as embeddings, final
norm included) with copied weights: values, and gradients of the inputs and of every weight, in double precision.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.core.spec import part, spec
from iclab.models.embedding import LabelEmbedding, TokenEmbedding
from iclab.models.forms import running_sum
from iclab.models.readout import answer
from iclab.models.selective import BlockParams, BlockSeen, causal_convolution, check_block, step_bias
from iclab.models.sites import site
from iclab.models.stack import Affine, cut, rms_norm, through


class MambaWeights(NamedTuple):
    """Weights of one layer, or of all layers, stacked."""

    norm: Float[Array, " size"]
    in_proj: Float[Array, "size two_channels"]
    conv: Affine
    x_proj: Float[Array, "channels rank_and_two_states"]
    dt_proj: Affine
    A_log: Float[Array, "channels state"]
    D: Float[Array, " channels"]
    out_proj: Float[Array, "channels size"]


class Selected(NamedTuple):
    """What the recurrence of one layer reads."""

    step: Float[Array, "tokens channels"]
    """Delta."""
    A: Float[Array, "channels state"]
    B: Float[Array, "tokens state"]
    C: Float[Array, "tokens state"]
    x: Float[Array, "tokens channels"]


def scan_states(chosen: Selected) -> Float[Array, "tokens channels"]:
    """`h_t = exp(Delta_t A) h_{t-1} + Delta_t B_t x_t`, `y_t = C_t h_t`, h_0 = 0: this defines the model."""
    def token(state, now):
        step, B, C, x = now
        state = jnp.exp(step[:, None] * chosen.A) * state + (step * x)[:, None] * B
        return state, state @ C

    return jax.lax.scan(token, jnp.zeros_like(chosen.A), (chosen.step, chosen.B, chosen.C, chosen.x))[1]


def reaching(chosen: Selected) -> Float[Array, "tokens channels state"]:
    """`exp(A sum_{k>i} Delta_k)`: what is left of each token at the last one."""
    total = running_sum(chosen.step)
    return jnp.exp((total[-1] - total)[:, :, None] * chosen.A)


def last_state(chosen: Selected) -> Float[Array, "1 channels"]:
    """`scan_states` at the last token alone, all tokens at once: `sum_i Delta_i x_i sum_n exp(...) B_in C_n`."""
    reached = jnp.einsum("icn,in->ic", reaching(chosen), chosen.B * chosen.C[-1])
    return (chosen.step * chosen.x * reached).sum(axis=0)[None]


def select(layer: MambaWeights, h: Float[Array, "tokens size"]) -> tuple[Selected, Float[Array, "tokens channels"]]:
    """Steps, rates, B, C and inputs of a layer, and the gate branch z."""
    x, z = jnp.split(h @ layer.in_proj, 2, axis=1)
    x = jax.nn.silu(causal_convolution(layer.conv, x))
    rank, state = layer.dt_proj.W.shape[0], layer.A_log.shape[1]
    low_rank, B, C = jnp.split(x @ layer.x_proj, [rank, rank + state], axis=1)
    step = jax.nn.softplus(low_rank @ layer.dt_proj.W + layer.dt_proj.b)
    return Selected(step, -jnp.exp(layer.A_log), B, C, x), z


def mamba_layer(h: Float[Array, "tokens size"], layer: MambaWeights, asked: int, number: int = 0
                ) -> tuple[Float[Array, "asked size"], BlockSeen]:
    """The last `asked` tokens after one block, and what led to the query; `number` is the layer's."""
    chosen, z = select(layer, rms_norm(layer.norm, h))
    chosen = chosen._replace(step=site("steps", chosen.step, number, ("token", "channel")),
                             B=site("writing", chosen.B, number, ("token", "state")),
                             C=site("reading", chosen.C, number, ("token", "state")))
    y = last_state(chosen) if asked == 1 else scan_states(chosen)[-asked:]
    y = (y + layer.D * chosen.x[-asked:]) * jax.nn.silu(z[-asked:])
    gates = (chosen.step * reaching(chosen).mean(axis=2)).mean(axis=1)
    h = site("stream", h[-asked:] + y @ layer.out_proj, number, ("reader", "channel"))
    return h, BlockSeen(chosen.B @ chosen.C[-1], gates, chosen.step.mean(axis=1))


@spec(part="model")
class MambaBlock:
    """One or more Mamba blocks as released, between a linear read-in and a read-out, at the query or at every token.

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
    state: int = 16
    """Numbers in the state of a channel."""
    convolution: int = 4
    """Tokens that the convolution reads."""
    rank: int = 2
    """Rank of the map that makes steps; the released models take size / 16."""
    embedding: LabelEmbedding | TokenEmbedding = part(default_factory=LabelEmbedding)
    """How labels enter the columns; or tokens, with an answer at each of them."""

    def check(self) -> None:
        check_block(self, "rank")

    def weight_count(self, dimension: int) -> int:
        """How many trainable numbers `init` makes."""
        width, size, channels = self.embedding.width(dimension), self.size, self.size * self.expand
        mixed = self.convolution + 1 + 2 * (self.rank + self.state) + 1 + self.state + 1
        layer = size + channels * (3 * size + mixed)
        return (width + 1) * size + self.layers * layer + size + (size + 1) * self.embedding.outputs(dimension)

    def init(self, key: Array, dimension: int) -> BlockParams:
        """The released start: linear maps uniform within 1/sqrt(inputs), those that write into the stream smaller by
        sqrt(layers); A = -1, ..., -state; D = 1; steps between 0.001 and 0.1."""
        return _start(key, self.layers, self.size, self.size * self.expand, self.state, self.convolution, self.rank,
                      self.embedding.width(dimension), self.embedding.outputs(dimension))

    def apply(self, params: BlockParams, columns: Float[Array, "tokens width"]
              ) -> tuple[Float[Array, "*answer"], BlockSeen]:
        """The output for one prompt's query, or at each of its tokens, and what led to it."""
        return answer(self, params, columns)

    def stream(self, params: BlockParams, h: Float[Array, "tokens size"], asked: int | None = None
               ) -> tuple[Float[Array, "asked size"], BlockSeen]:
        """Embedded tokens through all blocks and the last norm, the last `asked` of them (none: all)."""
        h, seen = through(params.blocks, h, mamba_layer, asked)
        return rms_norm(params.norm, h), seen


@partial(jax.jit, static_argnums=(1, 2, 3, 4, 5, 6, 7, 8))
def _start(key: Array, layers: int, size: int, channels: int, state: int, taps: int, rank: int, width: int,
           outputs: int) -> BlockParams:
    """Weights before training."""
    within = cut(lambda shape: jax.random.uniform(key, shape, float, -1.0, 1.0), {
        "read_in": (width, size), "in_proj": (layers, size, 2 * channels), "conv": (layers, taps, channels),
        "x_proj": (layers, channels, rank + 2 * state), "dt_proj": (layers, rank, channels),
        "steps": (layers, channels), "out_proj": (layers, channels, size), "read_out": (size, outputs)})
    linear = {name: draws * draws.shape[-2] ** -0.5 for name, draws in within.items()}
    rates = jnp.broadcast_to(jnp.log(jnp.arange(1.0, state + 1.0)), (layers, channels, state))
    blocks = MambaWeights(
        jnp.ones((layers, size)), linear["in_proj"], Affine(linear["conv"], jnp.zeros((layers, channels))),
        linear["x_proj"], Affine(linear["dt_proj"], step_bias(within["steps"])), rates,
        jnp.ones((layers, channels)), linear["out_proj"] * layers**-0.5)
    return BlockParams(Affine(linear["read_in"], jnp.zeros(size)), blocks, jnp.ones(size),
                       Affine(linear["read_out"], jnp.zeros(outputs)))
