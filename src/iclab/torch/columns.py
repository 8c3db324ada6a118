"""The embeddings of `iclab.models.embedding` in PyTorch: modules without weights, for one prompt or a batch."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from iclab.core.errors import SpecError, require
from iclab.models.embedding import ChainEmbedding, LabelEmbedding, VectorEmbedding


class LabelColumns(nn.Module):
    """Columns `p_i = (x_i, y_i q)`, q along the first label coordinate."""

    def __init__(self, embedding: LabelEmbedding):
        super().__init__()
        self.size, self.norm = embedding.size, embedding.norm

    def forward(self, x: Float[Tensor, "*batch tokens dimension"], y: Float[Tensor, "*batch tokens"],
                step: None = None) -> Float[Tensor, "*batch tokens width"]:
        """The prompts as the model reads them."""
        labels = nn.functional.pad((y * self.norm).unsqueeze(-1), (0, self.size - 1))
        return torch.cat([x, labels], dim=-1)


class VectorColumns(nn.Module):
    """Columns `p_i = (x_i, |q| y_i)`, for labels that are vectors or one-hot rows."""

    def __init__(self, embedding: VectorEmbedding):
        super().__init__()
        self.norm = embedding.norm

    def forward(self, x: Float[Tensor, "*batch tokens dimension"], y: Float[Tensor, "*batch tokens size"],
                step: None = None) -> Float[Tensor, "*batch tokens width"]:
        """The prompts as the model reads them."""
        return torch.cat([x, y * self.norm], dim=-1)


class ChainColumns(nn.Module):
    """Columns `(x; y; c_k)`, c_k the code of step k; a column of step -1 has none."""

    def __init__(self, embedding: ChainEmbedding):
        super().__init__()
        self.steps, self.norm = embedding.steps, embedding.norm

    def forward(self, x: Float[Tensor, "*batch columns dimension"], y: Float[Tensor, "*batch columns dimension"],
                step: Int[Tensor, "*batch columns"] | None = None) -> Float[Tensor, "*batch columns width"]:
        """The prompts as the model reads them."""
        if step is None:
            raise SpecError("step must be given for chains, got None; call module(x, y, step) or module(*batch.inputs)")
        code = step.unsqueeze(-1) == torch.arange(self.steps, device=step.device)
        return torch.cat([x, y, self.norm * code.to(x.dtype)], dim=-1)


COLUMNS: dict[type, type[nn.Module]] = {LabelEmbedding: LabelColumns, VectorEmbedding: VectorColumns,
                                        ChainEmbedding: ChainColumns}


def columns_module(embedding: LabelEmbedding | VectorEmbedding | ChainEmbedding) -> nn.Module:
    """The module that makes an embedding's columns."""
    require(type(embedding) in COLUMNS, "model.embedding", type(embedding).__name__,
            f"be one of {', '.join(cls.__name__ for cls in COLUMNS)} to be written in PyTorch")
    return COLUMNS[type(embedding)](embedding)
