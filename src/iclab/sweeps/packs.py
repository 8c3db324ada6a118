"""Packs: trials whose runs train as one compiled ensemble. Engines work in packs; users see only runs."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np

from iclab.sweeps import opened
from iclab.sweeps.measures import measure_run
from iclab.sweeps.store import Store, may_be_stored, run_id
from iclab.sweeps.sweep import Trial
from iclab.training import Trained, train_many
from iclab.training.packing import groups
from iclab.training.sgd import Setup
from iclab.training.trainer import Interrupted, MemoryLimit, Progress


@dataclass(frozen=True)
class TrialPack:
    """Trials by their number in the sweep, and how their runs are trained together."""

    trials: dict[int, Trial]
    ids: dict[int, str | None]
    width: int
    """Runs side by side on one device."""
    shared: bool
    """Whether all runs share the same prompts."""

    @property
    def steps(self) -> int:
        """Training steps of all its runs."""
        return sum(trial.run.training.steps for trial in one_each(list(self.trials.values())))


@dataclass(frozen=True)
class Job:
    """Settings shared by all packs of a sweep."""

    measure: Sequence[str | Callable[..., Any]]
    prompts: int
    place: str | None
    """Address of the store, if any."""
    memory: int | None
    """Memory limit of one pack, in bytes."""
    double: bool
    """Whether to compute in float64."""
    name: str
    """The sweep's name."""


def same(run: Any) -> Any:
    """A key that is equal exactly for equal runs, comparing functions by identity."""
    leaves, tree = jax.tree.flatten(Setup.of(run))
    schedule = run.training.steps, run.training.record_every
    return tree, schedule, tuple((np.asarray(leaf).dtype.str, np.asarray(leaf).tobytes()) for leaf in leaves)


def one_each(trials: Sequence[Trial]) -> list[Trial]:
    """One trial per distinct run."""
    return list({same(trial.run): trial for trial in trials}.values())


def make_packs(trials: Sequence[Trial], ids: Sequence[str | None], missing: set[int]) -> list[TrialPack]:
    """The packs that cover the missing trials.

    Runs are grouped by the whole sweep, so that resuming after an interruption computes the same numbers. The order of
    packs is random, so that processes sharing a store seldom work on the same pack.
    """
    by_run: dict[Any, list[int]] = {}
    for index, trial in enumerate(trials):
        by_run.setdefault(same(trial.run), []).append(index)
    members = list(by_run.values())
    packs = []
    for group in groups([trials[indices[0]].run for indices in members]):
        waiting = [members[i] for i in group.members if missing.intersection(members[i])]
        for start in range(0, len(waiting), group.size):
            chosen = [i for indices in waiting[start:start + group.size] for i in indices if i in missing]
            packs.append(TrialPack({i: trials[i] for i in chosen}, {i: ids[i] for i in chosen}, group.width,
                                   group.shared))
    random.shuffle(packs)
    return packs


@cache
def store_at(place: str) -> Store:
    """This process's view of a store."""
    return Store(place)


def run_pack(job: Job, pack: TrialPack, progress: Progress | None = None, stop: threading.Event | None = None
             ) -> dict[int, dict[str, Any]]:
    """Train the runs missing from the store, measure, store, and return all rows; a failure gets a row with its reason.
    """
    with jax.enable_x64(job.double):
        started = time.time()  # before looking into the store: what is there by then is never computed again
        store = None if job.place is None else store_at(job.place)
        rows = {} if store is None else store.finished(pack.ids)
        began = opened.now()
        fresh = [i for i in pack.trials if i not in rows]
        chosen = one_each([pack.trials[i] for i in fresh])
        trained, reason = _trained(job, pack, chosen, store, progress, stop)
        seconds = (time.time() - started) / max(len(chosen), 1)
        new_rows: dict[int, dict[str, Any]] = {}
        for trial, model in zip(chosen, trained, strict=True):
            indices = [i for i in fresh if same(pack.trials[i].run) == same(trial.run)]
            new_rows |= _measured(job, pack, indices, model, reason)
        for i, row in new_rows.items():
            rows[i] = {"trial": pack.ids[i], "run": run_id(pack.trials[i].run), "sweep": job.name, **row,
                       "seconds": seconds, "started": started, "finished": time.time()}
        if store is not None:
            to_store = [rows[i] for i in new_rows if may_be_stored(pack.trials[i].code(job.measure), began)
                        and pack.ids[i] is not None]
            if to_store:
                store.add_rows(to_store)
        return rows


def _trained(job: Job, pack: TrialPack, chosen: Sequence[Trial], store: Store | None, progress: Progress | None,
             stop: threading.Event | None) -> tuple[list[Trained | None], str]:
    """The chosen runs, loaded or trained; None and a reason where training failed."""
    models: list[Trained | None] = [None if store is None else store.find(trial.run) for trial in chosen]
    missing = [i for i, model in enumerate(models) if model is None]
    if not missing:
        return models, ""
    began = opened.now()
    try:
        fresh = train_many([chosen[i].run for i in missing], width=pack.width, shared=pack.shared, workers=1,
                           memory=job.memory, progress=progress, stop=stop)
    except (Interrupted, MemoryLimit):
        raise
    except (Exception, SystemExit) as error:  # user code may call exit()
        return models, reason_of(error)
    for i, model in zip(missing, fresh, strict=True):
        models[i] = model
        if store is not None:
            store.keep(model, since=began)
    return models, ""


def _measured(job: Job, pack: TrialPack, indices: Sequence[int], model: Trained | None, reason: str
              ) -> dict[int, dict[str, Any]]:
    """The rows of one run's trials."""
    def row(i: int, status: str, reason: str, values: dict[str, Any]) -> dict[str, Any]:
        trial = pack.trials[i]
        return {"seed": trial.seed, "status": status, "reason": reason, **values, "test_prompts": job.prompts,
                "fields": json.dumps(trial.fields()), "measured": json.dumps(list(values))}

    if model is None:
        return {i: row(i, "failed", reason, {}) for i in indices}
    status, _, at = model.status.partition(" ")
    seed, tests = pack.trials[indices[0]].seed, [pack.trials[i].test for i in indices]
    try:
        values = measure_run(model, tests, seed, job.measure, job.prompts)
    except (Exception, SystemExit) as error:
        if len(indices) == 1:
            return {indices[0]: row(indices[0], "failed", f"measure: {reason_of(error)}", {})}
        return {k: v for i in indices for k, v in _measured(job, pack, [i], model, reason).items()}
    return {i: row(i, status, at, measured) for i, measured in zip(indices, values, strict=True)}


def reason_of(error: BaseException) -> str:
    """An error as one line."""
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}"[:300]
