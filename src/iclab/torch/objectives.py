"""The losses of `iclab.training.losses` in PyTorch, as means over a batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from iclab.core.errors import not_a, require
from iclab.prompts.labels import SIGN, VECTOR, require_answers
from iclab.training.run import Training


def _require_like(outputs: Tensor, label: Tensor) -> None:
    """Refuse outputs that PyTorch would broadcast against the labels, such as those of `Linear(k, 1)`."""
    if not isinstance(outputs, Tensor):
        raise not_a("outputs", outputs, "a tensor", "where a module returns a pair, take its first part")
    require_answers(SIGN if label.ndim <= 1 else VECTOR, tuple(outputs.shape), label, "module")


def hinge(outputs: Float[Tensor, " batch"], label: Float[Tensor, " batch"]) -> Float[Tensor, ""]:
    """`max(0, 1 - z F)`: li2025mamba, eq. 4; li2024icl, eq. 4."""
    _require_like(outputs, label)
    # At the corner `maximum` has the mean of both slopes, as in JAX; `relu` has 0.
    return torch.maximum(torch.zeros_like(outputs), 1.0 - label * outputs).mean()


def squared(outputs: Float[Tensor, "batch *answer"], label: Float[Tensor, "batch *answer"]) -> Float[Tensor, ""]:
    """`|F - z|^2 / 2`: li2024cot, eq. 3."""
    _require_like(outputs, label)
    return 0.5 * (outputs - label).square().sum() / len(outputs)


def logistic(outputs: Float[Tensor, " batch"], label: Float[Tensor, " batch"]) -> Float[Tensor, ""]:
    """`log(1 + exp(-z F))`, for labels +1 and -1."""
    _require_like(outputs, label)
    # `softplus` of PyTorch is x itself above 20.
    return torch.logaddexp(torch.zeros_like(outputs), -label * outputs).mean()


def cross_entropy(outputs: Float[Tensor, "batch classes"], label: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """`-log softmax_z(F)`, for labels 0, 1, ... and one output per class."""
    return nn.functional.cross_entropy(outputs, label)


Objective = Callable[[Tensor, Tensor], Tensor]
"""`(outputs, labels) -> mean loss` of a batch."""
OBJECTIVES: dict[str, Objective] = {"hinge": hinge, "squared": squared, "logistic": logistic,
                                    "cross_entropy": cross_entropy}


def objective(training: Training) -> Objective:
    """The loss that a training names."""
    require(training.loss in OBJECTIVES, "training.loss", training.loss,
            f"be one of {', '.join(OBJECTIVES)}; write a function of your own in PyTorch")
    return OBJECTIVES[training.loss]  # type: ignore[index]
