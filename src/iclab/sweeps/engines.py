"""Engines: run packs in this process, or as Ray tasks on this machine or a cluster."""

from __future__ import annotations

import os
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax

from iclab.core.errors import IclabError, require
from iclab.core.parallel import cores, default_workers, each
from iclab.sweeps.packs import Job, TrialPack, make_packs, run_pack
from iclab.sweeps.results import Results
from iclab.sweeps.store import Store, as_store, may_be_stored
from iclab.sweeps.sweep import Sweep

ENGINES = ("local", "ray")
RETRIES = 5


@dataclass(frozen=True)
class Tally:
    """Progress of a sweep, in trials."""

    total: int
    found: int = 0
    """Finished before this call."""
    done: int = 0
    """Finished in total, including failed, diverged and stuck trials."""
    running: int = 0
    failed: int = 0
    diverged: int = 0
    stuck: int = 0
    work: float = 0.0
    """Fraction of this call's training steps completed."""


Watch = Callable[[Tally], None]


class _Count:
    """Updates the tally as packs start and finish in several threads."""

    def __init__(self, total: int, found: int, steps: int, watch: Watch | None):
        self.tally, self.watch, self.lock = Tally(total, found, found), watch, threading.Lock()
        self.steps = max(steps, 1)
        self.taken: dict[int, int] = {}

    def begin(self, pack: TrialPack) -> None:
        self._add(pack, 0, running=len(pack.trials))

    def step(self, pack: TrialPack, taken: int, _: int) -> None:
        self._add(pack, taken)

    def end(self, pack: TrialPack, rows: dict[int, dict[str, Any]]) -> None:
        states = [row["status"] for row in rows.values()]
        self._add(pack, pack.steps, running=-len(pack.trials), done=len(rows),
                  **{state: states.count(state) for state in ("failed", "diverged", "stuck")})

    def _add(self, pack: TrialPack, taken: int, **more: int) -> None:
        with self.lock:
            self.taken[id(pack)] = taken
            counts = {name: getattr(self.tally, name) + number for name, number in more.items()}
            work = min(1.0, sum(self.taken.values()) / self.steps)
            self.tally = replace(self.tally, **counts, work=work)  # type: ignore[arg-type]
            if self.watch is not None:
                self.watch(self.tally)


def run_sweep(sweep: Sweep, *, store: str | Path | Store | None = None, engine: str = "local",
              address: str | None = None, workers: int | None = None, memory: int | None = None, gpus: float = 0,
              watch: Watch | None = None) -> Results:
    """Run the trials missing from the store and return the results of all trials.

    `engine` is local (threads of this process) or ray (tasks on the cluster at `address`, or on one started here);
    `workers` packs run at a time (in Ray: on a cluster started here), using at most `memory` bytes in total (in Ray:
    per machine). `gpus` is the fraction of a GPU each Ray task requests. Without a store nothing is saved. With one,
    finished packs survive an interruption.
    """
    require(engine in ENGINES, "engine", engine, f"be one of {', '.join(ENGINES)}")
    require(workers is None or workers >= 1, "workers", workers, "be at least 1")
    require(memory is None or memory >= 1, "memory", memory, "be at least 1 byte")
    require(gpus >= 0, "gpus", gpus, "be at least 0")
    trials = sweep.trials()
    opened_store = as_store(store)
    if opened_store is not None:
        opened_store.check()
    ids = [None if opened_store is None else trial.id(sweep.measure, sweep.prompts) for trial in trials]
    for trial, name in zip(trials, ids, strict=True):
        if opened_store is not None and name is None:
            may_be_stored(trial.code(sweep.measure))  # logs the reason
    rows = {} if opened_store is None else opened_store.finished(dict(enumerate(ids)))
    packs = make_packs(trials, ids, set(range(len(trials))) - rows.keys())
    count = _Count(len(trials), len(rows), sum(pack.steps for pack in packs), watch)
    job = Job(tuple(sweep.measure), sweep.prompts, None if opened_store is None else opened_store.files.address, memory,
              bool(jax.config.values["jax_enable_x64"]), sweep.name)
    if packs:
        work = local(packs, job, count, workers) if engine == "local" else \
            on_ray(packs, job, count, address, workers, gpus)
        for fresh in work:
            rows |= fresh
    if opened_store is not None:
        opened_store.tidy(set(ids))
    return Results(sweep, trials, [rows[i] for i in range(len(trials))])


