"""The rules about causes: each passes sound results and fails on a broken model."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from every_entry import verdicts

from iclab.papers.beyond import cot_cause, icl_cause, mamba_cause
from iclab.papers.cot.settings import a_run
from iclab.papers.icl.settings import in_domain, one_layer_run
from iclab.papers.mamba.trained import ungated, untrained
from iclab.probes import model_errors
from iclab.probes.interventions import clamp, intervene
from iclab.training import Trained, begin


def at_start(run, seeds=(0, 1)):
    """Models before their first step."""
    return [Trained(run.seeded(seed), begin(run.seeded(seed)).params, None, np.array([1]), np.array([1.0]))
            for seed in seeds]


def test_gates_are_the_cause_or_not(trained_mamba, trained_linear):
    judged = mamba_cause.attacked_prompts("flip", mamba_cause.JUDGED)
    names = (mamba_cause.GRAFTED, mamba_cause.POISONED, mamba_cause.CLEAN, mamba_cause.REMEMBERS, mamba_cause.FORGETS)

    def measured(mamba):
        models = {name: of for name, of in mamba_cause.changed(mamba, trained_linear[:2]).items()
                  if name in (*names, mamba_cause.MAMBA)}
        errors = model_errors([model for of in models.values() for model in of], [judged], count=500,
                              seeds=[0, 1] * len(models)).reshape(len(models), 2, 1)
        return mamba_cause.Cause({name: np.repeat(of, len(mamba_cause.FRACTIONS), axis=1)
                                  for name, of in zip(models, errors, strict=True)}, 20_000, np.zeros(2))

    sound, broken = measured(trained_mamba[:2]), measured([untrained(model) for model in trained_mamba[:2]])
    assert sound.at(mamba_cause.POISONED).min() > 0.9
    assert max(sound.at(name).max() for name in (mamba_cause.GRAFTED, mamba_cause.CLEAN, mamba_cause.REMEMBERS)) < 0.05
    assert sound.at(mamba_cause.FORGETS).min() > 0.4
    assert "fails" in verdicts(mamba_cause.transplanted(broken))
    assert "fails" in verdicts(mamba_cause.intake(broken))


def test_open_gates_are_linear_attention_or_not(trained_mamba):
    def differences(models):
        return mamba_cause.Cause({}, 1, mamba_cause.from_formula(models))

    models = trained_mamba[:2]
    assert verdicts(mamba_cause.exactly_linear(differences([intervene(m, clamp("gates", 1.0)) for m in models]))) == [
        "holds"]
    assert verdicts(mamba_cause.exactly_linear(differences([ungated(m) for m in models]))) == ["holds"]
    assert verdicts(mamba_cause.exactly_linear(differences([intervene(m, clamp("gates", 0.99)) for m in models]))) == [
        "fails"]


def with_error(**errors):
    """A `mamba_cause.Cause` with these errors at every fraction."""
    rng = np.random.default_rng(0)
    return mamba_cause.Cause({getattr(mamba_cause, name): np.clip(error + rng.normal(0, 1e-3, (8, 4)), 0, 1)
                              for name, error in errors.items()}, 20_000, np.zeros(8))


@pytest.mark.parametrize(("rule", "sound", "broken"), [
    (mamba_cause.near_trained, {"OPEN": 0.8, "LINEAR": 0.78}, {"OPEN": 0.01, "LINEAR": 0.78}),
    (mamba_cause.learned, {"UNLEARNED": 0.8}, {"UNLEARNED": 0.01}),
    (mamba_cause.poisoned_gates, {"POISONED": 0.8}, {"POISONED": 0.01}),
    (mamba_cause.clean_gates, {"CLEAN": 0.005}, {"CLEAN": 0.8}),
    (mamba_cause.intake, {"REMEMBERS": 0.005, "FORGETS": 0.8}, {"REMEMBERS": 0.8, "FORGETS": 0.8})])
def test_a_model_that_does_not_care_for_its_gates_fails(rule, sound, broken):
    assert set(verdicts(rule(with_error(**sound)))) == {"holds"}
    assert "fails" in verdicts(rule(with_error(**broken)))


@pytest.mark.slow
def test_untrained_attention_decides_nothing(small_lab):
    cause = icl_cause.measure(small_lab.at(icl_cause.ENTRY), at_start(one_layer_run(0.6, 100)))
    assert "fails" in verdicts(icl_cause.relevant(cause))
    assert "fails" in verdicts(icl_cause.neurons("large")(cause))


def test_causes_of_answers_in_context():
    def measured(relevant, irrelevant, same, other, small, large):
        rng = np.random.default_rng(0)

        def noisy(value):
            return np.clip(value + rng.normal(0, 1e-4, 8), 0, 1)

        errors = zip(icl_cause.CHANGES, map(noisy, (relevant, irrelevant, same, other)), strict=True)
        losses = {"whole": noisy(0.1), "small": noisy(small), "large": noisy(large)}
        return icl_cause.Cause(dict(errors), noisy(0.0), {"in domain": losses}, 10_000)

    sound, broken = measured(1.0, 0.0, 0.9, 0.0, 0.11, 0.5), measured(0.0, 0.1, 0.1, 0.1, 0.5, 0.1)
    for part in icl_cause.ENTRY.parts:
        assert set(verdicts(part.checks(sound))) == {"holds"}, part.place
        assert "fails" in verdicts(part.checks(broken)), part.place


def test_altered_queries_differ_as_they_should():
    batch = in_domain(0.6).sample(0, 50)
    swapped, moved = (np.asarray(jax.jit(jax.vmap(change))(batch).x) for change in (icl_cause.other_relevant,
                                                                                  icl_cause.other_irrelevant))
    x, task, rows = np.asarray(batch.x), np.asarray(batch.truth.task), np.arange(50)[:, None]
    np.testing.assert_array_equal(swapped[:, :-1], x[:, :-1])
    np.testing.assert_array_equal(swapped[rows, -1, task], x[rows, -1, task[:, ::-1]])
    np.testing.assert_array_equal(moved[:, -1, :6], x[:, -1, :6])
    assert set((swapped != x).sum(axis=(1, 2))) == set((moved != x).sum(axis=(1, 2))) == {2}


def test_an_untrained_model_is_not_misled_by_a_slip():
    shares = cot_cause.answers(at_start(a_run(10)), 100)
    cause = cot_cause.Cause(shares, 20_000)
    for part in cot_cause.ENTRY.parts:
        assert "fails" in verdicts(part.checks(cause)), part.place


def test_wrong_prompts_lead_to_one_wrong_answer():
    batch = cot_cause.TEST.sample(0, 40)
    read = {name: prompts.numpy() for name, prompts in cot_cause.prompts_of(batch).items()}
    clean, slipped, wrong = (read[name] for name in (cot_cause.CLEAN, cot_cause.SLIP, cot_cause.WRONG))
    truth = clean.truth
    for i in range(40):
        assert (slipped.x[i, -1] != clean.x[i, -1]).sum() == 2
        np.testing.assert_array_equal(slipped.y[i], clean.y[i])
        step, start = clean.step[i, -1], np.argmax(slipped.x[i, -1])
        examples = np.arange(len(clean.step[i]) - 1)
        now = examples[clean.step[i, examples] == step]
        reached = {int(truth.answer[i, j]) for j in now if truth.pattern[i, j] == start}
        match = [j for j in now if truth.pattern[i, j] == truth.pattern[i, -1]]
        assert {int(np.argmax(wrong.y[i, j])) for j in match} <= reached
        assert len(reached) == 1
        assert reached != {int(np.argmax(clean.label[i]))}
