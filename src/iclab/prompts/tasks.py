"""Tasks: ordered pairs of relevant patterns, and the families that training draws from.

Task (a, b) labels pattern a with +1 and pattern b with -1. With M patterns there are M(M-1) tasks.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Int

from iclab.core.errors import SpecError, require

Task = tuple[int, int]
MOST_TASKS = 2**20
"""Most tasks that patterns may have: programs read a list of them all."""


def all_tasks(patterns: int) -> tuple[Task, ...]:
    """Every ordered pair of different patterns."""
    return tuple((a, b) for a in range(patterns) for b in range(patterns) if a != b)


def cyclic_tasks(patterns: int, shifts: int) -> tuple[Task, ...]:
    """The cyclic family: task (k-1)M+j maps pattern j to +1 and pattern j+k to -1, for j in [M], k in [shifts].

    Every (pattern, label) occurs `shifts` times (Condition 3.2). Reference: li2024icl, section 3.2.
    """
    require(1 <= shifts <= patterns - 1, "tasks (shifts of the cyclic family)", shifts, f"be in [1, {patterns - 1}]")
    return tuple((j, (j + k) % patterns) for k in range(1, shifts + 1) for j in range(patterns))


def parse_tasks(tasks: str | tuple[Task, ...], patterns: int) -> tuple[Task, ...]:
    """The tasks that a spec's `tasks` field names: `all`, `cyclic:U`, `unseen:U` (those outside it), or a list."""
    rule = f"be 'all', 'cyclic:U', 'unseen:U' or pairs of different patterns below {patterns}"
    require(patterns * (patterns - 1) <= MOST_TASKS, "patterns of the tasks", patterns,
            f"have at most {MOST_TASKS:,} ordered pairs")
    if isinstance(tasks, str):
        if tasks == "all":
            return all_tasks(patterns)
        match = re.fullmatch(r"(cyclic|unseen):([0-9]{1,9})", tasks)
        if match is None:
            raise SpecError(f"tasks must {rule}, got {tasks!r}")
        seen = cyclic_tasks(patterns, int(match[2]))
        if match[1] == "cyclic":
            return seen
        known = set(seen)
        unseen = tuple(task for task in all_tasks(patterns) if task not in known)
        require(len(unseen) > 0, "tasks", tasks, "leave at least one task outside the cyclic family")
        return unseen
    pairs = isinstance(tasks, tuple) and len(tasks) > 0 and all(isinstance(pair, tuple) and len(pair) == 2
                                                                for pair in tasks)
    require(pairs and all(isinstance(p, (int, np.integer)) for pair in tasks for p in pair), "tasks", tasks, rule)
    listed = tuple((int(a), int(b)) for a, b in tasks)
    for a, b in listed:
        require(a != b and 0 <= a < patterns and 0 <= b < patterns, "tasks", (a, b), rule)
    return listed


def tasks_code(spec: Any, tasks: str | tuple[Task, ...]) -> Int[np.ndarray, "rows 5"]:
    """What programs read of a task set: its possible queries, padded with zero rows to the number for all tasks."""
    return _padded_cells(tasks, spec.task_patterns)


@cache
def _padded_cells(tasks: str | tuple[Task, ...], patterns: int) -> Int[np.ndarray, "rows 5"]:
    cells = query_cells(parse_tasks(tasks, patterns))
    return np.pad(cells, ((0, max(0, 2 * patterns * (patterns - 1) - len(cells))), (0, 0)))


@cache
def query_cells(tasks: tuple[Task, ...]) -> Int[np.ndarray, "cells 5"]:
    """Every possible query, two per task, sorted by query pattern and label.

    Rows (query pattern, partner pattern, label, first row of the same query and label, how many such rows).
    """
    rows = [(a, b, 1) for a, b in tasks] + [(b, a, -1) for a, b in tasks]
    rows.sort(key=lambda row: (row[0], row[2]))
    queries = [(row[0], row[2]) for row in rows]
    count, first = Counter(queries), {query: place for place, query in reversed(list(enumerate(queries)))}
    return np.array([(*row, first[query], count[query]) for row, query in zip(rows, queries, strict=True)],
                    dtype=np.int32)
