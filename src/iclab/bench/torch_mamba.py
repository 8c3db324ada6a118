"""The baseline: one-layer Mamba (or linear Transformer) trained in PyTorch, written as its users would write it.

Batched, fresh prompts from the same distribution every step, the same maths (W_B^T W_C formed once), plain SGD.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


class TorchMamba:
    """Weights, sampler and training step of one model."""

    def __init__(self, torch: Any, prompts: Any, batch: int, learning_rate: float, gated: bool = True):
        self.torch, self.spec, self.batch, self.rate, self.gated = torch, prompts, batch, learning_rate, gated
        width = prompts.dimension + 1
        start = 0.2 * torch.eye(width)
        start[-1, -1] = 0.0
        self.W_B, self.W_C = start.clone().requires_grad_(), start.clone().requires_grad_()
        self.w = (torch.randn(width) / math.sqrt(width)).requires_grad_()
        self.weights = (self.W_B, self.W_C, self.w) if gated else (self.W_B, self.W_C)
        self.before = torch.tril(torch.ones(prompts.prompt_length + 1, prompts.prompt_length + 1), -1)

    def draw(self) -> tuple[Any, Any]:
        """A batch of prompts in which every query pattern and label occurs equally often."""
        torch, spec, B = self.torch, self.spec, self.batch
        tokens, m1, m2 = spec.prompt_length + 1, spec.relevant_patterns, spec.irrelevant_patterns
        index = torch.arange(B)
        query_pattern, negative = index % m1, (index // m1) % 2
        shift = torch.randint(1, m1, (B,))
        partner = (query_pattern + torch.where(negative == 0, shift, -shift)) % m1
        label = 1.0 - 2.0 * negative
        same = torch.rand(B, tokens) < 0.5
        outlier = torch.rand(B, tokens) < spec.outlier_fraction
        same[:, -1], outlier[:, -1] = True, False
        pattern = torch.where(same, query_pattern[:, None], partner[:, None])
        clean = torch.where(same, label[:, None], -label[:, None])
        y = torch.where(outlier, 2.0 * torch.randint(0, 2, (B, tokens)) - 1.0, clean)
        y[:, -1] = 0.0
        kappa = (2.0 * torch.rand(B, tokens) - 1.0) * (spec.irrelevant_scale * spec.pattern_norm)
        irrelevant = torch.randint(0, m2, (B, tokens)) + m1
        direction = torch.randint(0, spec.outlier_patterns, (B, tokens)) + m1 + m2
        columns = torch.zeros(B, tokens, spec.dimension + 1)
        columns.scatter_(2, pattern[..., None], spec.pattern_norm)
        columns.scatter_(2, irrelevant[..., None], kappa[..., None])
        columns.scatter_(2, direction[..., None], (spec.outlier_scale * outlier)[..., None])
        columns[..., -1] = y
        return columns, label

    def loss(self, columns: Any, label: Any) -> Any:
        """Hinge loss of `sum_i G_i y_i p_i^T W_B^T W_C p_query`."""
        torch = self.torch
        query = columns[:, -1] @ (self.W_C.T @ self.W_B)
        values = columns[..., -1] * (columns * query[:, None]).sum(-1)
        if self.gated:
            logits = columns @ self.w
            values = values * torch.sigmoid(logits) * torch.exp(
                torch.nn.functional.logsigmoid(-logits) @ self.before)
        output = values.sum(-1)
        return torch.relu(1.0 - label * output).mean()

    def step(self, loss: Callable[..., Any] | None = None) -> None:
        """One step of SGD on a fresh batch."""
        torch, weights = self.torch, self.weights
        gradient = torch.autograd.grad((loss or self.loss)(*self.draw()), weights)
        with torch.no_grad():
            torch._foreach_add_(list(weights), gradient, alpha=-self.rate)

    def compiled_step(self) -> Callable[[], None]:
        """The same step with the sampler and the loss compiled."""
        draw, loss = self.torch.compile(self.draw), self.torch.compile(self.loss)

        def step() -> None:
            gradient = self.torch.autograd.grad(loss(*draw()), self.weights)
            with self.torch.no_grad():
                self.torch._foreach_add_(list(self.weights), gradient, alpha=-self.rate)

        return step
