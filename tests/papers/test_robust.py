"""`mamba.robust`: its rule passes a trained pair and fails on every broken Mamba that it is meant to catch."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from iclab import replace
from iclab.models.gates import GateParams
from iclab.papers.mamba.robust import checks
from iclab.papers.mamba.robustness import Robustness, references, rule_errors
from iclab.papers.mamba.settings import FRACTIONS, attacked_prompts, training_prompts
from iclab.theory.mamba import theorem2_conditions, tolerated_fraction_mamba
from iclab.training.sgd import begin

SEEDS = [0, 1, 2, 3]


@pytest.fixture(scope="module")
def linear_errors(trained_linear):
    return rule_errors(trained_linear, SEEDS, 2000)


@pytest.fixture(scope="module")
def allowed():
    return references(1000)


def judged(mamba, linear_errors, allowed):
    floor, bayes = (np.array(values) for values in allowed)
    errors = {"paper": {"mamba": rule_errors(mamba, SEEDS, 4000), "linear": linear_errors}}
    return checks(Robustness(errors, floor, bayes, SEEDS, []))


def test_the_floor_is_the_number_of_the_spec(allowed):
    assert allowed[0][FRACTIONS.index(0.8)] == pytest.approx(0.0058, abs=5e-5)


def test_a_trained_pair_is_not_failed(trained_mamba, linear_errors, allowed):
    checked = judged(trained_mamba, linear_errors, allowed)
    # Three thousand steps are fewer than the ten thousand of the claim: flip may be inconclusive, never failed.
    assert "fails" not in [check.verdict for check in checked]
    assert checked[-1].verdict == "holds"


def test_an_untrained_mamba_fails(trained_mamba, linear_errors, allowed):
    untrained = [dataclasses.replace(t, params=jax.tree.map(np.asarray, begin(t.run).params)) for t in trained_mamba]
    assert judged(untrained, linear_errors, allowed)[0].verdict == "fails"


def test_mamba_with_its_gate_at_one_fails(trained_mamba, linear_errors, allowed):
    def ungated(trained):
        run = replace(trained.run, model=replace(trained.run.model, member="linear"))
        gate = GateParams(np.zeros((0, 31), np.float32), np.zeros(0, np.float32))
        return dataclasses.replace(trained, run=run, params=(trained.params[0]._replace(gate=gate),))

    checked = judged([ungated(t) for t in trained_mamba], linear_errors, allowed)
    assert checked[0].verdict == "fails"


def test_a_linear_transformer_that_does_not_break_fails_the_rule(trained_mamba, linear_errors, allowed):
    assert judged(trained_mamba, 0.0 * linear_errors, allowed)[-1].verdict == "fails"


def test_the_conditions_say_that_the_claim_goes_beyond_theorem_2():
    conditions = theorem2_conditions(training_prompts(), attacked_prompts("flip", 0.8))
    assert [condition.met for condition in conditions] == [True, True, False]
    assert all(c.met for c in theorem2_conditions(training_prompts(), attacked_prompts("flip", 0.5)))
    assert tolerated_fraction_mamba(training_prompts(), attacked_prompts("flip", 0.5)) == pytest.approx(0.6)
    assert not theorem2_conditions(training_prompts(), attacked_prompts("flip", 0.5, 0.5))[1].met
