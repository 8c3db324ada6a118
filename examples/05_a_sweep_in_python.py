"""Ask a new question with a sweep: how strong must training outliers be before Mamba filters an attack?"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import polars as pl

from iclab import Classification, Run, Sweep, Training, phase_diagram

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000


def main() -> dict[float, float]:
    sweep = Sweep(
        base=Run(prompts=Classification(), training=Training(steps=STEPS, learning_rate=1.0)),
        test={"label_rule": "flip", "outlier_fraction": 0.6, "outlier_scale": 6.0},
        grid={"prompts.outlier_fraction": [0.0, 0.3, 0.6], "prompts.outlier_scale": [1.0, 2.0]},
        seeds=2)
    with tempfile.TemporaryDirectory() as folder:  # a permanent folder keeps the runs for the next question
        results = sweep.run(store=Path(folder) / "store")
    print(results.over_seeds().select(*results.axes, "error", "error_low", "error_high"))
    plot = phase_diagram(results, "prompts.outlier_fraction", "prompts.outlier_scale", theory="mamba")
    print(f"phase diagram: {len(plot.svg)} characters of SVG; its numbers:\n{plot.csv}")
    means = results.frame.group_by("prompts.outlier_fraction").agg(pl.col("error").mean())  # a polars data frame
    return dict(means.iter_rows())


if __name__ == "__main__":
    main()
