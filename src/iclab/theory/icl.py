"""What li2024icl's theorems ask for and promise, given specs. Premises up to unknown constants are left out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from iclab.prompts.tasks import parse_tasks
from iclab.theory.conditions import Condition

EXPONENTS = {"M1": 1.0, "beta": -2 / 3, "eta": -1.0, "alpha": -2 / 3}
"""T = Theta(eta^-1 M1 alpha^(-2/3) beta^(-2/3) sqrt(log M1)), theorem 3.3 (iv)."""
LENGTH_EXPONENT = -1.0
"""l_tr >= Omega(log M1 / alpha) and l_ts >= 1 / alpha', theorem 3.3 (iii)."""


def balanced(training: Any) -> bool:
    """Condition 3.2: every pattern occurs equally often, and at least once, with either label."""
    tasks = parse_tasks(training.tasks, training.task_patterns)
    counts = Counter([(a, 1) for a, _ in tasks] + [(b, -1) for _, b in tasks])
    return len(counts) == 2 * training.task_patterns and len(set(counts.values())) == 1


def least_pattern_sum(test: Any) -> float:
    """The least S_j: coefficients of a test pattern over the training patterns, summed; 1 in domain."""
    return 1.0 if test.pattern_mixtures is None else float(np.asarray(test.pattern_mixtures).sum(axis=1).min())


def theorem33_conditions(run: Any, test: Any) -> list[Condition]:
    """Premises of theorem 3.3 (in domain)."""
    delta, rate = float(run.model.init_scale), float(run.training.learning_rate)
    needed = 1 / float(test.decisive_fraction)
    return [
        Condition("Condition 3.2: tasks show every pattern equally often with either label", "yes",
                  "yes" if balanced(run.prompts) else "no", balanced(run.prompts)),
        Condition("Theorem 3.3: step size eta", "<= 1", f"{rate:g}", rate <= 1),
        Condition("Algorithm 1: starting value delta", "in (0, 0.2]", f"{delta:g}", 0 < delta <= 0.2),
        Condition("Theorem 3.3 (iii): test examples", f">= {needed:.3g}", f"{test.prompt_length}",
                  test.prompt_length >= needed),
    ]


def theorem34_conditions(run: Any, test: Any) -> list[Condition]:
    """Premises of theorem 3.4 (out of domain)."""
    least = least_pattern_sum(test)
    return [*theorem33_conditions(run, test),
            Condition("Theorem 3.4: least coefficient sum of a new pattern", ">= 1", f"{least:.3g}", least >= 1)]
