"""A user's own data as prompts."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from iclab import Run, SpecError, from_labelled, replace
from iclab.core.identity import canonical
from iclab.core.parse import with_fields
from iclab.core.spec import lower

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
        "outlier_fraction=0.0, label_rule='random', placement='random', tasks='all', "
        "class_names=('cat', 'dog', 'hen'))")


def test_names_of_classes_are_kept_and_change_nothing():
    named = from_labelled(INPUTS, LABELS, classes=["hen", "cat"])
    assert replace(named, prompt_length=5).class_names == ("hen", "cat")
    assert all(prompts.class_names == ("cat", "dog", "hen") for prompts in from_labelled(INPUTS, LABELS, holdout=0.25))
    unnamed = replace(named, class_names=None)
    assert canonical(named) == canonical(unnamed)
    assert jax.tree.structure(lower(named)) == jax.tree.structure(lower(unnamed))


def test_classes_can_be_held_out():
    spec = from_labelled(INPUTS, LABELS, classes=["hen", "cat"])
    assert set(np.unique(spec.sample(0, 50).numpy().x)) <= set(np.concatenate([INPUTS[8:], INPUTS[:4]]).ravel())


def test_rows_can_be_held_out():
    train, test = from_labelled(INPUTS, LABELS, holdout=0.25, standardize=True, perturb=poison, prompt_length=5)
    assert (train.class_sizes, test.class_sizes) == ((3, 3, 3), (1, 1, 1))
    np.testing.assert_allclose([train.rows.mean(0), train.rows.std(0)], [[0, 0], [1, 1]], atol=1e-12)
    np.testing.assert_allclose(test.poisoned[:, 1], -1.0)
    plain, held = from_labelled(INPUTS, LABELS, holdout=0.25, prompt_length=5)
    np.testing.assert_array_equal(np.sort(np.concatenate([plain.rows, held.rows]), axis=0), INPUTS)
    np.testing.assert_allclose(test.rows, (held.rows - plain.rows.mean(0)) / plain.rows.std(0))
    same, other = (from_labelled(INPUTS, LABELS, holdout=0.25, holdout_seed=seed)[1].rows for seed in (0, 1))
    assert (same == from_labelled(INPUTS, LABELS, holdout=0.25)[1].rows).all()
    assert (same != other).any()


@pytest.mark.parametrize(("arguments", "message"), [
    ({"holdout": 1.0}, "holdout must be between 0 and 1, got 1.0"),
    ({"holdout": 0.5, "holdout_seed": -1}, "holdout_seed must be a whole number, 0 or more, got -1"),
    ({"classes": ["cat"]}, "at least two different classes"),
    ({"classes": ["cat", "cow"]}, "classes must occur in labels, got 'cow'"),
    ({"perturb": lambda rows: rows[:1]}, "perturb must return as many rows as it gets, of shape (12, 2), got (1, 2)"),
    ({"perturb": lambda rows: None}, "perturb must return the poisoned rows, got None"),
    ({"outlier_fraction": 2.0}, "outlier_fraction must be in [0, 1), got 2.0"),
    ({"outlier_fraction": 0.3}, "outlier_fraction must be 0 without perturb, which makes what poisoned"),
    ({"perturb": 3.0}, "perturb must be a function of rows, such as lambda rows: rows + 3, got 3.0"),
    ({"class": 2.0}, "argument must be one of classes, perturb, standardize, holdout, holdout_seed, names, "
                      "prompt_length, decisive_fraction, outlier_fraction, label_rule, placement, tasks; "
                      "did you mean classes?, got 'class'"),
    ({"classes": ["cat", "cat"]}, "at least two different classes"),
    ({"perturb": lambda rows: rows * np.nan}, "finite"),
])
def test_bad_input_is_named(arguments, message):
    with pytest.raises(SpecError) as error:
        from_labelled(INPUTS, LABELS, **arguments)
    assert message in str(error.value)


def test_a_class_of_one_row_cannot_be_held_out():
    with pytest.raises(SpecError, match="classes must have two rows or more if some are held out, got 'hen'"):
        from_labelled(INPUTS[:9], LABELS[:9], holdout=0.5)


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
