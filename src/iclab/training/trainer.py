"""Many runs, few programs: runs that differ only in numbers are stacked and trained together.

Packs of runs (`iclab.training.packing`) are trained in threads, one per core. Where there are several devices, each
trains its share of a pack.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import jax
import numpy as np

from iclab.core.errors import IclabError, SpecError, not_a, require
from iclab.core.identity import canonical
from iclab.core.parallel import default_workers, each
from iclab.core.spec import replace
from iclab.training.callbacks import Callback, Followers
from iclab.training.packing import Pack, best_width, by_structure, cut_packs, shares_data
from iclab.training.program import Interrupted
from iclab.training.programs import pack_program
from iclab.training.records import Snapshot
from iclab.training.run import Run
from iclab.training.sgd import Probe
from iclab.training.size import check_size
from iclab.training.traced import check_model
from iclab.training.trained import Trained

__all__ = ["Interrupted", "MemoryLimit", "Progress", "Recorded", "train", "train_many"]

Progress = Callable[[int, int], None]
"""`(steps done, steps in all)`, over all runs."""
Recorded = Callable[[int, Callable[[], Trained]], None]
"""`(index, make)`: called at each record of a run; `make()` returns the run as it is then, to be saved."""


def train(run: Run, *, start: Trained | None = None, probe: Probe | None = None, progress: Progress | None = None,
          recorded: Recorded | None = None, callbacks: Sequence[Callback] = ()) -> Trained:
    """Train one model, from the beginning or from where `start` (the same run, stopped earlier) ended.

    `callbacks` follow the training as it happens.
    """
    _require_run(run, "train_many takes a list of runs" if isinstance(run, (list, tuple)) else "")
    return train_many([run], starts=[start], probe=probe, progress=progress, recorded=recorded, callbacks=callbacks,
                      width=1)[0]


def train_many(runs: Sequence[Run], *, starts: Sequence[Trained | None] | None = None, probe: Probe | None = None,
               progress: Progress | None = None, finished: Callable[[int, Trained], None] | None = None,
               recorded: Recorded | None = None, callbacks: Sequence[Callback] = (), width: int | None = None,
               shared: bool | None = None, workers: int | None = None, memory: int | None = None,
               stop: threading.Event | None = None) -> list[Trained]:
    """Train many models; the result of each is that of training it alone.

    `finished(index, trained)` is called as soon as a run is done and `recorded(index, make)` at every record,
    including the last, so that they can be saved; `callbacks` follow every run as it is trained. `starts` holds runs
    that were stopped earlier. `width` fixes the number of runs in a pack on a device, `shared` whether packs draw their
    prompts once, `workers` the number of concurrent packs; `memory` bounds the bytes that they need in all. Setting
    `stop` ends the work with `Interrupted`.
    """
    if isinstance(runs, Run):
        raise not_a("runs", runs, "a list of runs", "train takes a single one")
    runs = list(runs)
    for run in runs:
        _require_run(run)
    followers = Followers(callbacks, runs)
    starts = [None] * len(runs) if starts is None else list(starts)
    for run, start in zip(runs, starts, strict=True):
        check_size(run)
        _check_start(run, start, probe)
    workers = workers or default_workers()
    share = None if memory is None else memory // workers
    groups = by_structure(runs, starts)
    for group in groups:
        check_model(runs[group[0]])
    packs = [pack for group in groups
             for pack in _fitting_packs(runs, starts, group, width, shared, probe, share)]
    meter = _Meter(sum(runs[i].training.steps for pack in packs for i in set(pack.members)), progress)
    programs = [pack_program(pack, probe) for pack in packs]
    results: list[Trained | None] = [None] * len(runs)
    failed = threading.Event()

    def stopped() -> bool:
        return failed.is_set() or (stop is not None and stop.is_set())

    def at_record(index: int, snapshot: Snapshot) -> None:
        if recorded is not None:
            recorded(index, lambda: snapshot.trained()[index])

    def work(number: int) -> dict[int, Trained]:
        pack = packs[number]
        followers.begun(pack.members)
        return programs[number].train(pack, meter.add, stopped, at_record if recorded else None, followers).trained()

    try:
        with closing(each(work, range(len(packs)), workers, failed, followers.deliver)) as packs_done:
            for _, done in packs_done:
                for member, trained in done.items():
                    results[member] = trained
                    if finished is not None:
                        finished(member, trained)
                    followers.end(member, trained)
    except BaseException as error:
        followers.stop(error)
        raise
    return results  # type: ignore[return-value]


def _require_run(run: Any, advice: str = "") -> None:
    if not isinstance(run, Run):
        raise not_a("run", run, "a Run", advice or ("write Run(model=...)" if hasattr(run, "apply") else ""))


def _check_start(run: Run, start: Trained | None, probe: Probe | None) -> None:
    if start is None:
        return
    more = run.training.steps > int(start.steps[-1])
    if more and (probe is None) != (start.probes is None):
        raise SpecError("probe must be given for a start that has records of it, and only then")
    double = any(np.asarray(leaf).dtype == np.float64 for leaf in jax.tree.leaves(start.params))
    require(double == bool(jax.config.values["jax_enable_x64"]), "start", "another", "have the precision now in use")
    training = replace(run.training, steps=start.run.training.steps)
    if canonical(replace(run, training=training)) != canonical(start.run):
        raise SpecError("start must be the same run stopped earlier, got one whose spec differs in more than steps")
    require(int(start.steps[-1]) <= run.training.steps, "steps", run.training.steps,
            f"be at least the {int(start.steps[-1])} steps already taken")


class MemoryLimit(IclabError):
    """Not even one run fits into the memory allowed."""


def _fitting_packs(runs: Sequence[Run], starts: Sequence[Trained | None], group: list[int], width: int | None,
                   shared: bool | None, probe: Probe | None, memory: int | None) -> list[Pack]:
    """The packs of a group, narrowed until one needs at most `memory` bytes."""
    shared = shares_data(runs, group) if shared is None else shared
    width = width or best_width(runs[group[0]], shared)
    while True:
        packs = cut_packs(runs, starts, group, width, shared)
        if memory is None:
            return packs
        needed = pack_program(packs[0], probe).bytes(packs[0])
        if needed <= memory:
            return packs
        if width == 1:
            raise MemoryLimit(f"memory must allow {needed / 2**20:.1f} MiB for each pack at work, got "
                              f"{memory / 2**20:.1f} MiB")
        width = max(1, min(width - 1, width * memory // needed))


class _Meter:
    def __init__(self, total: int, progress: Progress | None):
        self.done, self.total, self.progress, self.lock = 0, total, progress, threading.Lock()

    def add(self, steps: int) -> None:
        with self.lock:
            self.done += steps
            if self.progress is not None:
                self.progress(self.done, self.total)
