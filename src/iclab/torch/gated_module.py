"""The gated linear attention family as a PyTorch module; `iclab.models.gated_attention` has the equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from iclab.models.gated_attention import GatedAttention, Intermediates, LayerParams
from iclab.models.gates import GateParams
from iclab.torch.module import PromptModule, parameter, plain
from iclab.torch.sequences import TorchGates, TorchStreams, chunked, direct_sum, reach, recurrence


def torch_gates(model: GatedAttention, logits: Float[Tensor, "*batch tokens gates"], rate: Float[Tensor, " 1"] | None
                ) -> TorchGates:
    """Decay and intake at every token, by the table of `iclab.models.gates`, from the logits w.p and the rate a."""
    log_sigmoid = nn.functional.logsigmoid
    ones = torch.ones_like(logits)
    if model.member in ("linear", "retnet"):
        decay = 0.0 if model.member == "linear" else math.log(model.retention)
        return TorchGates((decay * ones).unsqueeze(-1), ones)
    if model.member == "gla":
        return TorchGates(log_sigmoid(logits).unsqueeze(-2), ones[..., :1])
    if model.member == "mamba":
        return TorchGates(log_sigmoid(-logits).unsqueeze(-1), logits.sigmoid())
    if model.member == "gated_retention":
        return TorchGates((log_sigmoid(logits) / model.temperature).unsqueeze(-1), ones)
    log_keep = log_sigmoid(-logits)
    assert rate is not None
    return TorchGates((log_keep * rate.exp()).unsqueeze(-1), -log_keep if model.member == "mamba2_step" else ones)


class GatedLayer(nn.Module):
    """One layer: its weights, and the keys, queries, values and gates that they make of columns."""

    w: nn.Parameter | None
    a: nn.Parameter | None

    def __init__(self, model: GatedAttention, params: LayerParams):
        super().__init__()
        self.model = model
        self.W_B, self.W_C = parameter(params.W_B), parameter(params.W_C)
        # A member that lacks a weight has no such parameter.
        self.register_parameter("w", parameter(params.gate.w) if params.gate.w.shape[0] else None)
        self.register_parameter("a", parameter(params.gate.a) if params.gate.a.shape[0] else None)

    def scores(self, columns: Float[Tensor, "*batch tokens width"]) -> Float[Tensor, "*batch tokens"]:
        """`p_i^T W_B^T W_C p_query` of every token."""
        query = columns[..., -1, :] @ (self.W_C.mT @ self.W_B)
        return (columns @ query.unsqueeze(-1)).squeeze(-1)

    def forward(self, columns: Float[Tensor, "*batch tokens width"]) -> TorchStreams:
        """Keys, queries, values and gates."""
        logits = columns[..., :1].detach() * 0.0 if self.w is None else columns @ self.w.mT
        return TorchStreams(columns @ self.W_B.mT, columns @ self.W_C.mT, columns,
                            torch_gates(self.model, logits, self.a))

    def weights(self) -> LayerParams:
        """The parameters as iclab keeps them; a lacking weight is an empty array."""
        W_B, W_C = plain(self.W_B), plain(self.W_C)
        w: Any = np.zeros((0, W_B.shape[1]), W_B.dtype) if self.w is None else plain(self.w)
        a: Any = np.zeros(0, W_B.dtype) if self.a is None else plain(self.a)
        return LayerParams(W_B, W_C, GateParams(w, a))


class GatedAttentionModule(PromptModule):
    """`F = sum_i G_{i,l+1} y_i p_i^T W_B^T W_C p_query`; deeper stacks add each layer's output to its input.

    Parameters: `layers[n].W_B`, `layers[n].W_C`, and by member `layers[n].w` (the gate) and `layers[n].a` (the rate of
    mamba2). Reference: li2025mamba, eq. 3 and appendix E.6.
    """

    spec_type = GatedAttention
    model: GatedAttention

    def build(self, params: tuple[LayerParams, ...]) -> None:
        """One `GatedLayer` per layer."""
        self.layers = nn.ModuleList(GatedLayer(self.model, layer) for layer in params)

    def weights(self) -> tuple[LayerParams, ...]:
        """The parameters of all layers as iclab keeps them."""
        return tuple(layer.weights() for layer in self._stack())

    def _stack(self) -> list[GatedLayer]:
        return list(self.layers)  # type: ignore[arg-type]

    def read(self, columns: Float[Tensor, "*batch tokens width"]) -> tuple[Float[Tensor, "*batch *answer"],
                                                                           Intermediates]:
        """The outputs for the queries and what led to them, seen from the query in every layer."""
        label: Any = self.model.embedding.answer(columns.shape[-1])
        scale = 1.0 / columns.shape[-2] if self.model.normalise else 1.0
        seen = []
        for layer in self._stack():
            scores, streams = layer.scores(columns), layer(columns)
            gate, weights = from_query(scores, streams, label)
            seen.append((scores, gate))
            last = len(seen) == len(self.layers)
            if not last:
                columns = columns + scale * self.sequence(streams)  # P <- P + o
        y = columns[..., label]
        if self.model.form != "sum":
            F = self.sequence(streams)[..., -1, label]
        elif isinstance(label, slice):
            F = (weights.unsqueeze(-2) @ y).squeeze(-2)
        else:
            F = (weights * y).sum(-1)
        asked = y[..., -1, :] if isinstance(label, slice) else y[..., -1]
        output: Any = self.model.embedding.readout(asked + scale * F)  # type: ignore[arg-type]
        shown: Any = (torch.stack(parts, dim=-2) for parts in zip(*seen, strict=True))
        return output, Intermediates(*shown)

    def sequence(self, streams: TorchStreams) -> Float[Tensor, "*batch tokens width"]:
        """Outputs at every token, in the form that the spec names."""
        if self.model.form == "recurrence":
            return recurrence(streams)
        return chunked(streams, self.model.chunk) if self.model.form == "chunked" else direct_sum(streams)


def from_query(scores: Float[Tensor, "*batch tokens"], streams: TorchStreams, label: int | slice
               ) -> tuple[Float[Tensor, "*batch tokens"], Float[Tensor, "*batch tokens"]]:
    """`G_{i,l+1}` on the label channel, and its product with the scores."""
    gate = streams.gates
    channel: Any = label if gate.intake.shape[-1] > 1 else 0
    intake, decayed = gate.intake[..., channel], reach(gate.log_decay[..., channel, :])
    if decayed.shape[-1] == 1:
        G = intake * decayed[..., 0]
        return G, G * scores
    # A gate on the key axis has no single value; its mean over the axis is shown, the output uses all of it.
    weights = (decayed * streams.keys * streams.queries[..., -1:, :]).sum(-1)
    return decayed.mean(-1), weights
