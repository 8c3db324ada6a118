"""Hinge losses on the prompts that the theorems are about.

Section 3.2 assumes that at least a fraction alpha' / 2 of the test examples show the query's pattern. Prompts whose
examples are drawn one by one, as in the experiments, often have fewer; these are left out here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from jaxtyping import Float

from iclab.probes.error_rate import averages
from iclab.probes.looks import Look, Numbers, Shown
from iclab.prompts import Classification
from iclab.training import Trained


def least_matching(test: Classification) -> int:
    """How many examples must show the query's pattern."""
    return max(1, math.ceil(float(test.decisive_fraction) * test.prompt_length / 2 - 1e-9))


@cache
def _look(least: int) -> Look:
    """The loss summed over the prompts with as many matching examples, and the share of these prompts."""
    def means(shown: Shown) -> Numbers:
        pattern, xp = shown.pattern, shown.arrays
        known = ((pattern[:, :-1] == pattern[:, -1:]).sum(-1) >= least) * xp.ones_like(shown.outputs)
        return xp.stack([(xp.maximum(0.0, 1.0 - shown.label * shown.outputs) * known).mean(), known.mean()])

    return Look(means, inside=True)


def matched_losses(models: Sequence[Trained], tests: Sequence[Classification], prompts: int, seeds: Sequence[int]
                   ) -> Float[np.ndarray, "models tests"]:
    """Mean hinge loss over the prompts of each test that have enough matching examples."""
    columns = []
    for test in tests:
        loss, known = averages(_look(least_matching(test)), models, [test], prompts, seeds)[:, 0].T
        columns.append(loss / known)
    return np.stack(columns, axis=1)
