"""Premises that all theorems of a paper share: its algorithm, its data, tasks that cover the patterns."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from iclab.prompts.tasks import parse_tasks
from iclab.theory.statements import Condition, at_least, at_most, is_so


def balanced(training: Any) -> bool:
    """Condition 3.2 of li2024icl: every pattern occurs equally often, and at least once, with either label."""
    tasks = parse_tasks(training.tasks, training.task_patterns)
    counts = Counter([(a, 1) for a, _ in tasks] + [(b, -1) for _, b in tasks])
    return len(counts) == 2 * training.task_patterns and len(set(counts.values())) == 1


def task_count(training: Any) -> int:
    """The number of training tasks."""
    return len(parse_tasks(training.tasks, training.task_patterns))


def algorithm(run: Any, loss: str) -> Condition:
    """Plain SGD on the paper's loss."""
    training = run.training
    return is_so(f"Algorithm 1: plain SGD on the {loss} loss",
                 training.optimizer == "sgd" and training.clip_norm is None and training.loss == loss)


def plain_patterns(training: Any, place: str) -> tuple[Condition, ...]:
    """Relevant patterns with coefficient 1, norm at least 1 and no noise; a small irrelevant scale."""
    unit = float(training.coefficient_low) == float(training.coefficient_high) == 1.0
    return (at_least(f"{place}: pattern norm beta", float(training.pattern_norm), 1.0),
            at_most(f"{place}: irrelevant scale K of training", float(training.irrelevant_scale), 0.5),
            is_so(f"{place}: relevant patterns have coefficient 1, and there is no noise",
                  unit and not float(training.noise_norm or 0.0)))


def same_patterns(training: Any, test: Any, place: str) -> Condition:
    """The test uses the patterns and outliers of training, possibly mixed."""
    fields = ("dimension", "relevant_patterns", "irrelevant_patterns", "outlier_patterns", "rotation_seed", "basis")
    return is_so(f"{place}: the test is made of the patterns of training",
                 all(getattr(training, name) == getattr(test, name) for name in fields)
                 and float(training.pattern_norm) == float(test.pattern_norm))


def orthonormal(test: Any) -> bool:
    """Whether new patterns are orthogonal and as long as those of training."""
    if test.pattern_mixtures is None:
        return True
    rows = np.asarray(test.pattern_mixtures)
    return bool(np.allclose(rows @ rows.T, np.eye(len(rows)), atol=0.02))
