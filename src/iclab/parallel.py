"""Independent compiled programs side by side, one a core.

A pack of a few models fits a core's cache and XLA gains little from splitting its small operations over cores, so
several packs in threads finish sooner than one wide pack (benchmarks/ensemble_width.py measures it).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

import jax

A = TypeVar("A")
B = TypeVar("B")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(function: Callable[[A], B], items: Iterable[A], workers: int | None = None,
         stop: threading.Event | None = None) -> Iterator[tuple[int, B]]:
    """Yield `(index, function(item))` as they finish; an interruption sets `stop` and cancels what has not begun."""
    items = list(items)
    pool = ThreadPoolExecutor(max_workers=workers or cores())
    double = bool(jax.config.values["jax_enable_x64"])

    def in_same_precision(item: A) -> B:
        # A thread of its own would start in JAX's default precision, not in its caller's.
        with jax.enable_x64(double):
            return function(item)

    try:
        futures = {pool.submit(in_same_precision, item): index for index, item in enumerate(items)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        if stop is not None:
            stop.set()
        pool.shutdown(wait=True, cancel_futures=True)
