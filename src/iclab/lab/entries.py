"""Entries: figures, tables and claims that can be run, and what they work with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from iclab.core.errors import IclabError, require
from iclab.core.spec import replace
from iclab.figures.plots import Plot, require_name, to_csv
from iclab.lab.claims import Claim
from iclab.sweeps.engines import Tally, run_sweep
from iclab.sweeps.results import Results
from iclab.sweeps.store import Store
from iclab.sweeps.sweep import Sweep
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


def per_seed(run: Run, seeds: Sequence[int]) -> list[Run]:
    """The same run with each seed."""
    return [replace(run, init_seed=seed, data_seed=seed) for seed in seeds]
