"""1,000 trainings of a phase diagram, against a loop of eager PyTorch runs extrapolated from a sample.

The sweep of examples/04_phase_diagram.toml starts from an empty store; its time includes compilation, measurement and
writing. Before and after it, some of the same trainings run for a few steps each in eager PyTorch (same sampler, same
maths, all cores), from which the time of all 1,000 in sequence is extrapolated.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from iclab.bench.torch_mamba import TorchMamba
from iclab.core.parallel import cores
from iclab.sweeps.engines import run_sweep
from iclab.sweeps.sweep_file import read_sweep

FILE = Path(__file__).parent.parent / "examples" / "04_phase_diagram.toml"
TORCH_STEPS = 300


def eager_seconds_per_step(run: Any) -> float:
    """Seconds per step of an eager run, averaged over TORCH_STEPS steps."""
    baseline = TorchMamba(torch, run.prompts, run.training.batch_size, run.training.learning_rate,
                          gated=run.model.member == "mamba")
    baseline.step()
    began = time.perf_counter()
    for _ in range(TORCH_STEPS):
        baseline.step()
    return (time.perf_counter() - began) / TORCH_STEPS


def main() -> None:
    """Time both and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10, help="eager runs sampled, half of each model")
    options = parser.parse_args()
    torch.set_num_threads(cores())
    sweep, _ = read_sweep(FILE)
    trials = sweep.trials()
    half = len(trials) // 2
    eager: dict[str, list[float]] = {"mamba": [], "linear": []}

    def sample(count: int) -> None:
        for i in range(count):
            for start in (0, half):  # one of each model
                run = trials[start + (37 * (i + len(eager["mamba"]))) % half].run
                eager[run.model.member].append(eager_seconds_per_step(run))

    sample(options.samples // 4 or 1)
    with tempfile.TemporaryDirectory() as store:
        began = time.perf_counter()
        results = run_sweep(sweep, store=store)
        seconds = time.perf_counter() - began
    sample(options.samples // 2 - len(eager["mamba"]) or 1)
    steps = sum(trial.run.training.steps for trial in trials)
    loop = sum(median(eager[trial.run.model.member]) * trial.run.training.steps for trial in trials)
    spread = " ".join(f"{name} {1e3 * min(t):.2f}-{1e3 * max(t):.2f}" for name, t in eager.items())
    print(f"iclab: {len(trials)} trainings, {results.counts}, {seconds:.0f} s "
          f"({1e6 * seconds / steps:.0f} us per model-step, everything included)")
    print(f"eager PyTorch: {loop:.0f} s extrapolated from {sum(map(len, eager.values()))} runs, {cores()} threads "
          f"(ms per step: {spread}); training alone, without measuring")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"ratio {loop / seconds:.1f}; peak memory {peak:.0f} MiB")


if __name__ == "__main__":
    main()
