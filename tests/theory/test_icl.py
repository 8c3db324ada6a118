"""Premises of the icl paper's theorems, read from specs."""

from __future__ import annotations

from iclab.core.spec import replace
from iclab.papers.icl.settings import in_domain, one_layer_run, out_of_domain, training_prompts
from iclab.theory.icl import domain_conditions, least_pattern_sum, theorem33_conditions, theorem34_conditions
from iclab.theory.setting import balanced


def test_coverage_requires_every_pattern_with_both_labels_equally_often():
    for tasks in ("cyclic:1", "cyclic:3", "all"):
        assert balanced(training_prompts(tasks=tasks))
    cycle = tuple((i, (i + 1) % 6) for i in range(6))
    assert not balanced(training_prompts(tasks=cycle[:5]))
    assert not balanced(training_prompts(tasks=(*cycle, (0, 2))))


def test_the_least_coefficient_sum():
    assert least_pattern_sum(in_domain()) == 1
    assert abs(least_pattern_sum(out_of_domain(0.8, 0.5)) - 0.5) < 1e-6


def test_premises_are_met_or_not():
    run = one_layer_run(0.8, 10)
    assert all(condition.met for condition in theorem33_conditions(run, in_domain()))
    assert not theorem33_conditions(run, in_domain(irrelevant_scale=5.0))[-1].met
    assert domain_conditions(run, in_domain()) == theorem33_conditions(run, in_domain())
    assert domain_conditions(run, out_of_domain()) == theorem34_conditions(run, out_of_domain())
    scale, = (c for c in theorem34_conditions(run, out_of_domain()) if "K'" in c.name)
    assert (scale.met, scale.room) == (None, 0.2)
    assert not theorem33_conditions(run, out_of_domain())[-2].met
    same = in_domain(pattern_mixtures=((9.0, 0.0, 0.0, 0.0, 0.0, 0.0),) * 3, tasks="all")
    assert [c.met for c in theorem34_conditions(run, same)][-2:] == [False, True]
    assert not theorem34_conditions(run, out_of_domain(0.8, 0.8))[-1].met
    fast = replace(run, training=replace(run.training, learning_rate=2.0))
    assert [c.met for c in theorem33_conditions(fast, in_domain(0.2, prompt_length=4))] == [True, False, True, False,
                                                                                            True, True]
