"""Time a model-step of the same one-layer Mamba in iclab, eager PyTorch and `torch.compile`, interleaved."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp

from iclab.core.errors import IclabError
from iclab.core.parallel import cores
from iclab.core.spec import replace
from iclab.models import GatedAttention
from iclab.papers.mamba.settings import training_prompts
from iclab.training import Run, Training, train_many

ENSEMBLE = 32
BATCH = 128
RATE = 0.1
STEPS = 1000
"""Steps per timed iclab training."""
TORCH_STEPS = 200
"""Steps per timed PyTorch training."""


def compare(rounds: int = 5, say: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """Times in microseconds per model-step, speedups, and the share of the machine's matrix-multiply peak."""
    try:
        import torch
    except ImportError:
        raise IclabError("bench needs PyTorch: pip install '.[torch]' in a clone of iclab") from None
    from iclab.bench.torch_mamba import TorchMamba

    torch.set_num_threads(cores())
    prompts = training_prompts()
    baseline = TorchMamba(torch, prompts, BATCH, RATE)
    compiled = TorchMamba(torch, prompts, BATCH, RATE).compiled_step()
    run = Run(model=GatedAttention(), prompts=prompts,
              training=Training(steps=STEPS, batch_size=BATCH, learning_rate=RATE, record_every=500))
    contenders = {
        "eager": _torch_timer(baseline.step, TORCH_STEPS),
        "compile": _torch_timer(compiled, TORCH_STEPS),
        "single": _train_timer([run]),
        "independent_32": _train_timer([run.seeded(seed) for seed in range(ENSEMBLE)]),
        "shared_32": _train_timer([replace(run, init_seed=seed) for seed in range(ENSEMBLE)]),
    }
    for name, timer in contenders.items():
        say(f"warming up {name}")
        timer()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    peaks = []
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        for name, timer in contenders.items():
            times[name].append(timer())
        peaks.append(_matmul_peak())
    ours = ("single", "independent_32", "shared_32")
    seconds = {name: median(values) for name, values in times.items()}

    def ratio(reference: str) -> dict[str, float]:
        # Ratios within a round, then their median: a slow spell of the machine hits both sides.
        return {name: round(median(a / b for a, b in zip(times[reference], times[name], strict=True)), 2)
                for name in ours}

    flops = model_step_flops(prompts.dimension + 1, prompts.prompt_length + 1, BATCH)
    return {
        "microseconds_per_model_step": {name: round(1e6 * value, 1) for name, value in seconds.items()},
        "speedup_vs_eager": ratio("eager"),
        "speedup_vs_compile": ratio("compile"),
        "peak_share": {name: round(flops / seconds[name] / median(peaks), 4) for name in ours},
        "peak_gflops": round(median(peaks) / 1e9, 1),
        "threads": cores(),
        "rounds": rounds,
    }


def model_step_flops(width: int, tokens: int, batch: int) -> int:
    """Multiplications and additions in the products of one step: logits, scores, their gradients, W_B^T W_C."""
    passes_over_prompt = 4 * batch * tokens * width
    per_query = 3 * batch * width * width
    weights = 3 * width**3
    return 2 * (passes_over_prompt + per_query + weights)


def _torch_timer(step: Callable[[], Any], steps: int) -> Callable[[], float]:
    def timer() -> float:
        step()
        began = time.perf_counter()
        for _ in range(steps):
            step()
        return (time.perf_counter() - began) / steps

    return timer


def _train_timer(runs: list[Run]) -> Callable[[], float]:
    def timer() -> float:
        began = time.perf_counter()
        train_many(runs, width=1 if len(runs) == 1 else None)
        return (time.perf_counter() - began) / (len(runs) * runs[0].training.steps)

    return timer


def _matmul_peak(size: int = 1024) -> float:
    """Floating-point operations per second of a large matrix product."""
    a = jnp.ones((size, size))
    product = jax.jit(jnp.matmul)
    product(a, a).block_until_ready()
    best = min(_timed(lambda: product(a, a).block_until_ready()) for _ in range(5))
    return 2 * size**3 / best


def _timed(function: Callable[[], Any]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began