def local(packs: Sequence[TrialPack], job: Job, count: _Count, workers: int | None
          ) -> Iterator[dict[int, dict[str, Any]]]:
    """Run packs in threads, one per core; with several devices, one pack at a time spread over them."""
    workers = workers or default_workers()
    job = replace(job, memory=None if job.memory is None else job.memory // workers)
    stop = threading.Event()

    def work(pack: TrialPack) -> dict[int, dict[str, Any]]:
        count.begin(pack)
        return run_pack(job, pack, partial(count.step, pack), stop)

    for index, rows in each(work, packs, workers, stop):
        count.end(packs[index], rows)
        yield rows


def on_ray(packs: Sequence[TrialPack], job: Job, count: _Count, address: str | None, workers: int | None, gpus: float
           ) -> Iterator[dict[int, dict[str, Any]]]:
    """Run packs as Ray tasks; a task whose worker or node dies is restarted and reuses what is already stored."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise IclabError("engine ray needs Ray: pip install ray") from None
    require(job.place is None or not job.place.startswith("memory:"), "store", job.place,
            "be a place that other processes can reach")
    started_here = not ray.is_initialized()
    if started_here:
        _connect(ray, address, workers)
    try:
        nodes = [node["Resources"].get("CPU", 1) for node in ray.nodes() if node["Alive"]]
        job = replace(job, memory=None if job.memory is None else int(job.memory // max(nodes)))
        task = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES, memory=job.memory or 0)(run_pack)
        shared, waiting = ray.put(job), list(reversed(packs))
        running: dict[Any, TrialPack] = {}
        try:
            while waiting or running:
                room = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
                while waiting and len(running) < room:  # more tasks than cores, so that no core idles
                    pack = waiting.pop()
                    running[task.remote(shared, pack)] = pack
                    count.begin(pack)
                for done in ray.wait(list(running), timeout=1.0)[0]:
                    pack = running.pop(done)
                    rows = _fetch(ray, done, pack)
                    count.end(pack, rows)
                    yield rows
        finally:
            for unfinished in running:
                ray.cancel(unfinished, force=True)
    finally:
        if started_here:
            ray.shutdown()


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    # Workers must import a user's modules from the same paths as this process.
    environment = {"env_vars": {"PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}}
    options: dict[str, Any] = {"runtime_env": environment, "logging_level": "ERROR", "log_to_driver": False}
    if address is None:
        options |= {"address": "local", "num_cpus": workers or cores(), "include_dashboard": False}
    else:
        options["address"] = address
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    try:
        if host and port.isdigit():  # Ray itself would retry a dead address for minutes
            socket.create_connection((host, int(port)), timeout=5).close()
        with warnings.catch_warnings():  # JAX warns about Ray's fork, which is safe: exec follows
            warnings.filterwarnings("ignore", message=r"os\.fork\(\)", category=RuntimeWarning)
            ray.init(**options)
    except Exception as error:  # each kind of address fails differently
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        if _unauthenticated(error):
            raise IclabError(f"address must be that of a Ray cluster which lets you in, got {address!r}, which asks "
                             f"for another token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN ({first})") from None
        raise IclabError(f"address must be that of a running Ray cluster, got {address!r} ({first})") from None


def _unauthenticated(error: Exception) -> bool:
    """Whether a cluster answered, but refused the token, or the lack of one."""
    return type(error).__name__ == "AuthenticationError" or "unauthenticated" in str(error).lower()


def _fetch(ray: Any, task: Any, pack: TrialPack) -> dict[int, dict[str, Any]]:
    """The rows of a finished task; a task that died too often yields failed rows with a reason."""
    try:
        return ray.get(task)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, IclabError):  # caused by the store or the memory limit, not the run
            raise error.cause from None
        reason = f"{type(error.cause).__name__}: {error.cause}"
    except ray.exceptions.RayError as error:
        reason = f"{type(error).__name__}: its worker died {RETRIES + 1} times"
    first = reason.splitlines()[0][:300]
    return {i: {"trial": pack.ids[i], "run": None, "seed": trial.seed, "status": "failed", "reason": first,
                "fields": None, "finished": time.time()} for i, trial in pack.trials.items()}
