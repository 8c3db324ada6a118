"""Callbacks: objects of the user's that follow trainings as they happen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol, runtime_checkable

import numpy as np

from iclab.core.errors import IclabError, require
from iclab.training.run import Run
from iclab.training.trained import Trained


@runtime_checkable
class Callback(Protocol):
    """What `train` and `train_many` tell of each run; derive from it and write the methods that you need.

    All calls come one after another, from the thread that called `train`, while the training goes on in others: records
    arrive in groups, at most a fraction of a second late, and cost the training nothing. `index` is the place of the
    run among those of `train_many`; with `train` it is 0. A method that raises an exception stops the training.
    """

    def begin(self, index: int, run: Run) -> None:
        """A run begins, or goes on from where it was stopped."""

    def record(self, index: int, step: int, values: Mapping[str, float]) -> None:
        """A record of a run: every `record_every` steps and at the last. Earlier records of a resumed run do not recur.

        `values` holds `loss` (the mean since the last record, as in `trained.loss`), `learning_rate` (the spec's),
        `steps_per_second` (of each run in the pack), and every scalar that the probe returned, as `probes/NAME`.
        """

    def end(self, index: int, trained: Trained | None, error: BaseException | None) -> None:
        """A run that began ends: `trained` is what `train` returns, or None if it did not come to that, and `error` is
        what stopped it then: KeyboardInterrupt, an error in training or in a callback, also of another run."""


@runtime_checkable
class HearsOfAllRuns(Protocol):
    """A callback that wants to know all runs before the first begins."""

    def announced(self, runs: Sequence[Run]) -> None:
        """The runs that will be trained, by their `index`."""


Event = Callable[[Callback], None]


class Followers:
    """Takes what the threads that train say, and passes it on to the callbacks in the thread of the caller."""

    def __init__(self, callbacks: Sequence[Callback], runs: Sequence[Run]):
        require(isinstance(callbacks, Sequence), "callbacks", callbacks, "be a list")
        for callback in callbacks:
            follows = isinstance(callback, Callback) and not isinstance(callback, type)
            require(follows, "callbacks", callback,
                    "be objects with the methods begin, record and end (iclab.Callback)")
            if isinstance(callback, HearsOfAllRuns):
                callback.announced(runs)
        self.callbacks, self.runs = list(callbacks), runs
        self._events: SimpleQueue[Event] = SimpleQueue()
        self._open: list[tuple[Callback, int]] = []

    def begun(self, members: Sequence[int]) -> None:
        """A pack of runs begins; called by the thread that trains it."""
        for index in dict.fromkeys(members) if self.callbacks else ():
            self._events.put(partial(self._begin, index))

    def recorded(self, members: Sequence[int], step: int, loss: np.ndarray, probed: Mapping[str, np.ndarray] | None,
                 speed: float) -> None:
        """A pack of runs, perhaps padded, has a record; called by the thread that trains it."""
        for index in dict.fromkeys(members) if self.callbacks else ():
            place = members.index(index)
            values = {"loss": float(loss[place]), "learning_rate": float(self.runs[index].training.learning_rate),
                      "steps_per_second": speed}
            values |= {f"probes/{name}": float(rows[place]) for name, rows in (probed or {}).items() if rows.ndim == 1}
            self._events.put(partial(_record, index, step, values))

    def deliver(self) -> None:
        """Pass on everything said so far."""
        with suppress(Empty):
            while True:
                self._pass_on(self._events.get_nowait())

    def end(self, index: int, trained: Trained) -> None:
        """A run is trained."""
        self.deliver()
        self._pass_on(partial(self._end, index, trained, None))

    def stop(self, error: BaseException) -> None:
        """Training stopped: pass on the records that were still made, and end what is open. What goes wrong in that is
        noted on the error that stopped it."""
        def attempt(action: Event, callback: Callback) -> None:
            try:
                action(callback)
            except Exception as another:
                error.add_note(str(another))

        while not self._events.empty():
            event = self._events.get_nowait()
            for callback in list(self.callbacks):
                attempt(partial(self._guarded, event), callback)
        for callback, index in list(self._open):
            attempt(partial(self._end, index, None, error), callback)

    def _pass_on(self, event: Event) -> None:
        """Every callback hears of an event, also when an earlier one fails."""
        errors = []
        for callback in list(self.callbacks):
            try:
                self._guarded(event, callback)
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _guarded(self, event: Event, callback: Callback) -> None:
        """Tell one callback of an event; one that fails hears of no other, except that its runs end."""
        try:
            event(callback)
        except Exception:
            self.callbacks = [other for other in self.callbacks if other is not callback]
            raise

    def _begin(self, index: int, callback: Callback) -> None:
        _call(callback, "begin", index, self.runs[index])
        self._open.append((callback, index))

    def _end(self, index: int, trained: Trained | None, error: BaseException | None, callback: Callback) -> None:
        self._open = [(other, place) for other, place in self._open if other is not callback or place != index]
        _call(callback, "end", index, trained, error)


def _record(index: int, step: int, values: dict[str, float], callback: Callback) -> None:
    _call(callback, "record", index, step, dict(values))


def _call(callback: Callback, method: str, index: int, *values: Any) -> None:
    try:
        getattr(callback, method)(index, *values)
    except IclabError:  # already a line for the user
        raise
    except Exception as error:
        at = f" at step {values[0]}" if method == "record" else ""
        raise IclabError(f"the callback {type(callback).__name__} failed in {method} of run {index}{at}: "
                         f"{type(error).__name__}: {error}") from error
