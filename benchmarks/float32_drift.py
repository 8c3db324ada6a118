"""How much a run's trained weights depend on the other runs in its pack, in float32 and in float64."""

from __future__ import annotations

import jax
import numpy as np

from iclab import Run, Training, train, train_many
from iclab.papers.mamba.settings import training_prompts


def drift(steps: int) -> float:
    """Largest difference between a weight trained alone and in a pack, relative to the largest weight."""
    run = Run(prompts=training_prompts(), training=Training(steps=steps, record_every=500))
    alone = train(run)
    together = train_many([run.seeded(seed) for seed in range(4)])[0]
    pairs = zip(jax.tree.leaves(alone.params), jax.tree.leaves(together.params), strict=True)
    return max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs if a.size)


if __name__ == "__main__":
    for steps in (100, 1000, 10_000):
        with jax.enable_x64(True):
            double = drift(steps)
        print(f"{steps:6} steps: float32 {drift(steps):.1e}, float64 {double:.1e}", flush=True)
