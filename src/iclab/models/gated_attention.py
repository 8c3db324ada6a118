"""The gated linear attention family: Mamba, the linear Transformer and their relatives, one to many layers.

| here              | paper         | meaning                                                         |
| ----------------- | ------------- | --------------------------------------------------------------- |
| columns[t]        | p_t           | column t of the prompt; the last is the query                   |
| W_B, W_C          | W_B, W_C      | key and query weights, (state, width) each, state = width       |
| gate.w            | w             | gate weights                                                    |
| scores[i]         | p_i^T W_B^T W_C p_query | attention score of token i                            |
| gates[i]          | G_{i,l+1}     | how much of token i reaches the query                           |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.core.errors import require
from iclab.core.limits import DEEPEST
from iclab.core.spec import number, part, require_choice, require_count, require_range, spec
from iclab.models.embedding import ChainEmbedding, LabelEmbedding, TokenEmbedding, VectorEmbedding
from iclab.models.forms import Streams, chunked, direct_sum, reach, reaches, recurrence
from iclab.models.gates import MEMBERS, GateParams, Gates, gate_count, gates, init_gate
from iclab.models.sites import site, watched


class LayerParams(NamedTuple):
    """Trainable weights of one layer."""

    W_B: Float[Array, "state width"]
    W_C: Float[Array, "state width"]
    gate: GateParams


class Intermediates(NamedTuple):
    """What a probe may look at, seen from the query, in every layer."""

    scores: Float[Array, "layers tokens"]
    gates: Float[Array, "layers tokens"]


class Seen(NamedTuple):
    """One layer seen from the query."""

    scores: Float[Array, " tokens"]
    """p_i^T W_B^T W_C p_query."""
    gates: Float[Array, " tokens"]
    """G_{i,l+1}; its mean where a gate has one value per key row."""
    weights: Float[Array, " tokens"]
    """Their product: how much of token i's label reaches the query."""


