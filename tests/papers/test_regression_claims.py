"""Rules on regression prompts: they hold on what theory predicts and fail on broken models."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from every_entry import verdicts
from untrained import UntrainedLab

from iclab.lab.entries import Size
from iclab.lab.judging import run_entry
from iclab.papers.beyond import regression_outliers, regression_pool, regression_step
from iclab.sweeps.store import Store

NOISE = np.random.default_rng(0).normal(size=(6, 1))


def test_predictions_that_differ_fail():
    rule = regression_step.same_predictions("new tasks")

    def differences(apart):
        return {"new tasks": apart * (1 + 0.05 * NOISE[..., None]) * np.ones((6, 3, 2))}

    assert verdicts(rule(differences(5e-4))) == ["holds", "holds"]
    assert verdicts(rule(differences(0.1))) == ["fails", "fails"]


def test_the_limit_holds_and_a_model_that_never_memorises_fails():
    limits = np.array(regression_pool.LIMITS)
    near = regression_pool.Measured(*(column * (1 + 0.005 * NOISE) for column in limits.T))
    rules = (regression_pool.on_new_tasks, regression_pool.on_the_pool, regression_pool.transition)
    assert [set(verdicts(rule(near))) for rule in rules] == [{"holds"}] * 3
    same = np.full((6, len(limits)), limits[-1, 0]) * (1 + 0.005 * NOISE)
    assert ["fails" in verdicts(rule(regression_pool.Measured(same, same))) for rule in rules] == [True] * 3


def outlier_errors(mamba, linear):
    references = {"step, clean only": 0.3, "ridge": 0.8, "ridge, clean only": 0.12}
    shape = (len(regression_outliers.RULES), len(regression_outliers.FRACTIONS))
    models = {name: value * (1 + 0.01 * NOISE[..., None]) * np.ones((6, *shape))
              for name, value in (("mamba", mamba), ("linear", linear))}
    return regression_outliers.Errors(models, {name: np.full(shape, value) for name, value in references.items()})


def test_a_gate_that_filters_holds_and_one_that_is_open_fails():
    rules = (regression_outliers.floor, regression_outliers.unseen, regression_outliers.between_estimators)
    assert [set(verdicts(rule(outlier_errors(0.31, 1.3)))) for rule in rules] == [{"holds"}] * 3
    assert ["fails" in verdicts(rule(outlier_errors(1.3, 1.3))) for rule in rules] == [True] * 3


@pytest.mark.slow
@pytest.mark.parametrize("entry", [regression_step.ENTRY, regression_pool.ENTRY, regression_outliers.ENTRY],
                         ids=lambda entry: entry.id)
def test_no_rule_holds_on_untrained_models(entry, tmp_path):
    few = dataclasses.replace(entry, sizes={"tiny": Size(seeds=4, steps=16, prompts=1_000, batch=8)})
    outcome = run_entry(few, UntrainedLab(Store(tmp_path), "tiny"))
    assert [part.place for part in outcome.claim.parts if part.verdict == "holds"] == []
