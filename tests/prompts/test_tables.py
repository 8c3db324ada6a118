"""A user's own CSV file as prompts."""

from __future__ import annotations

import numpy as np
import pytest

from iclab import IclabError, from_csv, from_labelled

ROWS = [("a", 1.0, 10.0), ("b", 2.0, 30.0), ("a", 3.0, 20.0), ("b", 5.0, 60.0)]


@pytest.fixture
def file(tmp_path):
    def write(text=None):
        path = tmp_path / "own.csv"
        path.write_text("kind,size,weight\n" + "".join(f"{k},{x},{y}\n" for k, x, y in ROWS) if text is None else text)
        return path

    return write


def same(mine, theirs):
    np.testing.assert_allclose(mine.rows, theirs.rows)
    np.testing.assert_allclose(mine.poisoned, theirs.poisoned)
    assert mine.class_sizes == theirs.class_sizes
    assert mine.prompt_length == theirs.prompt_length


def test_a_file_gives_what_its_array_gives(file):
    inputs, labels = np.array([row[1:] for row in ROWS]), [row[0] for row in ROWS]
    path = file()
    options = {"perturb": lambda rows: rows + 1.0, "classes": ["b", "a"], "prompt_length": 3}
    same(from_csv(path, label="kind", **options), from_labelled(inputs, labels, **options))
    same(from_csv(str(path), label="kind", columns=["weight"]), from_labelled(inputs[:, 1:], labels))
    same(from_csv(path, label="kind", columns=["weight", "size"]), from_labelled(inputs[:, ::-1], labels))
    same(from_csv(path, label="kind", drop=["size"]), from_labelled(inputs[:, 1:], labels))
    standard = (inputs - inputs.mean(0)) / inputs.std(0)
    same(from_csv(path, label="kind", standardize=True), from_labelled(standard, labels))


def test_rows_can_be_held_out(file):
    inputs, labels = np.array([row[1:] for row in ROWS]), [row[0] for row in ROWS]
    mine = from_csv(file(), label="kind", holdout=0.5, standardize=True)
    for one, other in zip(mine, from_labelled(inputs, labels, holdout=0.5, standardize=True), strict=True):
        same(one, other)


def test_labels_may_be_numbers(file):
    prompts = from_csv(file("y,a\n2,0.5\n1,1\n2,2\n"), label="y")
    np.testing.assert_array_equal(prompts.rows[:, 0], [1.0, 0.5, 2.0])


@pytest.mark.parametrize(("text", "options", "message"), [
    (None, {"label": "kinds"}, "label must be in the header of .*own.csv', got 'kinds'; did you mean kind.; it has "
     "kind, size, weight"),
    (None, {"columns": ["weigh"]}, "columns must be in the header of .*got 'weigh'; did you mean weight"),
    (None, {"columns": ["kind"]}, "columns must not name the column of labels, got 'kind'"),
    (None, {"columns": []}, "columns must name at least one column"),
    (None, {"columns": ["size", "size"]}, "columns must be different"),
    (None, {"colour": 1}, "argument must be one of columns, drop, classes, perturb, standardize, holdout, "
     "holdout_seed, prompt_length, "),
    (None, {"drop": ["wieght"]}, "drop must be in the header of .*got 'wieght'; did you mean weight"),
    (None, {"drop": ["size", "weight"]}, "columns must name at least one column"),
    (None, {"drop": "size"}, "drop must be a list of names, got 'size'"),
    (None, {"drop": ["size"], "columns": ["weight"]}, "drop must be left out where columns are given"),
    ("kind,size\na,1\nb,\n", {}, "column 'size' must have a value in every row, got none in row 2 of the data"),
    ("kind,size\na,1\n,2\n", {}, "column 'kind' must have a value in every row, got none in row 2 of the data"),
    ("kind,size\na,1\nb,2\nb,many\n", {}, "column 'size' must hold finite numbers, got 'many' in row 3 of the data"),
    ("kind,size\na,1\nb,nan\n", {}, "column 'size' must hold finite numbers, got 'nan' in row 2 of the data"),
    ("kind,size\na,true\nb,false\n", {}, "column 'size' must hold finite numbers, got True in row 1 of the data"),
    ("kind,size\na,1\nb,1\n", {"standardize": True}, "column 'size' must vary to be standardized, got 1 in every row"),
    ("kind,size\na,1\na,2\n", {}, "classes must name at least two different classes"),
    ("kind,size\na,1\nb,2,3\n", {}, "CSV file .*own.csv' cannot be read"),
    ("kind;size\na;1\nb;2\n", {}, "must separate fields by commas, got 'kind;size', with semicolons"),
    ("1,2\n3,4\n5,6\n", {}, "must begin with a line that names its columns, got '1, 2', which looks like data"),
    ("kind,size\na,1,5\nb,2,5\n", {}, "a row has more fields than the header; .* decimals have a point"),
    ("kind,size\n" + "".join(f"{row / 7},{row}\n" for row in range(30)), {}, "labels must be classes, got 30 different "
     "ones in 30 rows, such as 0.0; choose another column, or name them in classes"),
    ("", {}, "CSV file .*own.csv' cannot be read"),
])
def test_a_bad_file_is_one_line_that_names_the_column(file, text, options, message):
    with pytest.raises(IclabError, match=message) as error:
        from_csv(file(text), **{"label": "kind"} | options)
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(IclabError, match="CSV file must be an existing file"):
        from_csv(tmp_path / "none.csv", label="kind")
