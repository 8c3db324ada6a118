"""`mamba.robust`: its rule passes a trained pair and fails on every broken Mamba that it is meant to catch."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from every_entry import verdicts

from iclab import replace
from iclab.models.gates import GateParams
from iclab.papers.mamba import robust
from iclab.papers.mamba.robustness import FLOOR, Robustness, attacks, bayes_errors, by_rule
from iclab.papers.mamba.settings import FRACTIONS, attacked_prompts, training_prompts
from iclab.probes import model_errors
from iclab.theory.mamba import theorem2_conditions, tolerated_fraction_mamba
from iclab.training.sgd import begin

SEEDS = [0, 1, 2, 3]


def errors_of(models):
    return by_rule(model_errors(models, attacks(), count=4000, seeds=SEEDS))


@pytest.fixture(scope="module")
def linear_errors(trained_linear):
    return errors_of(trained_linear)


def measured(mamba, linear_errors):
    return Robustness({"paper": {"mamba": errors_of(mamba), "linear": linear_errors}}, 4000)


def judged(mamba, linear_errors):
    return verdicts(robust.figure(measured(mamba, linear_errors)))


def test_the_floor_is_the_number_of_the_spec():
    assert FLOOR[FRACTIONS.index(0.8)] == pytest.approx(0.0058, abs=5e-5)
    assert bayes_errors(1000)[FRACTIONS.index(0.8)] <= 0.02


def test_a_trained_pair_is_not_failed(trained_mamba, linear_errors):
    # Three thousand steps are fewer than the ten thousand of the claim: flip may be inconclusive, never failed.
    verdict_of = judged(trained_mamba, linear_errors)
    assert "fails" not in verdict_of
    assert verdict_of[-1] == "holds"
    sound = measured(trained_mamba, linear_errors)
    rules = (robust.at_the_floor(sound, robust.MAMBA),
             *(robust.promised(sound, member) for member in ("mamba", "linear")))
    assert all(set(verdicts(rule)) == {"holds"} for rule in rules)


def test_an_untrained_mamba_fails(trained_mamba, linear_errors):
    untrained = [dataclasses.replace(t, params=jax.tree.map(np.asarray, begin(t.run).params)) for t in trained_mamba]
    assert judged(untrained, linear_errors)[0] == "fails"
    assert verdicts(robust.promised(measured(untrained, linear_errors), "mamba"))[0] == "fails"


def test_mamba_with_its_gate_at_one_fails(trained_mamba, linear_errors):
    def ungated(trained):
        run = replace(trained.run, model=replace(trained.run.model, member="linear"))
        gate = GateParams(np.zeros((0, 31), np.float32), np.zeros(0, np.float32))
        return dataclasses.replace(trained, run=run, params=(trained.params[0]._replace(gate=gate),))

    assert judged([ungated(t) for t in trained_mamba], linear_errors)[0] == "fails"


def test_a_linear_transformer_that_does_not_break_fails_the_rule(trained_mamba, linear_errors):
    assert judged(trained_mamba, 0.0 * linear_errors)[-1] == "fails"


def test_the_conditions_say_that_the_claim_goes_beyond_theorem_2():
    conditions = theorem2_conditions(training_prompts(), attacked_prompts("flip", 0.8))
    assert [condition.met for condition in conditions] == [True, True, False]
    assert all(c.met for c in theorem2_conditions(training_prompts(), attacked_prompts("flip", 0.5)))
    assert tolerated_fraction_mamba(training_prompts(), attacked_prompts("flip", 0.5)) == pytest.approx(0.6)
    assert not theorem2_conditions(training_prompts(), attacked_prompts("flip", 0.5, 0.5))[1].met


def test_a_model_that_does_not_break_beyond_one_half_fails_the_rule(trained_mamba, linear_errors):
    assert verdicts(robust.broken(measured(trained_mamba, linear_errors)))[0] == "holds"
    assert verdicts(robust.broken(measured(trained_mamba, 0.0 * linear_errors))) == ["fails"] * 3


def test_a_linear_transformer_that_breaks_early_fails_theorem_4(trained_mamba, linear_errors):
    late = np.roll(linear_errors, 3, axis=2)  # the errors of 0.7 to 0.9 at 0 to 0.2
    assert verdicts(robust.promised(measured(trained_mamba, late), "linear"))[0] == "fails"


def test_an_error_below_one_hundredth_asks_for_scale_and_tasks(trained_mamba, linear_errors):
    def with_settings(models):
        tests = [attacked_prompts(rule, robust.CLOSE, factor) for rule in robust.RULES for factor in robust.FACTORS]
        errors = model_errors(models, tests, count=2000, seeds=SEEDS).reshape(len(models), len(robust.RULES), -1)
        return dataclasses.replace(measured(trained_mamba, linear_errors),
                                   settings={2: 0.1 + 0.5 * errors, 3: errors, 5: errors})

    sound = with_settings(trained_mamba)
    assert "fails" not in verdicts(robust.below(sound)) + verdicts(robust.asked_for(sound))
    assert "U of at least 3" in robust.least(sound)
    assert verdicts(robust.below_at_the_end(sound))[0] != "holds"  # not even a perfect filter would pass under flip
    untrained = [dataclasses.replace(t, params=jax.tree.map(np.asarray, begin(t.run).params)) for t in trained_mamba]
    assert verdicts(robust.below(with_settings(untrained))) == ["fails"] * 3
    assert "fails" in verdicts(robust.asked_for(with_settings(untrained)))
    without = dataclasses.replace(sound, settings={U: 0.0 * of for U, of in sound.settings.items()})
    assert verdicts(robust.asked_for(without))[:2] == ["fails", "fails"]  # anything would do
