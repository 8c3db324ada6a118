"""Time per model-step of compiled programs for packs of several widths, one or several at once, on separate and on
shared batches."""

from __future__ import annotations

import time

from iclab import Run, Training, replace, train_many
from iclab.core.parallel import cores

RUN = Run(training=Training(steps=500, learning_rate=0.1, record_every=250, backend="xla"))


def timed(runs: list[Run], width: int, workers: int) -> float:
    """Microseconds per model-step, the best of three after a warm-up."""
    train_many(runs, width=width, workers=workers)
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        train_many(runs, width=width, workers=workers)
        best = min(best, time.perf_counter() - began)
    return 1e6 * best / (len(runs) * RUN.training.steps)


if __name__ == "__main__":
    separate = [RUN.seeded(seed) for seed in range(32)]
    shared = [replace(RUN, init_seed=seed) for seed in range(32)]
    print(f"{'width':>5} {'separate, 1 pack':>17} {f'separate, {cores()} packs':>18} {f'shared, {cores()} packs':>17}")
    for width in (1, 2, 4, 8, 16, 32):
        print(f"{width:5} {timed(separate, width, 1):17.1f} {timed(separate, width, cores()):18.1f} "
              f"{timed(shared, width, cores()):17.1f}", flush=True)
