"""Tests inside the premises of the theorems: training tasks, new patterns, and prompts as short as theorem 2 allows.

Orthogonal combinations with coefficients >= 0 have no training pattern in common. Of four patterns there are so two
pairs, which leave no third pattern, so that every example is decisive; or one pair and the other two unchanged.
"""

from __future__ import annotations

import math

import numpy as np

from iclab.papers.selectors.settings import theorem_prompts
from iclab.prompts import Classification
from iclab.prompts.patterns import Matrix

R = float(np.sqrt(0.5))
TWO_PAIRS: Matrix = ((R, R, 0.0, 0.0), (0.0, 0.0, R, R))
ONE_PAIR: Matrix = ((R, R, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))
SUM_ZERO: Matrix = ((R, -R, 0.0, 0.0), (0.0, 0.0, R, -R))
POSITIVE = ("two pairs", "one pair")


def single_tasks() -> dict[str, Classification]:
    """The training tasks one by one."""
    M1 = theorem_prompts().relevant_patterns
    return {f"task {a + 1}, {b + 1}": theorem_prompts(tasks=((a, b),)) for a, b in ((i, (i + 1) % M1)
                                                                                   for i in range(M1))}


def new_patterns() -> dict[str, Classification]:
    """All tasks with combinations of the training patterns: positive ones, and those of coefficient sum 0."""
    rows = {"two pairs": TWO_PAIRS, "one pair": ONE_PAIR, "coefficient sum 0": SUM_ZERO}
    return {name: theorem_prompts(pattern_mixtures=mixtures, tasks="all",
                                  decisive_fraction=1.0 if len(mixtures) == 2 else 0.8)
            for name, mixtures in rows.items()}


def shortest() -> Classification:
    """New patterns in prompts of 2 / alpha' examples."""
    fraction = float(theorem_prompts().decisive_fraction)
    return theorem_prompts(pattern_mixtures=ONE_PAIR, tasks="all", prompt_length=math.ceil(2 / fraction))
