"""What all trackers have in common: a log per run that begins with its spec and ends with its status."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from iclab.core import registry
from iclab.core.errors import IclabError
from iclab.core.parse import flat
from iclab.training import Callback, Run, Trained, Training
from iclab.training.naming import differences, fields_of

SEEDS = ("init_seed", "data_seed")
SCHEDULE = tuple(f"training.{field.name}" for field in dataclasses.fields(Training) if field.metadata.get("schedule"))
"""What does not change the loss along the way."""
LONGEST_NAME = 96
"""Characters of a name before the seeds; W&B takes 128."""


class Tracker(Callback):
    """A callback that keeps a log per run."""

    def __init__(self) -> None:
        self._logs: dict[int, Any] = {}
        self._names: list[str] = []

    @abstractmethod
    def open(self, name: str, settings: dict[str, Any]) -> Any:
        """A new log for a run of this name and spec."""

    @abstractmethod
    def write(self, log: Any, step: int, values: Mapping[str, float]) -> None:
        """Add a record to a log."""

    @abstractmethod
    def close(self, log: Any, status: str, error: BaseException | None) -> None:
        """End a log; `error` is what stopped the training, if anything did."""

    def announced(self, runs: Sequence[Run]) -> None:
        """Name the runs by what tells them apart."""
        self._names = run_names(runs)

    def begin(self, index: int, run: Run) -> None:
        """Open the log of a run."""
        self._logs[index] = self.open(self._names[index], settings_of(run))

    def record(self, index: int, step: int, values: Mapping[str, float]) -> None:
        """Write to the log of a run."""
        self.write(self._logs[index], step, values)

    def end(self, index: int, trained: Trained | None, error: BaseException | None) -> None:
        """Close the log of a run."""
        status = f"stopped by {type(error).__name__}" if trained is None else trained.status
        self.close(self._logs.pop(index), status, error)


def run_names(runs: Sequence[Run]) -> list[str]:
    """What each run is, the fields that tell it from those that are the same, and its seeds, as names of folders:
    `gated_attention-mamba-learning_rate=0.1-seed=0`. A run alone is told from one with the default training."""
    fields = [fields_of(run) for run in runs]
    kinds = [registry.word(type(run.model)) + (f"-{own['model.member']}" if "model.member" in own else "")
             for run, own in zip(runs, fields, strict=True)]
    names = []
    for run, kind, own in zip(runs, kinds, fields, strict=True):
        alike = [other for other, name in zip(fields, kinds, strict=True) if name == kind]
        told = differences(own, alike, skip=SEEDS) if len(runs) > 1 else \
            differences(own, [fields_of(Run())], ("training.",), SCHEDULE)
        what = "-".join([kind, *(f"{name}={value}" for name, value in told)])
        seeds = f"seed={run.init_seed}" if run.init_seed == run.data_seed else f"seeds={run.init_seed},{run.data_seed}"
        names.append(re.sub(r"[^\w.,+=-]+", "_", what)[:LONGEST_NAME] + f"-{seeds}")
    return names


def settings_of(run: Run) -> dict[str, Any]:
    """Every field of a run's spec by its path, as a number or a text."""
    return {path: value if isinstance(value, (bool, int, float, str)) else json.dumps(value)
            for path, value in flat(run).items()}


def need(extra: str, *modules: str) -> None:
    """Refuse to go on without the packages that an extra installs."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise IclabError(f"a log in {extra} needs the package {module.partition('.')[0]}: "
                             f"pip install '.[{extra}]' in a clone of iclab ({error})") from None
