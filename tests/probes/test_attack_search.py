"""The attack search keeps to its budget, finds what is known to hurt, and reports what can be measured again."""

from __future__ import annotations

import numpy as np
import pytest

from iclab import Budget, IclabError, attack_error, from_labelled, measure_error, replace, worst_attack
from iclab.papers.mamba.settings import attacked_prompts

TEST = attacked_prompts("flip", 0.3)
EFFORT = {"steps": 12, "starts": 2, "searched": 128, "count": 2000}


def test_a_reversed_outlier_opens_the_gate(trained_mamba, trained_linear):
    worst = worst_attack(trained_mamba[0], TEST, Budget(6.0), **EFFORT)
    assert worst.error > 0.9 > 0.1 > measure_error(trained_mamba[0], TEST, count=2000).error
    assert worst.coefficient_sum < 0.1
    assert (worst.rule, worst.placement) == ("flip", "close")
    assert worst.norm <= 6.0 + 1e-4
    v = TEST.outliers()
    np.testing.assert_allclose(worst.vector @ v.T @ v, worst.vector, atol=1e-4)
    assert worst_attack(trained_linear[0], TEST, Budget(6.0), **EFFORT).error < 0.2


def test_the_error_is_that_of_the_same_attack_written_as_prompts(trained_mamba):
    worst = worst_attack(trained_mamba[0], TEST, Budget(6.0, 2.0), **EFFORT)
    spec = worst.on(TEST)
    assert worst.error == pytest.approx(measure_error(trained_mamba[0], spec, count=4000).error, abs=0.04)
    row = tuple(float(c) for c in TEST.outliers() @ worst.vector)
    mixed = replace(spec, outlier_vectors=None, outlier_mixtures=(row,), outlier_scale=worst.norm)
    np.testing.assert_allclose(spec.sample(0, 20).x, mixed.sample(0, 20).x, atol=1e-4)
    assert attack_error(trained_mamba[0], replace(TEST, outlier_fraction=0.02), worst, count=2000) < worst.error


def test_limits_are_kept(trained_mamba):
    inside = worst_attack(trained_mamba[0], TEST, Budget(6.0, 2.0, least_sum=0.3, rules=("flip",)), **EFFORT)
    assert 2.0 - 1e-4 <= inside.norm <= 6.0 + 1e-4
    assert inside.coefficient_sum >= 0.3 - 1e-3
    free = worst_attack(trained_mamba[0], TEST, Budget(3.0, free=True, placements=("far",)), **EFFORT)
    assert free.placement == "far"
    assert free.norm <= 3.0 + 1e-4


def test_bad_budgets_are_named(trained_mamba):
    for budget, line in ((lambda: Budget(-1.0), "largest must be above 0"),
                         (lambda: Budget(1.0, 2.0), r"smallest must lie in \[0, 1\]"),
                         (lambda: Budget(1.0, free=True, least_sum=0.1), "least_sum must be None"),
                         (lambda: Budget(1.0, placements=("near",)), "placements must be among random"),
                         (lambda: Budget(1.0, rules=("lie",)), "rules must be among flip")):
        with pytest.raises(IclabError, match=line):
            budget()
    with pytest.raises(IclabError, match="outlier_fraction must be above 0"):
        worst_attack(trained_mamba[0], replace(TEST, outlier_fraction=0.0), Budget(1.0))


def test_only_trained_runs_and_classification_can_be_attacked(trained_mamba):
    rows = from_labelled(np.eye(8), [0, 1] * 4, perturb=np.copy, outlier_fraction=0.3)
    for search in (lambda model, prompts: worst_attack(model, prompts, Budget(1.0)),
                   lambda model, prompts: attack_error(model, prompts, None)):
        with pytest.raises(IclabError, match=r"prompts must be Classification, whose .*, got 'ArrayPrompts'"):
            search(trained_mamba[0], rows)
        with pytest.raises(IclabError, match=r"trained must be a trained run .*, got 'function'"):
            search(lambda batch: batch.label, TEST)
