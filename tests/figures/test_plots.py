
"""Plots: the numbers behind them, formats, labels, and nothing on anything else."""

from __future__ import annotations

import csv
import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.mathtext import MathTextParser

from iclab import IclabError
from iclab.figures.bars import Bars, gate_figure
from iclab.figures.heat import heat_figure, verdict_map
from iclab.figures.lettering import label
from iclab.figures.paths import Paths, path_figure
from iclab.figures.plots import Curve, Panel, curve_figure, error_figure
from iclab.figures.recipes import Plot
from iclab.probes import UNIT, median_interval
from readable import complaints

READER = MathTextParser("path")
FRAGMENTS = ("<script>", "alpha", "kappa_a'", "(", ")", "|", "{", "}", "^", "-", "+-", " ", " / ", "*", "`", "M1",
             "log ", "sqrt(", "&", "'", "<=", "f", "2", ", ", "$", "\\", "_", "1,000")


def test_a_curve_without_values_leaves_its_panel_empty():
    panels = [Panel("never reached", [1.0, 2.0], [Curve("softmax", np.full((3, 2), np.nan))], lines=[
        ("power 1", np.full(2, np.nan))], marks=[("never", np.nan)])]
    plot = curve_figure("empty", "", "", panels, "x", "y", log_x=True, log_y=True)
    assert plot.svg.startswith("<svg")
    assert "never reached,softmax,1.0,nan" in plot.csv
    assert repr(plot) == "Plot(name='empty', title='', drawing='curves')"


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


ROWS = np.array([[0.0, 0.5, 1.0], [1.0, 0.5, 0.0], [0.4, 0.5, 0.6]])  # lines and bands in every corner


def many(title, names):
    curves = [Curve(name, ROWS + 0.01 * i) for i, name in enumerate(names)]
    return Panel(title, [1.0, 2.0, 4.0], curves, floor=[0.0, 0.1, 0.2], marks=[("theorem 2 (c)", 2.0)])


NAMES = ("mamba", "linear", "a name that is rather long", "kappa_a' / kappa_a = 3", "alpha")
LONG = "error of the linear Transformer out of domain, at p_a 0.4 and l_ts 200"
SHAPES = {
    "shared": lambda: error_figure("x", "", "", [many(LONG, NAMES), many("b", NAMES)], LONG, log_from=1e-3),
    "own, twice": lambda: error_figure("x", "", "", [many(LONG, NAMES), many("b", ("another",))], LONG, log_from=1e-3),
    "own": lambda: curve_figure("x", "", "", [many(LONG, NAMES[:i + 1]) if i % 2 else many("b", NAMES[2:])
                                              for i in range(4)], LONG,
                                "hinge loss on unseen tasks, m ~ M1^2", log_x=True, log_y=True, share_y=False),
    "heat": lambda: heat_figure("x", LONG, "", [1.0, 2.0, 4.0], [1.0], ROWS[:, None], np.ones((1, 3)), LONG, "l_ts"),
    "verdicts": lambda: verdict_map("x", LONG, "", LONG, [1, 2], LONG, [1], np.ones((1, 2)), [["holds", "outside"]],
                                    "error <= 0.01"),
    "gates": lambda: gate_figure("x", "", "", [Bars(LONG, ROWS, ROWS, np.ones(3), "0.3 * 0.7^(n - 1)")] * 2),
    "paths": lambda: path_figure("x", "", "", [Paths(LONG, ["a", "b", "c"], ROWS, ROWS)] * 2, [0, 1, 2], LONG, "norm"),
}


@pytest.mark.parametrize("plot", SHAPES.values(), ids=SHAPES)
def test_a_figure_is_readable_and_drawn_again_from_json(plot, tmp_path):
    plot = plot()
    again = Plot(**json.loads(json.dumps(dataclasses.asdict(plot))))
    assert again == plot
    assert complaints(again.figure(), thorough=True) == []
    assert again.save(tmp_path / "x.svg").read_text() == plot.svg
    assert again.save(tmp_path / "x.csv").read_text() == plot.csv


