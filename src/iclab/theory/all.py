"""Which theorems apply to a spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iclab.core.errors import require
from iclab.core.parse import flat
from iclab.models import ChainAttention, GatedAttention, SoftmaxMLP
from iclab.prompts import Chain, Classification
from iclab.theory import cot, icl, mamba, selectors
from iclab.theory.statements import Constant, Law, Statement

LAWS: tuple[Law, ...] = (*mamba.ITERATIONS.values(), *mamba.EXAMPLES.values(), icl.ITERATIONS, icl.TRAINING_LENGTH,
                         icl.EXAMPLES, selectors.ITERATIONS, cot.ITERATIONS, cot.TRAINING_LENGTH,
                         *cot.EXAMPLES.values())
"""Every law with a constant that an entry fits."""

LEAST = 1e-30
"""Spec fields must be 0 or between this and its inverse in size, so that powers of them stay finite."""


def theory_of(run: Any, test: Any = None, *, accuracy: float = 0.1, constants: Mapping[str, Constant] | None = None
              ) -> list[Statement]:
    """Every theorem, corollary, proposition and condition about a run's model, evaluated for the run and a test.

    The default test is the training prompts. The list is empty if no theorem applies to the model. The mamba paper's
    theorems cover one layer; those for Mamba and for the linear Transformer are returned together.
    """
    require(1e-6 <= accuracy < 1, "accuracy", accuracy, "be in [1e-06, 1)")
    model, test = run.model, run.prompts if test is None else test
    for path, value in (flat(run) | flat(test, "test.")).items():
        moderate = not isinstance(value, float) or value == 0 or LEAST <= abs(value) <= 1 / LEAST
        require(moderate, path, value, f"be 0 or between {LEAST:g} and {1 / LEAST:g} in size, or powers of it overflow")
    classifies = isinstance(run.prompts, Classification) and isinstance(test, Classification)
    if isinstance(model, GatedAttention) and classifies and model.layers == 1 and model.member in ("mamba", "linear"):
        return mamba.statements(run, test, accuracy, constants)
    if isinstance(model, SoftmaxMLP) and classifies:
        return [*icl.statements(run, test, accuracy, constants), *selectors.statements(run, test, accuracy, constants)]
    if isinstance(model, ChainAttention) and isinstance(test, Chain):
        return cot.statements(run, test, accuracy, constants)
    return []
