"""Your own model: any callable on NumPy arrays works with the same attacks and probes. Here, a PyTorch module.

Trained with outliers, softmax attention learns to look away from them: its weights, unlike those of linear attention,
can ignore an example. Needs the torch extra.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

from iclab import Classification, Prompt, measure_error, replace

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 300


class Attention(torch.nn.Module):
    """Softmax attention of the query over the context; its score is the mean label it attends to."""

    def __init__(self, dimension: int):
        super().__init__()
        self.key = torch.nn.Linear(dimension, dimension, bias=False)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        scores = torch.einsum("bid,bd->bi", self.key(x[:, :-1]), x[:, -1])
        return (torch.softmax(scores, dim=1) * y[:, :-1]).sum(1)


def main() -> list[float]:
    torch.manual_seed(0)
    prompts = Classification(outlier_fraction=0.3)
    model = Attention(prompts.dimension)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(STEPS):
        batch = prompts.sample(step, 128).numpy()
        x, y, label = (torch.tensor(np.array(part)) for part in (batch.x, batch.y, batch.label))
        loss = torch.relu(1.0 - label * model(x, y)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def predictor(batch: Prompt) -> np.ndarray:
        with torch.no_grad():
            return model(torch.tensor(np.array(batch.x)), torch.tensor(np.array(batch.y))).numpy()

    errors = []
    for fraction in (0.0, 0.3, 0.6):
        rate = measure_error(predictor, replace(prompts, outlier_fraction=fraction, label_rule="flip"), count=2000)
        print(f"{fraction:.0%} of the examples flipped: error {rate.error:.3f} [{rate.low:.3f}, {rate.high:.3f}]")
        errors.append(rate.error)
    return errors


if __name__ == "__main__":
    main()
