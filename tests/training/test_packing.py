"""What shares a program: task sets, label rules and placements are data; large models do not share a core's cache."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from iclab import GPT2, Classification, Run, SoftmaxMLP, SpecError, Training, replace, train, train_many
from iclab.core.spec import lower
from iclab.training.packing import WIDTH, best_width, groups

SMALL = Classification(dimension=9, relevant_patterns=4, irrelevant_patterns=2, outlier_patterns=2, prompt_length=6,
                       outlier_fraction=0.4)
CHANGES = [{"tasks": "cyclic:1"}, {"tasks": ((0, 1), (2, 3))}, {"label_rule": "flip", "placement": "far"},
           {"label_rule": "target", "placement": "close"}]


def shout(clean, coin, x):
    return clean


def test_named_choices_are_data_and_functions_are_structure():
    structures = {jax.tree.structure(lower(replace(SMALL, **change))) for change in CHANGES}
    assert len(structures) == 1
    own_rule = lower(replace(SMALL, label_rule=shout))
    assert jax.tree.structure(own_rule) not in structures
    assert jax.tree.map(lambda leaf: leaf, own_rule).label_rule is shout


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.slow
def test_a_compiled_sampler_draws_what_a_plain_one_does(change):
    family = replace(SMALL, **change)
    compiled = family.sample(3, 40).numpy()
    with jax.disable_jit():
        plain = family.sample(3, 40).numpy()
    jax.tree.map(lambda actual, expected: np.testing.assert_allclose(actual, expected, atol=1e-5), compiled, plain)
    assert compiled.truth.outlier.dtype == bool


def test_runs_that_differ_in_choices_train_together_as_alone():
    training = Training(steps=20, batch_size=16, learning_rate=0.1, record_every=10, backend="xla")
    runs = [Run(prompts=replace(SMALL, **change), training=training) for change in CHANGES]
    assert [group.members for group in groups(runs)] == [[0, 1, 2, 3]]
    for run, together in zip(runs, train_many(runs), strict=True):
        np.testing.assert_allclose(train(run).loss, together.loss, rtol=1e-4)


def test_a_large_model_has_a_pack_of_its_own():
    assert best_width(Run(model=GPT2()), False) == 1
    assert best_width(Run(model=SoftmaxMLP()), False) == WIDTH


@pytest.mark.parametrize("tasks", [[1], 5, None, [[0, 0]], ((0, [1]),), [(0, 9)]], ids=str)
def test_bad_tasks_are_named(tasks):
    with pytest.raises(SpecError, match="tasks must be 'all', 'cyclic:U', 'unseen:U' or pairs"):
        replace(SMALL, tasks=tasks)
