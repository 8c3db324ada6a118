"""Entries: figures, tables and claims of the papers that can be run. To add one, add one file below `papers/`."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iclab import papers, registry
from iclab.errors import IclabError, require
from iclab.figures.plots import Plot, require_name, to_csv
from iclab.papers.claims import Claim
from iclab.papers.sources import SOURCES
from iclab.runs.engines import Tally, run_sweep
from iclab.runs.results import Results
from iclab.runs.store import Store
from iclab.runs.sweep import Sweep
from iclab.specs import replace
from iclab.theory.statements import Constant
from iclab.training import Run, Trained
from iclab.training.sgd import Probe
from iclab.training.trainer import Progress

SCALES = ("quick", "full")


@dataclass(frozen=True)
class Size:
    """How much is measured at a scale."""

    seeds: int
    steps: int
    prompts: int


@dataclass
class Lab:
    """What an entry works with: the scale, the base seed, and a store that remembers finished work."""

    store: Store
    scale: str = "full"
    base_seed: int = 0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        require(self.scale in SCALES, "scale", self.scale, f"be one of {', '.join(SCALES)}")

    def seeds(self, count: int) -> list[int]:
        """`count` seeds that no other base seed shares."""
        return [self.base_seed * 1000 + i for i in range(count)]

    def train(self, runs: Sequence[Run], probe: Probe | None = None) -> list[Trained]:
        """Train these runs or load them from the store; `probe` is recorded during training."""
        return self.store.train(runs, self.progress, probe)

    def sweep(self, sweep: Sweep) -> Results:
        """Run a sweep or load its results from the store; a failed run raises an error."""
        def watch(tally: Tally) -> None:
            if self.progress is not None:
                self.progress(int(1000 * tally.work), 1000)

        results = run_sweep(sweep, store=self.store, watch=watch)
        failed = results.frame.filter(results.frame["status"] == "failed")
        if len(failed):
            raise IclabError(f"{sweep.name}: {len(failed)} trials failed, the first: {failed['reason'][0]}")
        return results


@dataclass(frozen=True)
class Table:
    """Numbers that are better read than drawn."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def __post_init__(self) -> None:
        require_name("table", self.name)

    @property
    def csv(self) -> str:
        """The table as CSV text."""
        return to_csv(self.header, self.rows)


@dataclass(frozen=True)
class Outcome:
    """What an entry shows: plots and tables with the numbers behind them, text, and perhaps a claim."""

    shown: str
    """What the plots and tables show."""
    paper: str
    """What the paper says."""
    measured: str
    """What was measured, and whether they agree."""
    plots: list[Plot] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    claim: Claim | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    """Constants of the theorems' laws that this entry fitted."""


@dataclass(frozen=True)
class Entry:
    """A figure, table or claim: its name, its place in the paper, and how to run it."""

    id: str
    kind: str
    title: str
    place: str
    run: Callable[[Lab], Outcome]
    aliases: tuple[str, ...] = ()
    """Other names: those of the workshop paper's figures that the full paper repeats."""
    module: str = ""
    """The module that defines it; set when the entry is loaded."""
    path: str = ""
    """The user's file that it comes from, if any."""

    @property
    def paper(self) -> str:
        """The paper's key: the part of the id before the dot."""
        return self.id.split(".")[0]


def all_entries() -> dict[str, Entry]:
    """The `ENTRY` of every module below `papers/`, and of plugins; per paper: figures and tables, ours, then claims."""
    entries = {}
    for module in pkgutil.walk_packages(papers.__path__, papers.__name__ + "."):
        if module.name.count(".") >= 3:
            entry = getattr(importlib.import_module(module.name), "ENTRY", None)
            if entry is not None:
                entries[entry.id] = dataclasses.replace(entry, module=module.name)
    for entry in registry.added_entries():
        if not isinstance(entry, Entry) or entry.id in entries:
            raise IclabError(f"an entry point of the group {registry.ENTRIES} must be an Entry with a new id, got "
                             f"{getattr(entry, 'id', entry)!r}")
        entries[entry.id] = dataclasses.replace(entry, module=entry.run.__module__)
    paper_order = [*SOURCES, *dict.fromkeys(entry.paper for entry in entries.values())]
    return dict(sorted(entries.items(), key=lambda item: (
        paper_order.index(item[1].paper), item[1].kind == "claim", item[1].place.startswith("ours"), item[0])))


def chosen_entries(ids: Sequence[str]) -> list[Entry]:
    """The entries with these ids or aliases, or in these Python files; all entries if none is named."""
    entries = all_entries()
    known = entries | {alias: entry for entry in entries.values() for alias in entry.aliases}
    chosen: list[Entry] = []
    for name in ids:
        if name not in known and not name.endswith(".py"):
            raise IclabError(f"id must be one of {', '.join(known)}, or a Python file with an ENTRY, got {name!r}")
        entry = known[name] if name in known else own_entry(name)
        if any(entry.id == other.id and entry.path != other.path for other in (*known.values(), *chosen)):
            raise IclabError(f"{name}: id of the entry must be new, got {entry.id!r}, which another entry has")
        chosen.append(entry)
    return list({entry.id: entry for entry in chosen}.values()) if ids else list(entries.values())


def own_entry(path: str) -> Entry:
    """The `ENTRY` of a user's Python file."""
    if not os.access(path, os.R_OK) or not Path(path).is_file():
        raise IclabError(f"id must be a file that can be read, got {path!r}")
    require(path.isprintable(), "id", path, "be a path of printable characters")
    folder = str(Path(path).resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # so that the file can import its neighbours, as a script can
    name = f"iclab_entry_{hashlib.sha256(str(Path(path).resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    except Exception as error:  # a user's file may raise anything
        raise IclabError(f"{path} cannot be imported: {type(error).__name__}: {error}") from None
    entry = getattr(module, "ENTRY", None)
    if not isinstance(entry, Entry):
        raise IclabError(f"{path} must define ENTRY, an iclab.papers.entries.Entry, got {type(entry).__name__}")
    if not isinstance(entry.id, str) or not re.fullmatch(r"[a-z]+\.[a-z0-9_]+", entry.id):
        raise IclabError(f"{path}: id of the entry must be two words such as mine.claim, got {entry.id!r}")
    return dataclasses.replace(entry, module=name, path=path)


def per_seed(run: Run, seeds: Sequence[int]) -> list[Run]:
    """The same run with each seed."""
    return [replace(run, init_seed=seed, data_seed=seed) for seed in seeds]
