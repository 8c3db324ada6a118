"""A user's own data as prompts."""

from __future__ import annotations

import numpy as np
import pytest

from iclab import Run, SpecError, from_labelled, replace
from iclab.core.parse import with_fields

INPUTS = np.arange(24, dtype=float).reshape(12, 2)
LABELS = np.repeat(["cat", "dog", "hen"], 4)


def poison(rows):
    rows[:, 1] = -1.0
    return rows


def test_examples_are_rows_of_their_class():
    spec = from_labelled(INPUTS, LABELS, perturb=poison, prompt_length=5, outlier_fraction=0.5, label_rule="flip")
    prompts = spec.sample(0, 50).numpy()
    np.testing.assert_array_equal(prompts.truth.irrelevant // 4, prompts.truth.pattern)
    expected = INPUTS[prompts.truth.irrelevant]
    expected[..., 1] = np.where(prompts.truth.outlier, -1.0, expected[..., 1])
    np.testing.assert_allclose(prompts.x, expected)
    np.testing.assert_array_equal(prompts.y[prompts.truth.outlier], -prompts.truth.clean[prompts.truth.outlier])
    assert len(np.unique(prompts.truth.irrelevant)) == 12


def test_its_text_shows_no_rows():
    assert repr(from_labelled(INPUTS, LABELS)) == (
        "ArrayPrompts(dimension=2, class_sizes=(4, 4, 4), prompt_length=20, decisive_fraction=1.0, "
        "outlier_fraction=0.0, label_rule='random', placement='random', tasks='all')")


def test_classes_can_be_held_out():
    spec = from_labelled(INPUTS, LABELS, classes=["hen", "cat"])
    assert set(np.unique(spec.sample(0, 50).numpy().x)) <= set(np.concatenate([INPUTS[8:], INPUTS[:4]]).ravel())


@pytest.mark.parametrize(("arguments", "message"), [
    ({"classes": ["cat"]}, "at least two different classes"),
    ({"classes": ["cat", "cow"]}, "classes must occur in labels, got 'cow'"),
    ({"perturb": lambda rows: rows[:1]}, "perturb must return as many rows as it gets, of shape (12, 2), got (1, 2)"),
    ({"perturb": lambda rows: None}, "perturb must return the poisoned rows, got None"),
    ({"outlier_fraction": 2.0}, "outlier_fraction must be in [0, 1), got 2.0"),
    ({"class": 2.0}, "argument must be one of classes, perturb, standardize, names, prompt_length, decisive_fraction, "
                     "outlier_fraction, label_rule, placement, tasks; did you mean classes?, got 'class'"),
    ({"classes": ["cat", "cat"]}, "at least two different classes"),
    ({"perturb": lambda rows: rows * np.nan}, "finite"),
])
def test_bad_input_is_named(arguments, message):
    with pytest.raises(SpecError) as error:
        from_labelled(INPUTS, LABELS, **arguments)
    assert message in str(error.value)


@pytest.mark.parametrize(("name", "advice"), [
    ("perturb", "its rows are made with it: call from_labelled or from_csv again"),
    ("outlier_scale", "perturb makes what poisoned examples look like: call from_labelled or from_csv again"),
    ("outlier_fractoin", "did you mean outlier_fraction?; it has ")])
def test_what_is_no_field_is_set_elsewhere(name, advice):
    prompts = from_labelled(INPUTS, LABELS)
    for change in (lambda: replace(prompts, **{name: 1.0}),
                   lambda: with_fields(Run(prompts=prompts), {f"prompts.{name}": 1.0})):
        with pytest.raises(SpecError) as error:
            change()
        assert f"ArrayPrompts has no field {name!r}; {advice}" in str(error.value)


def test_not_a_number_is_refused():
    with pytest.raises(SpecError, match="finite"):
        from_labelled(INPUTS * np.nan, LABELS)


def test_a_changed_copy_is_checked():
    for changes in ({"outlier_fraction": 1.5}, {"label_rule": "flipp"}):
        with pytest.raises(SpecError):
            replace(from_labelled(INPUTS, LABELS), **changes)
    with pytest.raises(SpecError, match="init_seed"):
        Run(prompts=from_labelled(INPUTS, LABELS), init_seed=-5)
