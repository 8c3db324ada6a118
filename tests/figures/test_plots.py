"""Curves that say nothing are drawn as nothing."""

from __future__ import annotations

import numpy as np

from iclab.figures.plots import Curve, Panel, curve_figure


def test_a_curve_without_values_leaves_its_panel_empty():
    panels = [Panel("never reached", [1.0, 2.0], [Curve("softmax", np.full((3, 2), np.nan))], lines=[
        ("power 1", np.full(2, np.nan))])]
    plot = curve_figure("empty", "", "", panels, "x", "y", log_x=True, log_y=True)
    assert plot.svg.startswith("<svg")
    assert "never reached,softmax,1.0,nan" in plot.csv
