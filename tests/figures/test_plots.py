"""The numbers behind a plot: intervals within the range of what is drawn, nothing where nothing was measured."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from iclab.figures.bars import Bars, gate_figure
from iclab.figures.heat import heat_figure
from iclab.figures.plots import Curve, Panel, curve_figure, error_figure
from iclab.probes import UNIT


def test_a_curve_without_values_leaves_its_panel_empty():
    panels = [Panel("never reached", [1.0, 2.0], [Curve("softmax", np.full((3, 2), np.nan))], lines=[
        ("power 1", np.full(2, np.nan))])]
    plot = curve_figure("empty", "", "", panels, "x", "y", log_x=True, log_y=True)
    assert plot.svg.startswith("<svg")
    assert "never reached,softmax,1.0,nan" in plot.csv


ALL_OR_NOTHING = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 0.9]])


def ends(plot):
    rows = csv.DictReader(plot.csv.splitlines())
    return [(float(row["low"]), float(row["high"])) for row in rows if row["low"]]


@pytest.mark.parametrize("draw", [
    lambda: error_figure("x", "", "", [Panel("", [1.0, 2.0], [Curve("mamba", ALL_OR_NOTHING)])], "x"),
    lambda: curve_figure("x", "", "", [Panel("", [1.0, 2.0], [Curve("mamba", ALL_OR_NOTHING)], within=UNIT)], "x", "y"),
    lambda: heat_figure("x", "", "", [1.0, 2.0], [1.0], ALL_OR_NOTHING[:, None], np.ones((1, 2)), "x", "y"),
    lambda: gate_figure("x", "", "", [Bars("", ALL_OR_NOTHING, ALL_OR_NOTHING, np.ones(2), "fit")]),
], ids=["errors", "panel", "heat", "gates"])
def test_an_interval_of_a_fraction_stays_in_its_range(draw):
    intervals = ends(draw())
    assert intervals
    assert all(0 <= low <= high <= 1 for low, high in intervals)


def test_an_interval_without_a_known_range_is_students():
    plot = curve_figure("x", "", "", [Panel("", [1.0, 2.0], [Curve("mamba", ALL_OR_NOTHING)])], "x", "difference")
    assert ends(plot)[0][0] < 0
