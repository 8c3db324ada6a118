"""Training of the cot paper's Transformer by the fused kernel, against XLA and against eager PyTorch, interleaved.

Like iclab, the baseline draws fresh prompts every step (batched), asks for every query pattern at every step equally
often, trains W_K^T W_Q as one matrix and takes plain SGD steps. All sides use all cores: the kernel trains a pack per
core. Needs PyTorch. Run: `python benchmarks/chain_training.py`.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import jax
import numpy as np
import torch
from torch.nn.functional import one_hot

from iclab.core.parallel import cores
from iclab.core.spec import replace
from iclab.kernels.chain_pack import ChainPack
from iclab.papers.cot.settings import a_run
from iclab.training import train_many
from iclab.training.sgd import begin, step_keys

SEEDS, STEPS, ROUNDS, TORCH_STEPS = 16, 400, 5, 200


class TorchChainAttention:
    """Weights, sampler and training step of one model."""

    def __init__(self, run):
        self.spec, self.batch, self.rate = run.prompts, run.training.batch_size, run.training.learning_rate
        width = 2 * run.prompts.dimension + run.prompts.reasoning_steps
        self.W = (run.model.init_scale * torch.randn(width, width)).requires_grad_()

    def draw(self):
        """Columns of a batch, which of them are there, the queries' columns and the right answers."""
        spec, B = self.spec, self.batch
        M, K, E, d = spec.patterns, spec.reasoning_steps, spec.prompt_length, spec.dimension
        cell = torch.arange(B) * (M * K) // B
        wanted, asked = cell % M, cell // M
        # Row 0 of the places is the query's chain, which starts at place 0.
        start = torch.where(torch.rand(B, E) < spec.matching_fraction, 0, torch.randint(1, M, (B, E)))
        start = torch.cat([torch.zeros(B, 1, dtype=torch.long), start], dim=1)
        moved = torch.arange(K + 1).cumsum(0)
        places = (start[:, :, None] + moved) % M
        order = torch.rand(B, M).argsort(dim=1)
        turn = wanted - order.gather(1, (moved[asked] % M)[:, None])[:, 0]
        chains = ((order + turn[:, None]) % M).gather(1, places.view(B, -1)).view(places.shape)
        x, y = (one_hot(part, d).float() for part in (chains[:, :, :-1], chains[:, :, 1:]))
        code = torch.eye(K).expand(B, E + 1, K, K)
        columns = torch.cat([x, y, code], dim=3).view(B, (E + 1) * K, -1)
        present = torch.ones(B, (E + 1) * K, dtype=torch.bool)
        present[:, :K] = torch.arange(K) < asked[:, None]
        query, label = (one_hot(chains[torch.arange(B), 0, asked + more], d).float() for more in (0, 1))
        return columns, present, torch.cat([query, torch.zeros(B, d), torch.eye(K)[asked]], dim=1), label

    def step(self):
        """One step of SGD on a fresh batch."""
        columns, present, query, label = self.draw()
        d = label.shape[1]
        scores = (columns @ (query @ self.W.T)[:, :, None])[..., 0]
        attention = torch.softmax(scores.masked_fill(~present, -torch.inf), dim=1)
        output = (attention[:, None] @ columns[..., d:2 * d])[:, 0]
        loss = 0.5 * ((output - label) ** 2).sum(dim=1).mean()
        gradient, = torch.autograd.grad(loss, [self.W])
        with torch.no_grad():
            self.W -= self.rate * gradient
        return float(loss.detach())


def kernel(runs) -> float:
    """Seconds per model-step of the fused kernel, a share of the runs on each core; also its last losses."""
    shares = [runs[i::cores()] for i in range(min(cores(), len(runs)))]
    packs = [ChainPack(share, [jax.tree.map(np.asarray, begin(run).params) for run in share], shared=False)
             for share in shares]
    began = time.perf_counter()
    with ThreadPoolExecutor(len(packs)) as pool:
        list(pool.map(lambda pack, share: pack.advance(step_keys([run.data_seed for run in share], 0, STEPS)),
                      packs, shares))
    return (time.perf_counter() - began) / (len(runs) * STEPS)


def xla(runs) -> float:
    """Seconds per model-step of XLA's programs."""
    began = time.perf_counter()
    train_many(runs, width=1 if len(runs) == 1 else None)
    return (time.perf_counter() - began) / (len(runs) * STEPS)


def main() -> None:
    torch.set_num_threads(cores())
    run = a_run(STEPS, record_every=STEPS)
    run = replace(run, training=replace(run.training, backend="xla"))
    baseline = TorchChainAttention(run)
    ensemble = [run.seeded(seed) for seed in range(SEEDS)]

    def eager() -> float:
        began = time.perf_counter()
        for _ in range(TORCH_STEPS):
            baseline.step()
        return (time.perf_counter() - began) / TORCH_STEPS

    contenders = {"eager PyTorch": eager, "XLA, one model": lambda: xla(ensemble[:1]),
                  f"XLA, ensemble of {SEEDS}": lambda: xla(ensemble), "kernel, one model": lambda: kernel(ensemble[:1]),
                  f"kernel, ensemble of {SEEDS}": lambda: kernel(ensemble)}
    for timer in contenders.values():
        timer()
    times = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, timer in contenders.items():
            times[name].append(timer())
    for name, values in times.items():
        ratio = median(a / b for a, b in zip(times["eager PyTorch"], values, strict=True))
        print(f"{name:24} {1e6 * median(values):8.1f} us per model-step   {ratio:6.1f} x eager")
    trained = train_many(ensemble[:1])[0]
    print(f"losses: PyTorch {baseline.step():.4f} after {TORCH_STEPS * (ROUNDS + 1)} steps, iclab "
          f"{float(trained.loss[-1]):.4f} on average over the first {STEPS}; {cores()} threads")


if __name__ == "__main__":
    main()
