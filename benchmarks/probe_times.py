"""Probes of one-layer models at the quick scale's settings: seconds of the first call and of the second.

    python benchmarks/probe_times.py [auto | xla] [part of a probe's name]

`auto` reads by the fused kernels where they can. The first call includes compiling; kernels are kept on disk, so set
`NUMBA_CACHE_DIR` to an empty folder to see that.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from iclab.core.spec import replace
from iclab.papers.icl import context as icl_context
from iclab.papers.icl.settings import one_layer_run as softmax_run
from iclab.papers.mamba import context, family, gate, length
from iclab.papers.mamba.settings import one_layer_run
from iclab.probes import model_errors, score_mass
from iclab.probes.by_length import context_errors
from iclab.probes.inside import gate_profiles
from iclab.training import Run, Trained
from iclab.training.sgd import begin

SEEDS = list(range(4))


def untrained(run: Run, backend: str) -> list[Trained]:
    """Models of four seeds, to be read by one backend."""
    run = replace(run, training=replace(run.training, backend=backend))
    return [Trained(r, jax.tree.map(np.asarray, begin(r).params), None, np.array([0]), np.array([1.0]))
            for r in (run.seeded(seed) for seed in SEEDS)]


def probes(backend: str) -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    mamba, linear = (untrained(one_layer_run(member, 10), backend) for member in ("mamba", "linear"))
    softmax = untrained(softmax_run(0.8, 10), backend)
    members = [untrained(replace(one_layer_run("mamba", 10), model=replace(mamba[0].run.model, member=member)), backend)
               for member in ("mamba", "mamba2_step", "linear", "retnet", "mamba2")]
    grid = icl_context.GRIDS["quick"]["softmax"]
    icl_tests = [icl_context.test_of("softmax", where, fraction, 5.0, max(grid.lengths)) for where in icl_context.WHERE
                 for fraction in grid.fractions]
    return {
        "errors (mamba)": lambda: model_errors(mamba, [gate.TEST] * 10, count=2000, seeds=SEEDS),
        "errors (icl)": lambda: model_errors(softmax, icl_tests[:6], count=2000, seeds=SEEDS),
        "score_mass": lambda: score_mass(mamba[0], gate.TEST),
        "score_mass (icl)": lambda: score_mass(softmax[0], icl_tests[0]),
        "mamba.gate": lambda: gate_profiles(mamba, gate.TEST, count=1000, seeds=SEEDS),
        "mamba.family": lambda: family.measure([m for models in members for m in models], SEEDS * len(members), 1000),
        "mamba.context, linear": lambda: context.measure(linear, SEEDS, "linear", 1000),
        "mamba.context, mamba": lambda: context.measure(mamba, SEEDS, "mamba", 1000),
        "mamba.length": lambda: length.measure(mamba * 4, SEEDS * 4, 1000),
        "icl.context": lambda: context_errors(softmax, icl_tests, grid.lengths, count=1000, seeds=SEEDS)}


def main(backend: str = "auto", chosen: str = "") -> None:
    """Measure and print."""
    for name, probe in probes(backend).items():
        if chosen in name:
            seconds = []
            for _ in range(3):
                began = time.perf_counter()
                probe()
                seconds.append(time.perf_counter() - began)
            print(f"{name:24} {backend:5} first {seconds[0]:7.2f} s, then {min(seconds[1:]):7.3f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
