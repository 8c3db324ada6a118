"""Progress on standard error: a bar on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LINE_EVERY = 30.0


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time left; yields `show(done, total)`."""
    with _bar("{task.description}") as (progress, task):
        progress.update(task, description=title)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def tally_bar() -> Iterator[Callable[[Any], None]]:
    """A bar with live counts and the time left; yields `show(tally)`."""
    began = last_line = time.monotonic()
    with _bar("{task.description}") as (progress, task):
        def show(tally: Any) -> None:
            nonlocal last_line
            counts = (f"{tally.done}/{tally.total} done, {tally.running} running, {tally.failed} failed, "
                      f"{tally.diverged} diverged, {tally.stuck} stuck")
            progress.update(task, description=counts, completed=tally.work, total=1.0)
            now = time.monotonic()
            if progress.disable and now - last_line >= LINE_EVERY:
                last_line = now
                left = (now - began) * (1 - tally.work) / tally.work if tally.work > 0 else float("nan")
                print(f"{counts}, {now - began:.0f} s, about {left:.0f} s left", file=sys.stderr, flush=True)

        yield show


@contextmanager
def _bar(text: str) -> Iterator[Any]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn(text), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeElapsedColumn(),
               TextColumn("left"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield progress, progress.add_task("", total=None)
