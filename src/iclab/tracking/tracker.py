"""What all trackers have in common: a log per run that begins with its spec and ends with its status."""

from __future__ import annotations

import importlib
import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from iclab.core import registry
from iclab.core.errors import IclabError
from iclab.core.parse import flat
from iclab.training import Callback, Run, Trained


class Tracker(Callback):
    """A callback that keeps a log per run."""

    def __init__(self) -> None:
        self._logs: dict[int, Any] = {}

    @abstractmethod
    def open(self, name: str, settings: dict[str, Any]) -> Any:
        """A new log for a run of this name and spec."""

    @abstractmethod
    def write(self, log: Any, step: int, values: Mapping[str, float]) -> None:
        """Add a record to a log."""

    @abstractmethod
    def close(self, log: Any, status: str, error: BaseException | None) -> None:
        """End a log; `error` is what stopped the training, if anything did."""

    def begin(self, index: int, run: Run) -> None:
        """Open the log of a run."""
        self._logs[index] = self.open(f"{registry.word(type(run.model))}-{run.init_seed}-{run.data_seed}",
                                      settings_of(run))

    def record(self, index: int, step: int, values: Mapping[str, float]) -> None:
        """Write to the log of a run."""
        self.write(self._logs[index], step, values)

    def end(self, index: int, trained: Trained | None, error: BaseException | None) -> None:
        """Close the log of a run."""
        status = f"stopped by {type(error).__name__}" if trained is None else trained.status
        self.close(self._logs.pop(index), status, error)


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
                             f"pip install '.[{extra}]' ({error})") from None
