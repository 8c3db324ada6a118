"""How the cost of a sweep grows from 100 to 1,000 runs: seconds per run and peak memory, each in a separate process."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time

from iclab import Classification, Run, Sweep, Training

COUNTS = (100, 200, 500, 1000)


def measure(count: int) -> None:
    """Run one sweep and print its time and memory."""
    base = Run(prompts=Classification(tasks="cyclic:5"),
               training=Training(steps=500, record_every=250))
    sweep = Sweep(base=base, test={"label_rule": "flip"}, seeds=5,
                  grid={"prompts.outlier_fraction": [0.9 * i * 5 / count for i in range(count // 5)]}, prompts=2000)
    Sweep(base=base, test={"label_rule": "flip"}, seeds=8, prompts=2000).run()  # compile first
    with tempfile.TemporaryDirectory() as store:
        began = time.perf_counter()
        sweep.run(store=store, memory=64 * 2**20)
        seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count:6} runs {seconds:8.1f} s {1e3 * seconds / count:8.1f} ms per run {peak:8.0f} MiB", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(int(sys.argv[1]))
    else:
        for number in COUNTS:
            subprocess.run([sys.executable, __file__, str(number)], check=True)