def test_shown_twice_panels_with_curves_of_their_own_have_a_legend_each_and_no_line_of_another():
    figure = SHAPES["own, twice"]().figure()
    legends = [axis.get_legend() for axis in figure.axes]
    assert [legend is not None for legend in legends] == [False, False, True, True]
    assert [text.get_text() for text in legends[3].get_texts()] == ["another", "information floor", "theorem 2 (c)"]


def test_what_is_hard_to_read_is_noticed():
    figure = SHAPES["gates"]().figure()
    figure.axes[0].set_ylabel("")
    figure.axes[1].legend(loc="upper left")
    assert complaints(figure) == ["axes 0 have no name along y", "a legend lies on axes 1"]


def test_formats_are_what_they_say_and_others_are_refused(tmp_path):
    plot = SHAPES["heat"]()
    assert plot.save(tmp_path / "x.PNG").read_bytes().startswith(b"\x89PNG")
    assert plot.save(tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(IclabError, match=r"path must end in .svg, .pdf, .png, .csv, got 'x.gif'"):
        plot.save("x.gif")
    with pytest.raises(IclabError, match=r"drawing of plot 'a' must be one of curves, .*, got ''"):
        Plot("a", "", "", "<svg/>", "").figure()


@pytest.mark.parametrize(("low", "high", "minor"), [
    (0.2, 0.4, ["2", "3", "4"]), (0.02, 0.12, ["2", "3", "5", "7"]), (0.01, 0.5, ["2", "5", "2", "5"]),
    (1e-4, 0.5, [])])
def test_labels_of_minor_ticks_have_room(low, high, minor):
    figure = curve_figure("x", "", "", [Panel("", [1.0, 2.0], [Curve("mamba", np.array([[low, high]]))])], "x", "y",
                          log_y=True).figure()
    axis = figure.axes[0]
    ends = axis.get_ylim()
    shown = [tick.label1.get_text() for tick in axis.yaxis.get_minor_ticks() if ends[0] <= tick.get_loc() <= ends[1]]
    assert [text[0] for text in shown if text] == minor


def test_below_the_least_shown_a_logarithmic_line_runs_along_its_edge():
    figure = error_figure("x", "", "", [Panel("", [1.0, 2.0], [Curve("mamba", np.array([[0.0, 0.5]]))])], "x",
                          log_from=1e-3).figure()
    linear, logarithmic = figure.axes
    assert linear.get_yscale() == "linear"
    assert logarithmic.get_yscale() == "log"
    assert logarithmic.lines[0].get_ydata().tolist() == [1e-3, 0.5]


@pytest.mark.parametrize(("text", "written"), [
    ("kappa_a' / kappa_a", r"$κ_{a}^{\prime }/κ_{a}$"), ("l_tr = 20", r"$l_{\mathrm{tr}}=20$"),
    ("T ~ beta^-2 M1", r"$T\sim {β}^{-2}\,M_{1}$"), ("costs $5 <= $6", r"costs \$5 ≤ \$6"),
    ("a plain word", "a plain word"),
])
def test_a_label_is_typeset(text, written):
    assert label(text) == written


def test_a_long_label_is_broken_between_words_and_not_in_a_formula():
    assert label("where kappa_a' / kappa_a is large", 12) == "where\n$κ_{a}^{\\prime }/κ_{a}$ is\nlarge"


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=10).map("".join) | st.text(max_size=20))
@settings(max_examples=60, deadline=None)
def test_matplotlib_can_read_every_label(text):
    for line in label(text).split("\n"):
        if line.replace(r"\$", "").count("$"):
            READER.parse(line)


def test_a_median_has_the_interval_of_its_order_statistics():
    values = np.arange(9.0)[::-1]
    assert median_interval(values) == (4.0, 1.0, 7.0)  # 0.961 of a binomial lies inside
    assert median_interval(values[:3]) == (7.0, 6.0, 8.0)
    assert np.isnan(median_interval([1.0])).tolist() == [False, True, True]
