"""The rules of `mamba.premises` and `mamba.bounds`: each passes sound results and fails on broken ones."""

from __future__ import annotations

import numpy as np
import pytest
from every_entry import verdicts

from iclab.lab.premises import premises_of
from iclab.papers.mamba import bounds, premises
from iclab.papers.mamba.trained import ungated, untrained
from iclab.probes import model_errors

SEEDS = [0, 1, 2, 3]


def losses(clean=-1.0, patterns=0.0, batch=0.0, accuracy=1.0, level=0.001):
    """Hinge losses whose needed lengths follow these powers around the lengths tried."""
    rng, axes = np.random.default_rng(0), premises.SIZES["full"].axes

    def curve(member, axis, value):
        lengths = np.array(premises.lengths_of(member, axis, value), float)
        usual = {"mamba": 4.5, "linear": 16.0}[member]
        needed = usual * ((value / 0.4) ** clean if axis == premises.CLEAN else
                          (np.log(value) / np.log(6)) ** patterns) * rng.uniform(0.98, 1.02, (8, 1))
        return np.exp(-np.log(10) * (lengths / needed) ** (1 / accuracy))

    by_length = {member: {axis: {value: curve(member, axis, value) for value in values} for axis, values in of.items()}
                 for member, of in axes.items()}
    by_batch = {member: {B: level * (B / 1024) ** batch * rng.uniform(0.98, 1.02, 8) for B in (16, 128, 1024)}
                for member in premises.NAMES}
    return premises.Losses(by_length, by_batch)


def judged(of):
    rules = (premises.grows_no_faster("mamba"), premises.needs_clean, premises.needs_patterns, premises.with_accuracy,
             premises.promised("mamba"), premises.promised("linear"), premises.needs_batch)
    return [verdicts(rule(of)) for rule in rules]


def test_the_length_needed_grows_or_does_not():
    usual = judged(losses())
    assert usual[0] == ["holds"] * 3
    assert usual[1][0] == "holds"
    assert usual[2] == ["fails", "fails"]
    assert usual[3] == usual[4:6][0] * 2 == ["holds", "holds"]
    assert usual[6] == ["fails", "fails"]
    never = judged(losses()._replace(by_length={member: {axis: {value: np.ones_like(curve) for value, curve in
                                                               values.items()} for axis, values in of.items()}
                                                for member, of in losses().by_length.items()}))
    assert never[0][0] == "fails"
    assert judged(losses(patterns=1.0))[2][0] != "fails"
    assert judged(losses(batch=-0.5))[6] == ["holds", "holds"]
    assert verdicts(premises.promised_both(losses())) == ["holds", "holds"]
    assert "fails" in judged(losses(accuracy=0.3))[3]
    assert judged(losses(level=0.5))[4:6] == [["fails"], ["fails"]]


def test_a_length_that_grows_too_fast_fails():
    of = losses()
    steep = {value: np.exp(-np.log(10) * np.array(premises.lengths_of("linear", premises.CLEAN, value))[None]
                           / (16.0 * (value / 0.4) ** power) * np.linspace(0.98, 1.02, 8)[:, None])
             for power in [-2.2] for value in (0.2, 0.3, 0.4, 0.6)}
    faster = of._replace(by_length=of.by_length | {"linear": of.by_length["linear"] | {premises.CLEAN: steep}})
    assert verdicts(premises.grows_no_faster("linear")(faster))[1] == "fails"
    assert verdicts(premises.workshop(faster)) == ["holds"]
    assert verdicts(premises.needs_clean(faster))[1] == "holds"


def test_premises_are_met_where_they_are_judged():
    for member, place in (("mamba", "Theorem 1"), ("linear", "Theorem 3")):
        runs = [premises.a_run(member, axis, value, premises.lengths_of(member, axis, value)[-1], 1_000)
                for axis, values in premises.SIZES["full"].axes[member].items() for value in values]
        met = premises_of("mamba", (place,), [(run, run.prompts) for run in runs], constant=0.5,
                          measured=premises.LENGTH)
        assert all(premise.met for premise in met)
        largest = premises.batch_run(member, 1_024, 1_000)
        assert all(premise.met for premise in premises_of("mamba", (place,), [(largest, largest.prompts)],
                                                          accuracy=0.05, constant=0.5))


def of_models(mamba, linear, largest=100.0):
    scales = {member: {total: model_errors(of, bounds.scale_tests(member, total), count=500, seeds=SEEDS)
                       for total in bounds.SUMS} for member, of in (("mamba", mamba), ("linear", linear))}
    half = model_errors(linear, bounds.near_half_tests(bounds.NEAR_HALF[:2]), count=500, seeds=SEEDS)
    rng = np.random.default_rng(0)
    lengths = {length: 0.2 / (1 + np.exp(-np.log(np.array(bounds.FACTORS)[None] / (5.0 * length * largest / 100.0))))
               * rng.uniform(0.99, 1.01, (8, 1)) for length in (10, 20, 40)}
    return bounds.Errors(scales, half, lengths, 500, lengths)


def test_large_outliers_are_tolerated_or_not(trained_mamba, trained_linear):
    sound = of_models(trained_mamba, trained_linear)
    assert verdicts(bounds.inside("mamba")(sound)) == ["holds"]
    assert verdicts(bounds.beyond("mamba")(sound)) == ["fails"]
    assert "fails" not in verdicts(bounds.near_half(True)(sound)) + verdicts(bounds.near_half(False)(sound))
    assert verdicts(bounds.theorem4b(sound)) == ["holds"]
    assert verdicts(bounds.theorem4b(sound._replace(in_proportion=dict.fromkeys((10, 20, 40), sound.lengths[20])))
                    ) == ["fails"]
    beyond_fit = sound._replace(near_half=np.tile([0.0] * 5 + [0.3], (8, 1)) + np.linspace(0, 0.01, 8)[:, None])
    assert verdicts(bounds.near_half(True)(beyond_fit)) == ["fails"]
    assert [bounds.steps_in_proportion(length) for length in (10, 20, 80)] == [133, 67, 17]
    assert verdicts(bounds.with_length(sound)) == ["holds"]
    same = sound._replace(lengths=dict.fromkeys((10, 20, 40), sound.lengths[20]))
    assert verdicts(bounds.with_length(same)) == ["fails"]
    broken = [untrained(model) for model in trained_mamba]
    wrong = of_models(broken, broken)
    assert verdicts(bounds.inside("mamba")(wrong)) == verdicts(bounds.near_half(True)(wrong)) == ["fails"]
    open_gate = of_models([ungated(model) for model in trained_mamba], trained_linear)
    assert verdicts(bounds.inside("mamba")(open_gate)) == ["fails"]
    assert bounds.examples_of(0.45) == pytest.approx(355, abs=30)
    assert bounds.bound("linear", 0.3) == pytest.approx(20 * bounds.bound("mamba", 0.3))
    assert bounds.bound("mamba", 0.3) == pytest.approx(100)
