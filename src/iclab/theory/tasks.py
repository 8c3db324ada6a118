"""Condition 3.2 of li2024icl, which li2025mamba and li2024selectors ask for too."""

from __future__ import annotations

from collections import Counter
from typing import Any

from iclab.prompts.tasks import parse_tasks


def balanced(training: Any) -> bool:
    """Whether every pattern occurs equally often, and at least once, with either label."""
    tasks = parse_tasks(training.tasks, training.task_patterns)
    counts = Counter([(a, 1) for a, _ in tasks] + [(b, -1) for _, b in tasks])
    return len(counts) == 2 * training.task_patterns and len(set(counts.values())) == 1


def task_count(training: Any) -> int:
    """How many tasks are trained."""
    return len(parse_tasks(training.tasks, training.task_patterns))
