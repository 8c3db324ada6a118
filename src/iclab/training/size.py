"""How much memory a training takes, computed from its spec alone."""

from __future__ import annotations

from iclab.core.limits import require_memory, size_words
from iclab.models.protocol import CountsWeights, HoldsScores, Model
from iclab.prompts.prompt import NUMBER
from iclab.training.run import Run

COPIES = 3
"""Of weights: themselves, gradient, update. Of batches: the current, the next, and what the gradient stores."""


def weight_bytes(model: Model, dimension: int) -> int:
    """Bytes of the weights; 0 for a model that does not tell how many it has."""
    return NUMBER * model.weight_count(dimension) if isinstance(model, CountsWeights) else 0


def batch_bytes(run: Run) -> int:
    """Bytes of a batch of prompts, and of the scores between its tokens where a model holds them."""
    prompt = run.prompts.prompt_bytes()
    if isinstance(run.model, HoldsScores):
        prompt += NUMBER * run.model.score_count(run.prompts.prompt_length + 1)
    return run.training.batch_size * prompt


def check_size(run: Run) -> None:
    """Refuse a training that does not fit into memory."""
    weights, batch = weight_bytes(run.model, run.prompts.dimension), batch_bytes(run)
    require_memory("batch_size, prompt_length, dimension and the sizes of the model",
                   f"training (a batch of {size_words(batch)}, weights of {size_words(weights)}, {COPIES} times each)",
                   COPIES * (weights + batch))
