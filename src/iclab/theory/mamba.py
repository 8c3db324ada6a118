"""What li2025mamba's theorems ask for and promise, given specs.

A bound here is sufficient, not necessary: outside it the theorem is silent, and a measurement decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from iclab.theory.conditions import Condition


def tolerated_fraction_mamba(training: Any, test: Any) -> float:
    """`min(1, p_a l_tr / l_ts)`: below this outlier fraction theorem 2 (c) promises a small error."""
    return min(1.0, training.outlier_fraction * training.prompt_length / test.prompt_length)


def tolerated_fraction_linear() -> float:
    """1/2: below this outlier fraction theorem 4 (c) promises a small error for the linear Transformer."""
    return 0.5


def promise(run: Any, test: Any) -> float:
    """Above 0 where the numbered premises of theorem 2 (Mamba) or 4 (linear Transformer) hold for training and test.

    The least of the coefficient sum (a), the room of the outlier scale (b, Mamba only) and of the outlier fraction (c);
    NaN for a model of which no theorem speaks. Premises up to unknown constants are left out.
    """
    training, member = run.prompts, getattr(run.model, "member", None)
    if member == "linear":
        return min(least_coefficient_sum(test), tolerated_fraction_linear() - test.outlier_fraction)
    if member == "mamba":
        return min(least_coefficient_sum(test), test.outlier_scale - training.outlier_scale,
                   tolerated_fraction_mamba(training, test) - test.outlier_fraction)
    return float("nan")


def least_coefficient_sum(test: Any) -> float:
    """L: the least sum of a test outlier's coefficients over the training outliers, its direction of unit length."""
    rows = np.asarray(test.outlier_mixtures if test.outlier_mixtures is not None else np.eye(test.outlier_patterns))
    return float((rows / np.linalg.norm(rows, axis=1, keepdims=True)).sum(axis=1).min())


def theorem2_conditions(training: Any, test: Any) -> list[Condition]:
    """Premises (a) to (c) of theorem 2 that carry numbers; those up to unknown constants are left out."""
    least = least_coefficient_sum(test)
    limit = tolerated_fraction_mamba(training, test)
    return [
        Condition("Theorem 2 (a): coefficient sum of the test outlier", "> 0", f"{least:.3f}", least > 0),
        Condition("Theorem 2 (b): test outlier scale", f">= {training.outlier_scale:g}", f"{test.outlier_scale:g}",
                  test.outlier_scale >= training.outlier_scale),
        Condition("Theorem 2 (c): outlier fraction below min(1, p_a l_tr / l_ts)", f"< {limit:g}",
                  f"{test.outlier_fraction:g}", test.outlier_fraction < limit),
    ]
