"""A CSV file of your own: wines as prompts, a faulty sensor as the poison.

Three growers, 13 measured properties. Every prompt shows wines of two growers and asks about one more. In poisoned
examples the sensor for magnesium reads far too high; at test their labels are wrong, too. The file is written here from
the copy that comes with scikit-learn; yours is read the same way.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.datasets import load_wine

from iclab import GatedAttention, Run, Training, from_csv, measure_error, replace, train_many

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000


def write_wines(path: Path) -> list[str]:
    """Write the file; return the names of its columns of numbers."""
    wines = load_wine()
    table = pl.DataFrame(wines.data, schema=wines.feature_names)
    table.with_columns(grower=pl.Series(wines.target_names[wines.target])).write_csv(path)
    return list(wines.feature_names)


def main() -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        columns = write_wines(Path(folder) / "wines.csv")

        def faulty(rows: np.ndarray) -> np.ndarray:
            rows[:, columns.index("magnesium")] += 6.0
            return rows

        prompts, unseen = from_csv(Path(folder) / "wines.csv", label="grower", columns=columns, standardize=True,
                                   holdout=0.3, perturb=faulty, outlier_fraction=0.5)
    adam = Training(steps=STEPS, optimizer="adam", learning_rate=0.001)
    runs = [Run(model=GatedAttention(init_scale=0.1, member=member, normalise=member == "linear"), prompts=prompts,
                training=adam) for member in ("mamba", "linear")]
    errors: dict[str, list[float]] = {}
    for trained in train_many(runs):
        tests = [replace(unseen, label_rule="flip", outlier_fraction=fraction) for fraction in (0.0, 0.3, 0.6, 0.8)]
        rates = [measure_error(trained, test, count=2000) for test in tests]
        errors[trained.run.model.member] = [rate.error for rate in rates]
        print(f"{trained.run.model.member:8} error on rows held out, at 0, 30, 60, 80 % faulty examples:",
              "  ".join(f"{rate.error:.3f}" for rate in rates))
    return errors


if __name__ == "__main__":
    main()
