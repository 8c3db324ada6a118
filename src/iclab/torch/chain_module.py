"""Softmax attention that reads chains, as a PyTorch module; `iclab.models.chain_attention` has the notation."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from iclab.models.chain_attention import ChainAttention, ChainParams, ChainSeen
from iclab.torch.module import PromptModule, parameter, plain


class ChainAttentionModule(PromptModule):
    """`F = sum_i W_V p~_i softmax_i(p~_i^T W p~_query)` over all columns but the query's; W_V picks the output half.

    Parameter: `W`. Reference: li2024cot, eq. 2 (with `key_positions` false) and eq. 10.
    """

    spec_type = ChainAttention
    model: ChainAttention

    def build(self, params: ChainParams) -> None:
        """The one matrix."""
        self.W = parameter(params.W)

    def weights(self) -> ChainParams:
        """The parameter as iclab keeps it."""
        return ChainParams(plain(self.W))

    def read(self, columns: Float[Tensor, "*batch columns width"]) -> tuple[Float[Tensor, "*batch dimension"],
                                                                            ChainSeen]:
        """The outputs for the queries and what led to them; columns without a step are ignored."""
        width, count = columns.shape[-1], columns.shape[-2]
        code = self.model.embedding.code(width)
        present = columns[..., code].any(-1) & (torch.arange(count, device=columns.device) < count - 1)
        query = columns[..., -1, :] @ self.W.mT
        if not self.model.key_positions:
            query = torch.where(torch.arange(width, device=columns.device) < code.start, query, 0.0)
        logits = (columns @ query.unsqueeze(-1)).squeeze(-1).masked_fill(~present, -torch.inf)
        attention = logits.softmax(-1)
        output = (attention.unsqueeze(-2) @ columns).squeeze(-2)
        return output[..., self.model.embedding.answer(width)], ChainSeen(attention.unsqueeze(-2))  # type: ignore[arg-type]
