"""Trackio, in its local database. Look at it with `trackio show --project PROJECT`."""

from __future__ import annotations

import contextlib
import contextvars
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from iclab.tracking.tracker import Tracker, need


class Trackio(Tracker):
    """Logs every run to `project`, in the folder that TRACKIO_DIR names or Trackio's own."""

    def __init__(self, project: str):
        need("trackio", "trackio")
        super().__init__()
        self.project = project

    def open(self, name: str, settings: dict[str, Any]) -> Any:
        """A new run beside those that are open."""
        import trackio

        def make() -> Any:
            return trackio.init(self.project, name=name, config=settings, embed=False)

        with _words_to_stderr():
            # Trackio ends the run of the context that a new one begins in.
            return contextvars.Context().run(make)

    def write(self, log: Any, step: int, values: Mapping[str, float]) -> None:
        """One row of metrics."""
        log.log(dict(values), step=step)

    def close(self, log: Any, status: str, error: BaseException | None) -> None:
        """Wait until the rows are written; Trackio has no place for a status."""
        with _words_to_stderr():
            log.finish()


@contextlib.contextmanager
def _words_to_stderr() -> Iterator[None]:
    """Trackio greets on standard output, which belongs to results."""
    with contextlib.redirect_stdout(sys.stderr):
        yield
