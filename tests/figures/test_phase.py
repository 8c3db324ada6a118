"""Phase diagrams and line plots: the numbers of the sweep, the theorem's line, and what cannot be drawn."""

from __future__ import annotations

import csv
import dataclasses
import json
import re

import pytest

from iclab import IclabError, Run, Sweep, line_plot, phase_diagram, replace
from iclab.figures.recipes import Plot
from iclab.papers.mamba.settings import attacked_prompts, training_prompts
from iclab.sweeps.results import Results
from iclab.theory.mamba import promise
from readable import complaints


def fake_results(sweep, error):
    """Results without training: `error(trial)` is the measured error, None if the run diverged."""
    trials = sweep.trials()
    rows = []
    for trial in trials:
        value = error(trial)
        rows.append({"trial": None, "run": None, "seed": trial.seed, "error": value, "reason": "", "prompts": 1,
                     "sweep": "x", "seconds": 0.0, "status": "diverged" if value is None else "trained"})
    return Results(sweep, trials, rows)


@pytest.fixture
def swept():
    base = Run(prompts=training_prompts())
    sweep = Sweep(base=base, test=attacked_prompts("flip", 0.6), seeds=3,
                  settings=[{"model.member": "mamba"}, {"model.member": "linear"}],
                  grid={"prompts.outlier_fraction": [0.0, 0.3, 0.6, 0.9], "prompts.outlier_scale": [1.0, 4.0, 8.0]})
    return fake_results(sweep, lambda t: None if (t.seed, t.run.prompts.outlier_scale) == (0, 8.0) else
                        t.run.prompts.outlier_fraction / 2 + t.seed / 100)


def test_numbers_and_line(swept):
    plot = phase_diagram(swept, "prompts.outlier_fraction", "prompts.outlier_scale", panel="model.member",
                         theory="mamba", title="phases")
    lines = plot.csv.splitlines()
    assert lines[0].startswith("model.member,prompts.outlier_fraction,prompts.outlier_scale,error,error_low")
    assert len(lines) == 1 + 2 * 4 * 3
    row = next(line for line in lines if line.startswith("mamba,0.3,8.0")).split(",")
    assert float(row[3]) == pytest.approx(0.15 + 0.015)
    assert row[-4:] == ["2", "0", "1", "0"]
    assert plot.svg.startswith("<svg")
    text = re.sub(r"\s+", " ", plot.svg)
    assert "premises hold right of and below the line" in text
    assert "theorem promises nothing here" in text
    assert complaints(Plot(**json.loads(json.dumps(dataclasses.asdict(plot)))).figure(), thorough=True) == []


def test_whole_numbers_as_an_axis_and_none_as_a_panel():
    sweep = Sweep(base=Run(prompts=training_prompts(outlier_fraction=0.9)), seeds=2,
                  test={"outlier_fraction": 0.5, "outlier_scale": 6.0},
                  grid={"test.prompt_length": [10, 30, 50], "prompts.outlier_scale": [1.0, 2.0],
                        "training.clip_norm": ["none", 1.0]})
    results = fake_results(sweep, lambda t: 0.1 + t.seed / 100)
    plot = phase_diagram(results, "test.prompt_length", "prompts.outlier_scale", panel="training.clip_norm",
                         theory="mamba")
    assert plot.csv.count("\n") == 1 + 3 * 2 * 2
    assert "premises hold left of the line" in re.sub(r"\s+", " ", plot.svg)


def test_the_promise_is_that_of_the_theorems():
    run, test = Run(prompts=training_prompts()), attacked_prompts("flip", 0.5)
    assert promise(run, test) == pytest.approx(0.1)
    assert promise(run, replace(test, outlier_fraction=0.7)) < 0
    assert promise(run, replace(test, outlier_scale=1.0)) == pytest.approx(-1.0)
    assert promise(run, replace(test, outlier_mixtures=((-1.0, 0.5, 0.0),))) < 0
    linear = replace(run, model=replace(run.model, member="linear"))
    assert promise(linear, replace(test, outlier_fraction=0.4)) == pytest.approx(0.1)
    assert promise(linear, test) == 0.0
    assert not promise(replace(run, model=replace(run.model, member="retnet")), test) > 0


@pytest.mark.parametrize(("options", "message"), [
    ({"x": "prompts.nothing"}, "x must be a swept field"),
    ({"x": "model.member", "panel": None}, "model.member must be a number"),
    ({"colour": "beauty"}, "colour must be measured"),
    ({"panel": None}, "must have every other field fixed, got several values of model.member"),
    ({"theory": "alchemy"}, "theory must be one of mamba or module:function"),
    ({"y": "prompts.outlier_fraction"}, "y must differ from x"),
])
def test_what_cannot_be_drawn_is_refused(swept, options, message):
    arguments = {"x": "prompts.outlier_fraction", "y": "prompts.outlier_scale", "panel": "model.member", **options}
    with pytest.raises(IclabError, match=message):
        phase_diagram(swept, arguments.pop("x"), arguments.pop("y"), **arguments)


def test_lines_average_the_seeds_that_trained(swept):
    plot = line_plot(swept, "prompts.outlier_fraction", by="model.member", panel="prompts.outlier_scale", log_y=True)
    rows = list(csv.DictReader(plot.csv.splitlines()))
    assert len(rows) == 3 * 2 * 4
    all_seeds, without_one = ([row for row in rows if row["x"] == "0.3"
                               and row["panel"] == f"outlier scale (training) {scale}"] for scale in (4, 8))
    assert [(float(row["mean"]), row["seeds"]) for row in all_seeds] == [(pytest.approx(0.16), "3")] * 2
    assert [(float(row["mean"]), row["seeds"]) for row in without_one] == [(pytest.approx(0.165), "2")] * 2
    assert complaints(plot.figure(), thorough=True) == []
    medians = line_plot(swept, "prompts.outlier_fraction", by="model.member", panel="prompts.outlier_scale",
                        centre="median")
    row = next(csv.DictReader(medians.csv.splitlines()))
    assert [float(row[end]) for end in ("mean", "low", "high")] == [0.01, 0.0, 0.02]


@pytest.mark.parametrize(("options", "message"), [
    ({"x": "model.member", "by": None}, "model.member must be a number to be an axis of a line plot"),
    ({"y": "beauty"}, "y must be measured, one of error"),
    ({"by": None}, r"a line plot must have every other field fixed, got several values of model.member; choose one, "
                   r"such as results.where\('model.member=\w+'\), or make it by or panel$"),
    ({"centre": "mode"}, "centre must be one of mean, median, got 'mode'"),
    ({"log_x": True}, "log_x must be false where prompts.outlier_fraction is not above 0, got True"),
    ({"panel": "model.member"}, "panel must differ from by"),
])
def test_lines_that_cannot_be_drawn_are_refused(swept, options, message):
    arguments = {"x": "prompts.outlier_fraction", "by": "model.member", "panel": "prompts.outlier_scale", **options}
    with pytest.raises(IclabError, match=message):
        line_plot(swept, arguments.pop("x"), **arguments)


def test_a_frame_is_no_result(swept):
    with pytest.raises(IclabError, match="results must be results of a sweep, got a DataFrame; give results"):
        line_plot(swept.frame, "prompts.outlier_fraction")
