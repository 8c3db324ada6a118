"""Finished work, stored under the hash of its spec, its seeds, and the version of the code that computes it.

    STORE/runs/ab/KEY-DIGEST.safetensors        weights and records of a run
    STORE/results/KEY-DIGEST.parquet            rows of measurements, one per trial
    STORE/measurements/NAME-KEY-DIGEST.json     other results; KEY hashes their inputs

Each file contains its key, so a file copied or renamed to another key is rejected.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from iclab.core.errors import IclabError
from iclab.core.identity import canonical, function_name, to_json
from iclab.sweeps import opened
from iclab.sweeps.rows import Rows
from iclab.sweeps.sources import Trace, Untraceable, trace_module
from iclab.sweeps.storage import Files
from iclab.sweeps.tracing import say_not_stored, trace
from iclab.sweeps.versions import ROOT, code_version, modules_of, precision
from iclab.training import Run, Trained, train_many
from iclab.training.checkpoint import from_bytes, to_bytes
from iclab.training.sgd import Probe
from iclab.training.trainer import Progress

TRAINER = "iclab.training.trainer"


def run_id(run: Run, probe: Probe | None = None) -> str | None:
    """Hash of a run's spec, seeds, and the code that trains it; None if that code cannot be traced (e.g. a lambda).

    A run trained with a probe gets a different id.
    """
    try:
        words = trace([run, probe]).words
    except Untraceable:
        return None
    probes = [] if probe is None else [function_name(probe)]
    return key(canonical(run), *words, *probes, code_version(TRAINER, *modules_of(run)))


def key(*parts: str) -> str:
    """A short hash of these strings and of the precision in use."""
    return hashlib.sha256("\0".join([*parts, precision()]).encode()).hexdigest()[:24]


class Store:
    """Finished runs and measurements, in a folder or at a URL; several processes may use it at once.

    A damaged file counts as absent. Results of untraceable code are recomputed every time.
    """

    def __init__(self, place: str | Path):
        self.files = Files(place)
        self._rows = Rows(self.files)
        if self.files.local:
            opened.ignore_folder(self.files.root)

    def check(self) -> None:
        """Refuse a read-only store."""
        self.files.check()

    def find(self, run: Run, probe: Probe | None = None) -> Trained | None:
        """The finished run, if the store has an undamaged copy."""
        name = run_id(run, probe)

        def decode(content: bytes) -> Trained | None:
            try:
                return from_bytes(content, run, key=name)
            except IclabError:
                return None

        return None if name is None else self.files.get(f"runs/{name[:2]}", name, decode)

    def keep(self, trained: Trained, probe: Probe | None = None, since: int | None = None) -> None:
        """Store a finished run, unless its code cannot be traced, for example because it opened files its source does
        not name, on import or `since` a given `opened.now()`."""
        if not may_be_stored([trained.run, probe], since):
            return
        name = str(run_id(trained.run, probe))
        self.files.put(f"runs/{name[:2]}", name, "safetensors", to_bytes(trained, key=name))

    def train(self, runs: Sequence[Run], progress: Progress | None = None, probe: Probe | None = None
              ) -> list[Trained]:
        """Train the missing runs, store each as it finishes, and return all in order."""
        models = [self.find(run, probe) for run in runs]
        missing = [i for i, trained in enumerate(models) if trained is None]
        if missing:
            began = opened.now()
            fresh = train_many([runs[i] for i in missing], progress=progress, probe=probe,
                               finished=lambda _, trained: self.keep(trained, probe, began))
            for i, trained in zip(missing, fresh, strict=True):
                models[i] = trained
        return models  # type: ignore[return-value]

    def recall(self, name: str, ingredients: Any, compute: Callable[[], Any], version: Trace | None = None) -> Any:
        """A JSON result computed from `ingredients`, reused until they or the code change; the code is the module of
        `compute`, unless `version` gives another trace."""
        try:
            code = _joined(_trace_of(compute) if version is None else version, trace(ingredients))
        except Untraceable as reason:
            say_not_stored(reason)
            return json.loads(json.dumps(compute()))
        value = self.recalled(name, ingredients, code)
        if value is None:
            began = opened.now()
            value = json.loads(json.dumps(compute()))
            try:
                code.check(began)
                full = _measurement(name, ingredients, code)
                self.files.put("measurements", full, "json", json.dumps({"key": full, "value": value}).encode())
            except Untraceable as reason:
                say_not_stored(reason)
        return value

    def recalled(self, name: str, ingredients: Any, version: Trace) -> Any:
        """The result `recall` stored; None if there is none."""
        full = _measurement(name, ingredients, version)

        def decode(content: bytes) -> Any:
            try:
                stored = json.loads(content)
                return stored["value"] if stored["key"] == full else None
            except (ValueError, TypeError, KeyError):
                return None

        return self.files.get("measurements", full, decode)

    def add_rows(self, rows: Sequence[dict[str, Any]]) -> None:
        """Store rows of measurements; each has its `trial`."""
        self._rows.add(rows)

    def rows(self) -> dict[str, dict[str, Any]]:
        """The row of every trial measured so far; a failure counts only while there is no success."""
        return self._rows.by_trial()

    def finished(self, ids: Mapping[int, str | None]) -> dict[int, dict[str, Any]]:
        """The stored rows of the given trials (number to id), except failed ones, which are run again."""
        known = self.rows()
        return {i: known[name] for i, name in ids.items() if name in known and known[name]["status"] != "failed"}

    def all_rows(self) -> list[dict[str, Any]]:
        """Every row of every result file, including duplicates of a trial."""
        return self._rows.all()

    def trained_ids(self) -> set[str]:
        """Ids of all runs whose weights are stored."""
        folders = self.files.names("runs")
        return {name.split("-")[0] for folder in folders for name in self.files.names(f"runs/{folder}")}

    def damaged(self) -> list[str]:
        """Result files that cannot be read or do not match their names."""
        return self._rows.damaged()

    def tidy(self, trials: Collection[str | None] = ()) -> None:
        """Remove damaged result files of these trials, which have been recomputed; merge the rest if there are many."""
        self._rows.tidy(trials)


def may_be_stored(parts: Any, since: int | None = None) -> bool:
    """Whether everything a result depends on can be traced; if not, the reason is logged."""
    try:
        trace(parts).check(opened.now() if since is None else since)
    except Untraceable as reason:
        say_not_stored(reason)
        return False
    return True


def _measurement(name: str, ingredients: Any, version: Trace) -> str:
    return f"{name}-{key(json.dumps(to_json(ingredients), sort_keys=True), *version.words)}"


def _joined(a: Trace, b: Trace) -> Trace:
    joined = Trace()
    joined.add(a)
    joined.add(b)
    return joined


def _trace_of(compute: Callable[[], Any]) -> Trace:
    """What a function depends on: its module (iclab's or the user's), or its source if the module has no file."""
    while isinstance(compute, partial):
        compute = compute.func
    if compute.__module__.split(".")[0] == ROOT:
        return Trace(package={compute.__module__})
    module = sys.modules.get(compute.__module__)
    return trace(compute) if getattr(module, "__file__", None) is None else trace_module(module)  # type: ignore[arg-type]


def as_store(place: str | Path | Store | None) -> Store | None:
    """The store at a place; a `Store` or None is returned unchanged."""
    return place if isinstance(place, Store) or place is None else Store(place)


def check_writable(folder: str | Path) -> None:
    """Refuse a folder that cannot be written before any work is done."""
    probe = Path(folder) / ".iclab-write-test"
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise IclabError(f"out must be a folder that can be written, got {str(folder)!r} "
                         f"({error.strerror}); name another folder") from None
