"""Finished work kept and found again: by the hash of a spec, its seeds, and the version of what computes it.

    STORE/runs/ab/KEY-DIGEST.safetensors        weights and records of a run
    STORE/results/KEY-DIGEST.parquet            rows of measurements, one a trial
    STORE/measurements/NAME-KEY-DIGEST.json     other results, with what they were computed from in KEY
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from iclab.errors import IclabError
from iclab.runs.files import Files
from iclab.runs.versions import ROOT, code_version, file_version, modules_of, own_source, precision
from iclab.specs import canonical, function_name, to_json
from iclab.training import Run, Trained, train_many
from iclab.training.checkpoint import from_bytes, to_bytes
from iclab.training.ensemble import Progress
from iclab.training.sgd import Probe

TRAINER = "iclab.training.ensemble"
RESULT_FILE = re.compile(r"[0-9a-f]{24}-[0-9a-f]{24}\.parquet")


def run_id(run: Run, probe: Probe | None = None) -> str | None:
    """Hash of a run's spec, seeds, and the code that trains it; None if it holds a lambda or the like.

    A run that recorded a probe along its training is another.
    """
    sources = own_source(run) if probe is None else _joined(own_source(run), own_source(probe))
    if sources is None:
        return None
    looked = [] if probe is None else [function_name(probe)]
    return key(canonical(run), *sources, *looked, code_version(TRAINER, *modules_of(run)))


def _joined(a: list[str] | None, b: list[str] | None) -> list[str] | None:
    return None if a is None or b is None else a + b


def key(*parts: str) -> str:
    """A short hash of some texts and of the precision in use."""
    return hashlib.sha256("\0".join([*parts, precision()]).encode()).hexdigest()[:24]


class Store:
    """Finished runs and measurements, in a folder or at a URL; several processes may use it at once.

    A damaged file counts as absent. A run with no id (it holds a lambda) is computed every time.
    """

    def __init__(self, place: str | Path):
        self.files = Files(place)
        self._rows: dict[str, dict[str, Any]] = {}
        self._read: set[str] = set()

    def check(self) -> None:
        """Refuse a store that cannot be written."""
        self.files.check()

    def find(self, run: Run, probe: Probe | None = None) -> Trained | None:
        """The finished run, if the store has it undamaged."""
        name = run_id(run, probe)
        content = None if name is None else self.files.get(f"runs/{name[:2]}", name)
        try:
            return None if content is None else from_bytes(content, run)
        except IclabError:
            return None

    def keep(self, trained: Trained, probe: Probe | None = None) -> None:
        """Keep a finished run."""
        name = run_id(trained.run, probe)
        if name is not None:
            self.files.put(f"runs/{name[:2]}", name, "safetensors", to_bytes(trained))

    def train(self, runs: Sequence[Run], progress: Progress | None = None, probe: Probe | None = None
              ) -> list[Trained]:
        """Train what the store does not have, keep each run as it finishes, return all in order."""
        found = [self.find(run, probe) for run in runs]
        missing = [i for i, trained in enumerate(found) if trained is None]
        if missing:
            fresh = train_many([runs[i] for i in missing], progress=progress, probe=probe,
                               finished=lambda _, trained: self.keep(trained, probe))
            for i, trained in zip(missing, fresh, strict=True):
                found[i] = trained
        return found  # type: ignore[return-value]

    def recall(self, name: str, ingredients: Any, compute: Callable[[], Any], version: str | None = None) -> Any:
        """A JSON result computed from `ingredients`, remembered while neither they nor the code behind it change: its
        `version`, or that of the module of `compute`."""
        version = version or _version_of(compute)
        found = self.recalled(name, ingredients, version)
        if found is None:
            content = json.dumps(compute()).encode()
            self.files.put("measurements", _measurement(name, ingredients, version), "json", content)
            found = json.loads(content)
        return found

    def recalled(self, name: str, ingredients: Any, version: str) -> Any:
        """What `recall` has kept; None if there is nothing."""
        content = self.files.get("measurements", _measurement(name, ingredients, version))
        return None if content is None else json.loads(content)

    def add_rows(self, rows: Sequence[dict[str, Any]]) -> None:
        """Keep rows of measurements; each has its `trial`."""
        buffer = io.BytesIO()
        pl.DataFrame(list(rows), infer_schema_length=None).write_parquet(buffer)
        self.files.put("results", rows[0]["trial"], "parquet", buffer.getvalue())

    def rows(self) -> dict[str, dict[str, Any]]:
        """The row of every trial measured so far; a failure counts only while there is no success."""
        names = {name for name in self.files.names("results") if RESULT_FILE.fullmatch(name)}
        if not self._read <= names:  # files were taken away: forget what they said
            self._rows, self._read = {}, set()
        for name in sorted(names - self._read):
            content = self.files.read("results", name)
            if content is None:
                continue
            self._read.add(name)
            for row in pl.read_parquet(io.BytesIO(content)).iter_rows(named=True):
                if self._rows.get(row["trial"], {"status": "failed"})["status"] == "failed":
                    self._rows[row["trial"]] = row
        return self._rows

    def finished(self, ids: Mapping[int, str | None]) -> dict[int, dict[str, Any]]:
        """The rows of those trials, of some given by number and id, that need not be run again: all but the failed."""
        known = self.rows()
        return {i: known[name] for i, name in ids.items() if name in known and known[name]["status"] != "failed"}

    def all_rows(self) -> list[dict[str, Any]]:
        """Every row of every result file, those of trials measured twice among them."""
        found = []
        for name in sorted(self.files.names("results")):
            content = self.files.read("results", name) if RESULT_FILE.fullmatch(name) else None
            found += [] if content is None else pl.read_parquet(io.BytesIO(content)).to_dicts()
        return found

    def trained_ids(self) -> set[str]:
        """Ids of all runs whose weights are kept."""
        folders = self.files.names("runs")
        return {name.split("-")[0] for folder in folders for name in self.files.names(f"runs/{folder}")}

    def damaged(self) -> list[str]:
        """Result files whose content does not match their name."""
        self.rows()
        return [name for name in self.files.names("results") if RESULT_FILE.fullmatch(name) and name not in self._read]

    def tidy(self, trials: Collection[str | None]) -> None:
        """Take away damaged files of these trials: what they held has been computed again."""
        for name in self.damaged():
            if name.split("-")[0] in trials:
                self.files.remove("results", name)


def _measurement(name: str, ingredients: Any, version: str) -> str:
    return f"{name}-{key(json.dumps(to_json(ingredients), sort_keys=True), version)}"


def _version_of(compute: Callable[[], Any]) -> str:
    """That of the module that defines a function; where it has no file (a notebook) the function's source."""
    if compute.__module__.split(".")[0] == ROOT:
        return code_version(compute.__module__)
    try:
        return file_version(inspect.getsource(sys.modules[compute.__module__]))
    except (OSError, TypeError, KeyError):
        return inspect.getsource(compute)


def as_store(place: str | Path | Store | None) -> Store | None:
    """The store at a place, which may be one already, or none."""
    return place if isinstance(place, Store) or place is None else Store(place)


def check_writable(folder: str | Path) -> None:
    """Refuse a folder that cannot be written before any work is done."""
    probe = Path(folder) / ".iclab-write-test"
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise IclabError(f"out must be a folder that can be written, got {str(folder)!r} ({error.strerror})") from None
