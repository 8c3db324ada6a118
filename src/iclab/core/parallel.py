"""Independent compiled programs side by side, one per core.

A pack of a few models fits a core's cache and XLA gains little from splitting its small operations over cores, so
several packs in threads finish sooner than one wide pack (benchmarks/ensemble_width.py measures it).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import jax

A = TypeVar("A")
B = TypeVar("B")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_workers() -> int:
    """How many programs to run side by side: one per core, or one in all when it is spread over several devices."""
    return cores() if len(jax.devices()) == 1 else 1


def each(function: Callable[[A], B], items: Iterable[A], workers: int | None = None,
         stop: threading.Event | None = None, meanwhile: Callable[[], None] | None = None
         ) -> Generator[tuple[int, B], None, None]:
    """Yield `(index, function(item))` as they finish; an interruption sets `stop` and cancels what has not begun.

    `meanwhile()` is called in the caller's thread again and again while it waits.
    """
    items = list(items)
    pool = ThreadPoolExecutor(max_workers=workers or cores())
    double = bool(jax.config.values["jax_enable_x64"])

    def in_same_precision(item: A) -> B:
        # A new thread starts in JAX's default precision, not its caller's.
        with jax.enable_x64(double):
            return function(item)

    finished: SimpleQueue[Future[B]] = SimpleQueue()
    try:
        futures = {pool.submit(in_same_precision, item): index for index, item in enumerate(items)}
        for future in futures:
            future.add_done_callback(finished.put)
        for _ in items:
            future = _next(finished, meanwhile)
            yield futures[future], future.result()
    except BaseException:
        if stop is not None:
            stop.set()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _next(queue: SimpleQueue[Future[B]], meanwhile: Callable[[], None] | None) -> Future[B]:
    """The next item of the queue. It waits in short intervals, because a signal delivered to another thread would not
    end one long wait."""
    while True:
        with suppress(Empty):
            return queue.get(timeout=0.2)
        if meanwhile is not None:
            meanwhile()


class Compiled:
    """Programs compiled once each, even when several threads request them at once."""

    def __init__(self) -> None:
        self._programs: dict[Any, Any] = {}
        self._locks: dict[Any, threading.Lock] = {}
        self._lock = threading.Lock()

    def of(self, function: Callable[..., Any], *args: Any) -> Any:
        """`function` compiled for arguments of these structures and shapes."""
        leaves, tree = jax.tree.flatten(args)
        return self.get((function, tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves)), function, *args)

    def get(self, name: Any, function: Callable[..., Any], *args: Any, **shardings: Any) -> Any:
        """`function` compiled for arguments like these; concurrent callers wait for it."""
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            if name not in self._programs:
                self._programs[name] = jax.jit(function, **shardings).lower(*args).compile(compiler_options())
            return self._programs[name]


def compiler_options() -> dict[str, Any]:
    """On a CPU each program uses one core: parallel programs fill the others better than one split into small parts.

    LLVM's first level of optimisation compiles a fifth to a third faster than its default, and programs run as fast;
    without any, they run three times slower.
    """
    if jax.default_backend() != "cpu":
        return {}
    return {"xla_cpu_multi_thread_eigen": False, "xla_backend_optimization_level": 1}
