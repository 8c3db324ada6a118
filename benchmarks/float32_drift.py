"""How far float32 weights drift apart: between two compiled programs of one training, and to the fused kernel.

A program for one run and a program for a pack of four add the same numbers in another order, and so does a kernel. What
training makes of such last digits is the drift; a kernel's should be no larger than that between the two programs.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from iclab import Run, Training, replace, train, train_many
from iclab.papers.cot.settings import a_run
from iclab.papers.icl.settings import one_layer_run
from iclab.papers.mamba.settings import training_prompts

SEEDS = range(4)


def runs(family: str, steps: int) -> list[Run]:
    """A run of each seed, in the settings of its paper."""
    run = {"mamba": Run(prompts=training_prompts(), training=Training(steps=steps)), "icl": one_layer_run(0.8, steps),
           "cot": a_run(steps)}[family]
    return [replace(run, training=replace(run.training, steps=steps, record_every=steps, backend="xla")).seeded(seed)
            for seed in SEEDS]


def distance(one: Any, other: Any) -> float:
    """Largest difference of a weight, relative to the largest weight of its matrix."""
    pairs = zip(jax.tree.leaves(one.params), jax.tree.leaves(other.params), strict=True)
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs if np.size(a))


def main() -> None:
    """Print the median and the largest drift over seeds."""
    for family in ("mamba", "icl", "cot"):
        for steps in (100, 1000, 10_000):
            compiled = runs(family, steps)
            alone, pack = [train(run) for run in compiled], train_many(compiled, width=len(SEEDS))
            fused = [train(replace(run, training=replace(run.training, backend="fused"))) for run in compiled]
            programs, kernel = ([distance(*pair) for pair in zip(alone, others, strict=True)]
                                for others in (pack, fused))
            print(f"{family:6} {steps:6} steps: two programs {np.median(programs):.1e} (largest {max(programs):.1e}), "
                  f"kernel and program {np.median(kernel):.1e} (largest {max(kernel):.1e})", flush=True)


if __name__ == "__main__":
    main()
