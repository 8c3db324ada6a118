"""How long it takes to read the results of a store with many packs: one by one, in parallel, and merged.

    python benchmarks/store_reading.py [PACKS]
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

from iclab import Store
from iclab.sweeps.results import stored_results
from iclab.sweeps.storage import digest


def write_packs(folder: Path, packs: int) -> None:
    """Write `packs` result files of one row each, as often-killed processes would leave them."""
    folder.mkdir()
    for number in range(packs):
        fields = {f"prompts.field_{i}": i for i in range(40)} | {"prompts.outlier_scale": number}
        row = {"trial": f"{number:024x}", "run": "r" * 24, "sweep": "s", "seed": 0, "status": "trained", "reason": "",
               "error": 0.5, "hinge": 0.1, "loss": 0.2, "floor": 0.01, "test_prompts": 500,
               "fields": json.dumps(fields), "seconds": 1.0, "started": 1.0, "finished": 2.0}
        buffer = io.BytesIO()
        pl.DataFrame([row]).write_parquet(buffer)
        content = buffer.getvalue()
        (folder / f"{row['trial']}-{digest(content)}.parquet").write_bytes(content)


def timed(function) -> float:
    """The duration of a call in seconds."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


if __name__ == "__main__":
    packs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as place:
        write_packs(Path(place) / "results", packs)
        one_by_one = timed(lambda: [pl.read_parquet(file) for file in Path(place, "results").iterdir()])
        first = timed(lambda: stored_results(place))
        merging = timed(Store(place).tidy)
        merged = timed(lambda: stored_results(place))
    print(f"{packs} packs: parsed one by one {one_by_one:.2f} s; read in parallel {first:.2f} s; merged in "
          f"{merging:.2f} s; read after merging {merged:.2f} s")
