"""What a sweep would cost, from a short measurement on this machine."""

from __future__ import annotations

import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from iclab.core.errors import IclabError
from iclab.core.parallel import default_workers
from iclab.core.spec import replace
from iclab.sweeps.measures import measure_run
from iclab.sweeps.packs import one_each, reason_of, same
from iclab.sweeps.store import Store, as_store, run_id
from iclab.sweeps.sweep import Sweep
from iclab.training import Run, train_many
from iclab.training.packing import Group, groups
from iclab.training.programs import pack_bytes

MEASURED_PROGRAMS = 6
"""At most this many programs are compiled and timed; the rest are assumed to cost their mean."""


@dataclass(frozen=True)
class Plan:
    """The estimated cost of a sweep."""

    trials: int
    trainings: int
    """Distinct runs; trials that differ only in their test share one."""
    finished: int
    """Trials already in the store."""
    packs: int
    """Packs of runs missing from the store."""
    compilations: int
    workers: int
    seconds: float
    """Estimated time for the unfinished trials."""
    compile_seconds: float
    microseconds_per_model_step: float
    pack_mebibytes: float
    """Memory of the largest pack."""
    total_mebibytes: float
    """Memory of this process and all concurrent packs."""

    def to_json(self) -> dict[str, Any]:
        """The plan as the command prints it."""
        return asdict(self)


def plan_sweep(sweep: Sweep, store: str | Path | Store | None = None, workers: int | None = None) -> Plan:
    """Count runs, packs and programs; compile and time a stretch of each program with all workers busy."""
    workers = workers or default_workers()
    trials = sweep.trials()
    opened_store = as_store(store)
    finished = {} if opened_store is None else opened_store.finished(
        {i: trial.id(sweep.measure, sweep.prompts) for i, trial in enumerate(trials)})
    waiting = [trial for i, trial in enumerate(trials) if i not in finished]
    chosen = one_each(waiting)
    trained = set() if opened_store is None else opened_store.trained_ids()
    runs = [trial.run for trial in chosen if run_id(trial.run) not in trained]
    packs = sum(-(-len(group.members) // group.size) for group in groups(runs))
    costs: list[tuple[float, float, int]] = []
    weights: list[int] = []
    for group in groups(runs):
        weights.append(sum(runs[i].training.steps for i in group.members))
        if len(costs) < MEASURED_PROGRAMS:
            try:
                costs.append(_measure([runs[i] for i in group.members], group, workers))
            except IclabError:
                raise
            except Exception as error:
                raise IclabError(f"the sweep's runs cannot be trained: {reason_of(error)}") from None
    step = sum(cost[1] for cost in costs) / len(costs) if costs else 0.0
    compiling = (sum(cost[0] for cost in costs) * len(weights) / len(costs)) if costs else 0.0
    training = sum(weight * (costs[i][1] if i < len(costs) else step) for i, weight in enumerate(weights))
    testing = len(waiting) * _test_seconds(sweep, chosen[0]) / workers if chosen else 0.0
    bytes_ = max((cost[2] for cost in costs), default=0)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Plan(len(trials), len({same(trial.run) for trial in trials}), len(finished), packs, len(weights), workers,
                compiling + training + testing, compiling, 1e6 * step, bytes_ / 2**20,
                (base + workers * bytes_) / 2**20)


def _measure(runs: list[Run], group: Group, workers: int) -> tuple[float, float, int]:
    """Seconds to compile, seconds per model-step with all workers busy, bytes per pack."""
    length = min(runs[0].training.record_every, runs[0].training.steps)
    sample = [runs[i % len(runs)] for i in range(group.size * workers)]
    short = [replace(run, training=replace(run.training, steps=length)) for run in sample]
    times = []
    for _ in range(2):
        began = time.perf_counter()
        train_many(short, width=group.width, shared=group.shared, workers=workers)
        times.append(time.perf_counter() - began)
    bytes_ = pack_bytes(sample[:group.size], group.shared)
    return max(0.0, times[0] - times[1]), times[1] / (len(short) * length), bytes_


def _test_seconds(sweep: Sweep, trial: Any) -> float:
    run = replace(trial.run, training=replace(trial.run.training, steps=1, record_every=1))
    model = train_many([run])[0]
    named = [name for name in sweep.measure if not callable(name)]
    times = []
    for _ in range(2):
        began = time.perf_counter()
        measure_run(model, [trial.test], trial.seed, named, sweep.prompts)
        times.append(time.perf_counter() - began)
    return times[1]
