"""An ensemble of 16 one-layer softmax Transformers against the same training loop in eager PyTorch, interleaved.

Like iclab, the baseline draws fresh prompts every step (batched), forms W_Q^T W_K and W_O W_V once per step, omits the
label coordinates that are always 0, and takes plain SGD steps; both sides use all cores. Needs PyTorch.
Run: `python benchmarks/softmax_ensemble.py`.
"""

from __future__ import annotations

import math
import time
from statistics import median

import torch

from iclab.core.parallel import cores
from iclab.core.spec import replace
from iclab.papers.icl.settings import one_layer_run
from iclab.training import train_many

SEEDS, STEPS, ROUNDS, TORCH_STEPS = 16, 500, 5, 200


class TorchSoftmaxMLP:
    """Weights, sampler and training step of one model."""

    def __init__(self, run):
        self.spec, self.batch, self.rate = run.prompts, run.training.batch_size, run.training.learning_rate
        d, q, m, delta = run.prompts.dimension, run.model.embedding.size, run.model.neurons, run.model.init_scale
        self.q = run.model.embedding.norm
        width = d + q
        inputs = delta * torch.diag(torch.cat([torch.ones(d), torch.zeros(q)]))
        starts = (inputs, inputs, delta * torch.eye(width), torch.randn(m, width) / math.sqrt(m))
        self.weights = [start.clone().requires_grad_() for start in starts]
        self.a = torch.cat([torch.ones(m // 2), -torch.ones(m - m // 2)]) / m

    def draw(self):
        """A batch of prompts of the first cyclic family, every query pattern and label equally often."""
        spec, B = self.spec, self.batch
        tokens, m1, m2, d = spec.prompt_length + 1, spec.relevant_patterns, spec.irrelevant_patterns, spec.dimension
        number = torch.arange(B)
        query_pattern, negative = number % m1, (number // m1) % 2
        partner = (query_pattern + 1 - 2 * negative) % m1
        label = 1.0 - 2.0 * negative
        same, decisive = torch.rand(B, tokens) < 0.5, torch.rand(B, tokens) < spec.decisive_fraction
        same[:, -1], decisive[:, -1] = True, True
        # A pattern other than the query's and its partner's, which are neighbours on the circle.
        first = torch.where(negative == 0, query_pattern, partner)[:, None]
        other = (first + 2 + torch.randint(0, m1 - 2, (B, tokens))) % m1
        pattern = torch.where(decisive, torch.where(same, query_pattern[:, None], partner[:, None]), other)
        clean = torch.where(same, label[:, None], -label[:, None])
        y = torch.where(decisive, clean, 2.0 * torch.randint(0, 2, (B, tokens)) - 1.0)
        kappa = (2.0 * torch.rand(B, tokens) - 1.0) * (spec.irrelevant_scale * spec.pattern_norm)
        columns = torch.zeros(B, tokens, d + 1)
        columns.scatter_(2, pattern[..., None], spec.pattern_norm)
        columns.scatter_(2, (torch.randint(0, m2, (B, tokens)) + m1)[..., None], kappa[..., None])
        columns[..., d] = self.q * y
        columns[:, -1, d] = 0.0
        return columns, label

    def step(self):
        """One step of SGD on a fresh batch."""
        columns, label = self.draw()
        W_Q, W_K, W_V = (weight[:, :columns.shape[2]] for weight in self.weights[:3])
        W_O = self.weights[3]
        context, query = columns[:, :-1], columns[:, -1]
        logits = (context * (query @ (W_Q.T @ W_K))[:, None]).sum(-1)
        attended = (torch.softmax(logits, -1)[..., None] * context).sum(1)
        output = torch.relu(attended @ (W_O @ W_V).T) @ self.a
        loss = torch.relu(1.0 - label * output).mean()
        gradient = torch.autograd.grad(loss, self.weights)
        with torch.no_grad():
            torch._foreach_add_(self.weights, gradient, alpha=-self.rate)
        return float(loss.detach())


def main() -> None:
    torch.set_num_threads(cores())
    run = one_layer_run(0.8, STEPS)
    baseline = TorchSoftmaxMLP(run)
    ensemble = [replace(run, init_seed=seed, data_seed=seed) for seed in range(SEEDS)]

    def eager() -> float:
        began = time.perf_counter()
        for _ in range(TORCH_STEPS):
            baseline.step()
        return (time.perf_counter() - began) / TORCH_STEPS

    def ours(runs) -> float:
        began = time.perf_counter()
        train_many(runs, width=1 if len(runs) == 1 else None)
        return (time.perf_counter() - began) / (len(runs) * STEPS)

    contenders = {"eager PyTorch": eager, "iclab, one model": lambda: ours(ensemble[:1]),
                  f"iclab, ensemble of {SEEDS}": lambda: ours(ensemble)}
    for timer in contenders.values():
        timer()
    times = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, timer in contenders.items():
            times[name].append(timer())
    for name, values in times.items():
        ratio = median(a / b for a, b in zip(times["eager PyTorch"], values, strict=True))
        print(f"{name:24} {1e6 * median(values):8.0f} us per model-step   {ratio:5.1f} x eager")
    print(f"PyTorch's loss after {TORCH_STEPS * (ROUNDS + 1)} steps: {baseline.step():.3f}; {cores()} threads")


if __name__ == "__main__":
    main()