@spec(part="model")
class GatedAttention:
    """`F = sum_i G_{i,l+1} y_i p_i^T W_B^T W_C p_query`, read off the label coordinate of the query's column.

    Deeper stacks add each layer's output to its input: `P <- P + o`,
    `o_t = sum_{i<=t} G_{i,t} p_i p_i^T W_B^T W_C p_t`.
    Reference: li2025mamba, eq. 3 and appendix E.6; `iclab.models.gates` has the members.

    Differs from the paper: the state has width d+1, not l+1, and starts at 0 (eq. 3 is false otherwise).
    """

    member: str = "mamba"
    """Which member of the family: linear, mamba, retnet, gated_retention, mamba2, mamba2_step, gla."""
    layers: int = 1
    """Depth of the stack."""
    gate_per_channel: bool = False
    """One gate per value channel (li2025mamba, eq. 1) instead of one for all; the same F in one layer."""
    form: str = "sum"
    """How the sequence is computed: sum (direct), recurrence (state by state), chunked (linear in length)."""
    chunk: int = 64
    """Tokens in a chunk of the chunked form."""
    causal: bool = True
    """Whether a token reads only itself and those before it; if not (linear member), the order of examples is of no
    account at any depth."""
    normalise: bool = False
    """Divide each layer's output by the number of tokens; a deep linear Transformer diverges without."""
    init_scale: float = number(default=0.2)
    """delta: starting value of the first d diagonal entries of W_B and W_C, and for chains of those of the code."""
    retention: float = number(default=0.9)
    """g: decay of retnet."""
    temperature: float = number(default=16.0)
    """Root taken of gated_retention's gate."""
    embedding: LabelEmbedding | VectorEmbedding | ChainEmbedding = part(default_factory=LabelEmbedding)
    """How labels enter the columns."""

    def check(self) -> None:
        require(not isinstance(self.embedding, TokenEmbedding), "embedding", type(self.embedding).__name__,
                "be of another kind: this model answers at the query alone")
        require_choice(self, "member", MEMBERS)
        require_choice(self, "form", ("sum", "recurrence", "chunked"))
        require_count(self, "layers", 1, below=DEEPEST)
        require_count(self, "chunk", 1)
        require_range(self, "init_scale", 0, float("inf"), open_low=True, open_high=True)
        require_range(self, "retention", 0, 1, open_low=True)
        require_range(self, "temperature", 0, float("inf"), open_low=True, open_high=True)
        require(self.causal or (self.member, self.form) == ("linear", "sum"), "causal", self.causal,
                "be true unless member is linear and form is sum")
        require(not self.gate_per_channel or isinstance(self.embedding, LabelEmbedding), "gate_per_channel",
                self.gate_per_channel, "be false when the output is read in many channels")

    def weight_count(self, dimension: int) -> int:
        """How many trainable numbers `init` makes."""
        width = self.embedding.width(dimension)
        return self.layers * (2 * width**2 + gate_count(self.member, self.gate_per_channel, width))

    def score_count(self, tokens: int) -> int:
        """How many numbers between pairs of tokens are held for one prompt: the last layer has one query."""
        return (self.layers - 1) * tokens**2 if self.form == "sum" else 0

    def init(self, key: Array, dimension: int) -> tuple[LayerParams, ...]:
        """Weights before training (li2025mamba, algorithm 1)."""
        width = self.embedding.width(dimension)
        delta = jnp.diag(jnp.where(self.embedding.known(dimension), self.init_scale, 0.0)).astype(float)
        keys = jax.random.split(key, self.layers)
        return tuple(LayerParams(delta, delta, init_gate(self.member, self.gate_per_channel, width, k)) for k in keys)

    def apply(self, params: tuple[LayerParams, ...], columns: Float[Array, "tokens width"]
              ) -> tuple[Float[Array, "*answer"], Intermediates]:
        """The output for one prompt's query and what led to it."""
        label = self.embedding.answer(columns.shape[1])
        scale = 1.0 / columns.shape[0] if self.normalise else 1.0
        if watched():
            return self.site_by_site(params, columns, label, scale)
        seen = []
        for layer in params[:-1]:
            scores, streams = self.scores(layer, columns), self.streams(layer, columns)
            seen.append(self.from_query(scores, streams, label))
            columns = columns + scale * self.sequence(streams)  # P <- P + o
        scores, streams = self.scores(params[-1], columns), self.streams(params[-1], columns)
        seen.append(self.from_query(scores, streams, label))
        y = columns[:, label]
        F = seen[-1].weights @ y if self.form == "sum" else self.sequence(streams)[-1, label]
        output = self.embedding.readout(y[-1] + scale * F)
        return output, Intermediates(*(jnp.stack(parts) for parts in list(zip(*seen, strict=True))[:2]))

    def site_by_site(self, params: tuple[LayerParams, ...], columns: Float[Array, "tokens width"], label: Any,
                     scale: Any) -> tuple[Float[Array, "*answer"], Intermediates]:
        """One sum over pairs of tokens, whatever the form, through sites: the logarithm of each token's decay
        and its intake, the gates G_{i,t} that they make, the scores `p_i^T W_B^T W_C p_t`, and the columns after each
        layer. Only the query reads in the last layer."""
        seen, pairs = [], ("reader", "token")
        for depth, layer in enumerate(params):
            readers = 1 if depth == len(params) - 1 else columns.shape[0]
            keys, queries, values, gate = self.streams(layer, columns)
            gate = Gates(site("log_decay", gate.log_decay, depth, ("token", "channel", "key")),
                         site("intake", gate.intake, depth, ("token", "channel")))
            _, by_value, by_key = (size > 1 for size in gate.log_decay.shape)
            queries = queries[-readers:]
            G = reaches(gate, readers) if self.causal else jnp.ones((readers, len(columns), 1))
            if by_key:
                scores = site("scores", queries[:, None] * keys, depth, (*pairs, "key"))
                G = site("gates", G, depth, (*pairs, "key"))
                written = (G * scores).sum(axis=2) @ values
                seen.append((scores[-1].sum(axis=1), G[-1].mean(axis=1)))
            elif by_value:
                scores = site("scores", queries @ keys.T, depth, pairs)
                G = site("gates", G, depth, (*pairs, "channel"))
                written = jnp.einsum("ti,tic,ic->tc", scores, G, values)
                seen.append((scores[-1], G[-1, :, label]))
            else:
                scores = site("scores", queries @ keys.T, depth, pairs)
                G = site("gates", G[..., 0], depth, pairs)
                written = (scores * G) @ values
                seen.append((scores[-1], G[-1]))
            columns = site("stream", columns[-readers:] + scale * written, depth, ("reader", "channel"))
        output = self.embedding.readout(columns[-1, label])
        return output, Intermediates(*(jnp.stack(parts) for parts in zip(*seen, strict=True)))

    def scores(self, layer: LayerParams, columns: Float[Array, "tokens width"]) -> Float[Array, " tokens"]:
        """`p_i^T W_B^T W_C p_query` of every token."""
        # Forming W_B^T W_C once beats two products with every prompt.
        return columns @ (columns[-1] @ (layer.W_C.T @ layer.W_B))

    def streams(self, layer: LayerParams, columns: Float[Array, "tokens width"]) -> Streams:
        """Keys, queries, values and gates of a layer."""
        gate = gates(self.member, columns @ layer.gate.w.T, layer.gate.a, self.retention, self.temperature)
        return Streams(columns @ layer.W_B.T, columns @ layer.W_C.T, columns, gate)

    def sequence(self, streams: Streams) -> Float[Array, "tokens width"]:
        """Outputs at every token, in the form that the spec names."""
        if not self.causal:
            return (streams.queries @ streams.keys.T) @ streams.values
        if self.form == "recurrence":
            return recurrence(streams)
        return chunked(streams, self.chunk) if self.form == "chunked" else direct_sum(streams)

    def from_query(self, scores: Float[Array, " tokens"], streams: Streams, label: Any) -> Seen:
        """Scores, gates and their product as seen from the query (the last token), on the label channel."""
        gate = streams.gates
        per_channel = gate.intake.shape[1] > 1
        decay = gate.log_decay[:, label] if per_channel else gate.log_decay[:, 0]
        intake = gate.intake[:, label] if per_channel else gate.intake[:, 0]
        decayed = reach(decay)
        if decayed.shape[1] == 1:
            G = intake * decayed[:, 0]
            return Seen(scores, G, G * scores)
        # A gate on the key axis has no single value; its mean over the axis is shown, the output uses all of it.
        return Seen(scores, decayed.mean(axis=1), jnp.einsum("ik,ik,k->i", decayed, streams.keys, streams.queries[-1]))
