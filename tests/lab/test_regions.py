"""Regions: the sentence is computed from the map, and cells outside the premises do not count."""

from __future__ import annotations

import numpy as np
import pytest

from iclab.lab.claims import judged, worst_verdict
from iclab.lab.estimates import Mean
from iclab.lab.regions import Axis, Region

X, Y = Axis("scale", (1.0, 2.0, 4.0)), Axis("sum", (0.1, 0.5))


def region(value, **fields):
    rng = np.random.default_rng(0)
    estimates = [[Mean(value(x, y) + rng.normal(0, 1e-4, 4)) for x in X.values] for y in Y.values]
    return Region("excess", X, Y, estimates, "<=", 0.01, along="scale times sum", quantity=lambda x, y: x * y, **fields)


@pytest.mark.parametrize(("value", "sentence"), [
    (lambda x, y: 0.0, "The rule holds in all 6 settings inside the premises."),
    (lambda x, y: 1.0, "The rule holds in none of 6 settings inside the premises."),
    (lambda x, y: 0.0 if x * y >= 0.5 else 0.5, "The rule holds for scale times sum >= 0.5 and fails for scale times "
                                               "sum <= 0.4."),
    (lambda x, y: 0.5 if x * y >= 0.5 else 0.0, "The rule holds for scale times sum <= 0.4 and fails for scale times "
                                               "sum >= 0.5."),
    (lambda x, y: 0.0 if x == 2.0 else 0.5, "The rule holds in 2 of 6 settings inside the premises; no value of scale "
                                            "times sum separates them from the others."),
])
def test_the_sentence_follows_from_the_map(value, sentence):
    assert region(value).sentence == sentence


def test_cells_outside_the_premises_do_not_count():
    partly = region(lambda x, y: 0.0 if y > 0.2 else 0.5, inside=lambda x, y: y > 0.2)
    assert partly.sentence == "The rule holds in all 3 settings inside the premises."
    assert partly.verdicts() == [["outside"] * 3, ["holds"] * 3]
    assert worst_verdict(judged(partly.checks())) == "holds"
    nowhere = region(lambda x, y: 0.0, inside=lambda x, y: False)
    assert nowhere.sentence == "No setting tried for scale and sum is inside the premises."


def test_the_map_shows_numbers_and_verdicts_in_words():
    plot = region(lambda x, y: 0.0 if x * y >= 0.5 else 0.5).plot("a.region", "Where", "Excess.")
    assert plot.csv.splitlines()[0] == "x,y,mean,verdict"
    assert plot.csv.count("holds") == 3
    assert "fails for scale times sum <= 0.4" in plot.caption
