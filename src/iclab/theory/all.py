"""Which theorems apply to a spec: each paper's enter with the kinds of models and prompts that they are about.

    theorems(GatedAttention, Classification, covers=lambda run: run.model.layers == 1)(statements)

A package of your own adds its theorems in the same way; `statements(run, test, accuracy, constants)` returns a list of
`Statement`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

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


Statements = Callable[[Any, Any, float, Mapping[str, Constant] | None], list[Statement]]
"""`(run, test, accuracy, constants) -> statements`."""


class Theory(NamedTuple):
    """The theorems of a paper, and what they are about."""

    model: type
    prompts: type
    covers: Callable[[Any], bool]
    statements: Statements


_THEORIES: list[Theory] = []


def theorems(model: type, prompts: type, covers: Callable[[Any], bool] = lambda run: True
             ) -> Callable[[Statements], Statements]:
    """Enter the theorems about models and prompts of these kinds, where `covers(run)`."""
    def enter(statements: Statements) -> Statements:
        _THEORIES.append(Theory(model, prompts, covers, statements))
        return statements

    return enter


theorems(GatedAttention, Classification, lambda run: run.model.layers == 1 and run.model.member in ("mamba", "linear"))(
    mamba.statements)
theorems(SoftmaxMLP, Classification)(icl.statements)
theorems(SoftmaxMLP, Classification)(selectors.statements)
theorems(ChainAttention, Chain)(cot.statements)


def theory_of(run: Any, test: Any = None, *, accuracy: float = 0.1, constants: Mapping[str, Constant] | None = None
              ) -> list[Statement]:
    """Every theorem, corollary, proposition and condition about a run's model, evaluated for the run and a test.

    The default test is the training prompts. The list is empty if no theorem applies to the model. The mamba paper's
    theorems cover one layer; those for Mamba and for the linear Transformer are returned together.
    """
    require(1e-6 <= accuracy < 1, "accuracy", accuracy, "be in [1e-06, 1)")
    test = run.prompts if test is None else test
    for path, value in (flat(run) | flat(test, "test.")).items():
        moderate = not isinstance(value, float) or value == 0 or LEAST <= abs(value) <= 1 / LEAST
        require(moderate, path, value, f"be 0 or between {LEAST:g} and {1 / LEAST:g} in size, or powers of it overflow")
    return [statement for theory in _THEORIES
            if isinstance(run.model, theory.model) and isinstance(run.prompts, theory.prompts)
            and isinstance(test, theory.prompts) and theory.covers(run)
            for statement in theory.statements(run, test, accuracy, constants)]
