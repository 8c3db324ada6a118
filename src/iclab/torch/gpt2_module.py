"""GPT-2 on continuous prompts as a PyTorch module made of PyTorch's own layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from iclab.core.errors import require
from iclab.models.gpt2 import GPT2, Block, GPT2Params, GPT2Seen
from iclab.models.stack import Affine
from iclab.torch.module import PromptModule, as_numpy, parameter, plain


def linear(affine: Affine) -> nn.Linear:
    """`x W + b` as a `Linear`, which keeps W transposed."""
    inputs, outputs = affine.W.shape
    layer = nn.Linear(inputs, outputs)
    layer.weight, layer.bias = parameter(affine.W.T), parameter(affine.b)
    return layer


def norm(affine: Affine) -> nn.LayerNorm:
    """Scale (kept as a row) and shift as a `LayerNorm`."""
    layer = nn.LayerNorm(affine.b.shape[0])
    layer.weight, layer.bias = parameter(affine.W[0]), parameter(affine.b)
    return layer


def affine(layer: nn.Linear | nn.LayerNorm) -> Affine:
    """A layer as iclab keeps it."""
    weight = plain(layer.weight)
    return Affine(weight.T.copy() if weight.ndim == 2 else weight[None], plain(layer.bias))


class GPT2Block(nn.Module):
    """One layer: `h + attention(norm1(h))`, then `h + MLP(norm2(h))`."""

    def __init__(self, block: Block, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = norm(block.norm1), norm(block.norm2)
        self.qkv, self.out, self.up, self.down = map(linear, (block.qkv, block.out, block.up, block.down))

    def forward(self, h: Float[Tensor, "*batch tokens size"]
                ) -> tuple[Float[Tensor, "*batch tokens size"], Float[Tensor, "*batch tokens"],
                           Float[Tensor, "*batch neurons"]]:
        """The stream after the layer, and attention (mean over heads) and neurons seen from the query."""
        tokens, size = h.shape[-2:]
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(-2, -3)
                   for part in self.qkv(self.norm1(h)).chunk(3, dim=-1))
        logits = q @ k.mT / (size // self.heads) ** 0.5
        causal = torch.ones(tokens, tokens, dtype=torch.bool, device=h.device).tril()
        weights = logits.masked_fill(~causal, -torch.inf).softmax(-1)
        h = h + self.out((weights @ v).transpose(-2, -3).flatten(-2))
        neurons = self.up(self.norm2(h))
        h = h + self.down(nn.functional.gelu(neurons, approximate="tanh"))
        return h, weights[..., -1, :].mean(-2), neurons[..., -1, :]

    def weights(self) -> Block:
        """The parameters as iclab keeps them."""
        parts: Any = self.norm1, self.qkv, self.out, self.norm2, self.up, self.down
        return Block(*map(affine, parts))


class GPT2Module(PromptModule):
    """A small GPT-2 (li2024icl, section 5); positions are counted back from the query.

    Modules: `read_in`, `blocks[n].{norm1,qkv,out,norm2,up,down}`, `norm`, `read_out`; parameter: `positions`.
    """

    spec_type = GPT2
    model: GPT2

    def build(self, params: GPT2Params) -> None:
        """PyTorch's `Linear` and `LayerNorm`, and the table of positions."""
        params = as_numpy(params)
        self.read_in, self.read_out, self.norm = linear(params.read_in), linear(params.read_out), norm(params.norm)
        self.positions = parameter(params.positions)
        blocks = [Block(*(Affine(part.W[n], part.b[n]) for part in params.blocks)) for n in range(self.model.layers)]
        self.blocks = nn.ModuleList(GPT2Block(block, self.model.heads) for block in blocks)

    def weights(self) -> GPT2Params:
        """The parameters as iclab keeps them, the layers stacked."""
        blocks: Any = [block.weights() for block in self.blocks]  # type: ignore[operator]
        stacked = Block(*(Affine(*(np.stack(leaves) for leaves in zip(*parts, strict=True)))  # type: ignore[arg-type]
                          for parts in zip(*blocks, strict=True)))
        return GPT2Params(affine(self.read_in), plain(self.positions), stacked, affine(self.norm),
                          affine(self.read_out))

    def read(self, columns: Float[Tensor, "*batch tokens width"]) -> tuple[Float[Tensor, "*batch"], GPT2Seen]:
        """The outputs for the queries and what led to them."""
        tokens, positions = columns.shape[-2], self.model.positions
        require(tokens <= positions, "prompt_length", tokens - 1, f"be below positions = {positions}")
        h = self.read_in(columns) + self.positions[positions - tokens:]
        seen: list[Any] = []
        for block in self.blocks:
            h, scores, hidden = block(h)
            seen.append((scores, hidden))
        output = self.read_out(self.norm(h[..., -1, :])).squeeze(-1)
        shown: Any = (torch.stack(parts, dim=-2) for parts in zip(*seen, strict=True))
        return output, GPT2Seen(*shown)
