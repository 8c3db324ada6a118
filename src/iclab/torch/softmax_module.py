"""Softmax attention with a ReLU MLP as a PyTorch module; `iclab.models.softmax_mlp` has the notation."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from iclab.models.softmax_mlp import SoftmaxMLP, SoftmaxParams, SoftmaxSeen
from iclab.torch.module import PromptModule, parameter, plain


class SoftmaxMLPModule(PromptModule):
    """`F = a^T relu(W_O sum_{i<=l} W_V p_i softmax_i((W_K p_i)^T W_Q p_query))`, a fixed.

    Parameters: `W_Q`, `W_K`, `W_V`, `W_O`; the buffer `a` is 1/m on one half of the neurons and -1/m on the other.
    Reference: li2024icl, eq. 2.
    """

    spec_type = SoftmaxMLP
    model: SoftmaxMLP
    a: Tensor

    def build(self, params: SoftmaxParams) -> None:
        """The four matrices and the fixed second layer."""
        self.W_Q, self.W_K, self.W_V, self.W_O = (parameter(weights) for weights in params)
        m = self.model.neurons
        signs = torch.where(torch.arange(m) < m // 2, 1.0, -1.0).to(self.W_O.dtype)
        self.register_buffer("a", signs / m, persistent=False)

    def weights(self) -> SoftmaxParams:
        """The parameters as iclab keeps them."""
        return SoftmaxParams(*map(plain, (self.W_Q, self.W_K, self.W_V, self.W_O)))

    def read(self, columns: Float[Tensor, "*batch tokens width"]) -> tuple[Float[Tensor, "*batch"], SoftmaxSeen]:
        """The outputs for the queries and what led to them."""
        context, query = columns[..., :-1, :], columns[..., -1, :]
        asked = query @ (self.W_Q.mT @ self.W_K)
        attention = (context @ asked.unsqueeze(-1)).squeeze(-1).softmax(-1)
        mixed = (attention.unsqueeze(-2) @ context).squeeze(-2)
        hidden = mixed @ (self.W_O @ self.W_V).mT
        output = hidden.relu() @ self.a
        shown = nn.functional.pad(attention, (0, 1)).unsqueeze(-2)
        return output, SoftmaxSeen(shown, hidden)  # type: ignore[arg-type]
