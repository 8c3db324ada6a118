"""A plain PyTorch loop on iclab's prompts trains the paper's Mamba and a module of your own; one attack measures both.

Mamba starts from iclab's weights, so the loop leads where `iclab.train` does. Needs the torch extra.
"""

from __future__ import annotations

import sys

import torch

from iclab import Classification, Run, Training, measure_error, replace
from iclab.torch import PromptDataset, from_torch, hinge, predictor, prompt_loader, to_torch

torch.set_num_threads(1)  # these models are too small for more
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000


class Reader(torch.nn.Module):
    """Your own module: `(x, y)` of a batch of prompts in, one score per prompt out. The last token is the query."""

    def __init__(self, dimension: int, size: int = 32):
        super().__init__()
        self.embed, self.score = torch.nn.Linear(dimension + 1, size), torch.nn.Linear(size, 1)
        self.attention = torch.nn.MultiheadAttention(size, num_heads=2, batch_first=True)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        tokens = self.embed(torch.cat([x, y[..., None]], dim=-1))
        read, _ = self.attention(tokens[:, -1:], tokens[:, :-1], tokens[:, :-1])
        return self.score(torch.relu(read)).flatten()


def fit(module: torch.nn.Module, run: Run, optimizer: torch.optim.Optimizer) -> list[float]:
    losses = []
    for batch in prompt_loader(PromptDataset.of(run)):
        optimizer.zero_grad()
        loss = hinge(module(*batch.inputs), batch.label)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> dict[str, float]:
    torch.manual_seed(0)
    prompts = Classification(outlier_fraction=0.6)
    run = Run(prompts=prompts, training=Training(steps=STEPS, learning_rate=1.0))  # the default model: Mamba
    mamba, own = to_torch(run), Reader(prompts.dimension)
    losses = fit(mamba, run, torch.optim.SGD(mamba.parameters(), lr=1.0))
    fit(own, run, torch.optim.Adam(own.parameters(), lr=1e-3))
    attack = replace(prompts, label_rule="flip", outlier_scale=6.0)
    errors = {"mamba": measure_error(from_torch(mamba, losses=losses), attack).error,
              "own": measure_error(predictor(own), attack).error}
    print("error with 60 % of the labels flipped:", errors)
    return errors


if __name__ == "__main__":
    main()
