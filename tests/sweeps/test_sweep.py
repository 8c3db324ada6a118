"""What a sweep expands to, from Python and from a file, and what is refused before anything runs."""

from __future__ import annotations

import numpy as np
import pytest

from iclab import (
    Chain,
    ChainAttention,
    Classification,
    Draws,
    IclabError,
    Run,
    SpecError,
    Sweep,
    Training,
    chain_test,
    read_sweep,
    replace,
)
from iclab.prompts.transitions import weak_step
from iclab.sweeps.packs import make_packs, one_each

FILE = """
name = "small"
seeds = [3, 5]
measure = ["error", "floor"]
test_prompts = 500
[base]
training.steps = 40
prompts.tasks = "cyclic:2"
[test]
label_rule = "flip"
tasks = "all"
[[list]]
model.member = "mamba"
[[list]]
model.member = "linear"
training.learning_rate = 0.1
[grid]
prompts.outlier_fraction = { from = 0.0, to = 0.6, count = 3 }
test.outlier_scale = [2, 6.0]
[plot]
x = "prompts.outlier_fraction"
y = "test.outlier_scale"
panel = "model.member"
"""


def test_every_combination_of_every_kind():
    sweep = Sweep(settings=[{"model.member": "mamba"}, {"model.member": "linear"}],
                  grid={"prompts.outlier_fraction": [0.1, 0.2, 0.3]},
                  random=Draws({"prompts.pattern_norm": (1.0, 2.0)}, count=4), seeds=5)
    trials = sweep.trials()
    assert len(trials) == 2 * 3 * 4 * 5
    assert len({(t.run.model.member, t.run.prompts.outlier_fraction, t.run.prompts.pattern_norm, t.run.data_seed)
                for t in trials}) == len(trials)
    assert sweep.axes == ["model.member", "prompts.pattern_norm", "prompts.outlier_fraction"]
    assert all(t.run.init_seed == t.run.data_seed == t.seed for t in trials)


def test_random_draws_are_of_the_field_and_repeat():
    draws = Draws({"prompts.prompt_length": (5, 9), "prompts.outlier_scale": (0.1, 10.0, "log"),
                   "model.member": ["mamba", "linear"]}, count=200, seed=1)
    points = draws.points(Run(), Classification())
    assert points == draws.points(Run(), Classification())
    assert {point["prompts.prompt_length"] for point in points} == {5, 6, 7, 8, 9}
    assert 0.3 < np.median([point["prompts.outlier_scale"] for point in points]) < 3
    assert {point["model.member"] for point in points} == {"mamba", "linear"}


def test_the_test_is_that_of_training_with_changes():
    trial = Sweep(base=Run(prompts=Classification(outlier_fraction=0.4, pattern_norm=2.0)),
                  test={"label_rule": "flip"}, grid={"test.outlier_scale": [7.0]}).trials()[0]
    assert (trial.test.pattern_norm, trial.test.label_rule, trial.test.outlier_scale) == (2.0, "flip", 7.0)
    fixed = Sweep(test=Classification(prompt_length=5), grid={"prompts.pattern_norm": [1.0, 2.0]}).trials()
    assert {(t.test.prompt_length, t.test.pattern_norm) for t in fixed} == {(5, 3.0)}


def test_seeds_set_only_the_chosen_fields():
    trial = Sweep(base=Run(data_seed=9), seeds=[4], reseed="init").trials()[0]
    assert (trial.run.init_seed, trial.run.data_seed) == (4, 9)
    with pytest.raises(SpecError, match="init_seed is set by the sweep's seeds; give reseed = 'data'"):
        Sweep(grid={"init_seed": [1]}).trials()


def test_trials_that_differ_only_in_the_test_are_one_training(tiny_run):
    sweep = Sweep(base=tiny_run, grid={"test.outlier_scale": [1.0, 2.0, 3.0], "prompts.pattern_norm": [1.0, 2.0]})
    trials = sweep.trials()
    assert len(one_each(trials)) == 2
    packs = make_packs(trials, [None] * 6, set(range(6)))
    assert [len(pack.trials) for pack in packs] == [6]
    assert packs[0].steps == 60


def test_packs_hold_one_structure_each_and_all_requested_trials(tiny_run):
    sweep = Sweep(base=tiny_run, grid={"model.member": ["mamba", "linear"], "prompts.pattern_norm": [1.0, 2.0, 3.0]},
                  seeds=3)
    trials = sweep.trials()
    packs = make_packs(trials, [None] * 18, set(range(18)) - {0, 1})
    assert sorted(i for pack in packs for i in pack.trials) == list(range(2, 18))
    assert all(len({trial.run.model.member for trial in pack.trials.values()}) == 1 for pack in packs)
    assert all(len(pack.trials) <= 4 for pack in packs)
    shared = make_packs(*_shared(tiny_run))
    assert [pack.shared for pack in shared] == [True]


def _shared(run):
    trials = Sweep(base=run, seeds=8, reseed="init").trials()
    return trials, [None] * 8, set(range(8))


def test_lambdas_on_one_line_are_two_runs(tiny_run):
    rules = [lambda c, k, x: -c, lambda c, k, x: c]
    trials = Sweep(base=tiny_run, grid={"prompts.label_rule": rules}).trials()
    assert len(one_each(trials)) == 2
    assert trials[0].id(("error",), 500) is None


def test_a_file_says_the_same(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(FILE)
    sweep, plot = read_sweep(path)
    trials = sweep.trials()
    assert len(trials) == 2 * 3 * 2 * 2
    assert {t.run.prompts.outlier_fraction for t in trials} == {0.0, 0.3, 0.6}
    assert {(t.run.model.member, t.run.training.learning_rate) for t in trials} == {("mamba", 1.0), ("linear", 0.1)}
    assert {(t.test.label_rule, t.test.tasks, t.test.outlier_scale) for t in trials} == \
        {("flip", "all", 2.0), ("flip", "all", 6.0)}
    assert {t.seed for t in trials} == {3, 5}
    assert plot.panel == "model.member"
    assert sweep.name == "small"


@pytest.mark.parametrize(("old", "new", "message"), [
    ("[grid]", "[gird]", "a sweep file's key must be one of name, import, seeds"),
    ("model.member = \"mamba\"", "model.membr = \"mamba\"", "GatedAttention has no field 'membr'"),
    ("test.outlier_scale = [2, 6.0]", "test.outlier_scale = []", "grid.test.outlier_scale must be a list of at least"),
    ("[2, 6.0]", "[2, \"six\"]", "test.outlier_scale must be a number, got 'six'"),
    ("[2, 6.0]", "6.0", "grid.test.outlier_scale must be a list of at least one value, got 6.0"),
    ("to = 0.6", "to = 1.6", r"prompts.outlier_fraction must be in \[0, 1\), got 1.6"),
    ("count = 3 }", "cuont = 3 }", "grid.prompts.outlier_fraction must be a list or { from, to, count"),
    ("seeds = [3, 5]", "seeds = 0", "seeds must be a whole number >= 1 or a list"),
    ("seeds = [3, 5]", "seeds = \"two\"", "seeds must be a whole number >= 1 or a list"),
    ("seeds = [3, 5]", "seeds = [3, 3]", "seeds must be a whole number >= 1 or a list of different"),
    ("[\"error\", \"floor\"]", "[\"errors\"]", "measure must be one of error, hinge, loss, floor, bayes"),
    ("[\"error\", \"floor\"]", "[\"numpy:nothing\"]", "measure must be a function that can be imported"),
    ("test_prompts = 500", "test_prompts = 0", "test_prompts must be a whole number >= 1, got 0"),
    ("training.steps = 40", "training.steps = \"many\"", "training.steps must be a whole number, got 'many'"),
    ("training.steps = 40", "training.steps = 40\nprompts.dimension = 5", "prompts.dimension must be at least"),
    ("panel = \"model.member\"", "panel = \"model.layers\"", "plot.panel must be a swept field"),
    ("panel = \"model.member\"", "hue = \"model.member\"", "plot must have only x, y, colour"),
    ("[plot]", "[plot", "must be TOML"),
    ("tasks = \"all\"\n[[list]]", "tasks = \"all\"\ndimension = 40\n[[list]]", "test.dimension must be that of the"),
    ("[grid]", "[random]\ncount = 2\ntraining.learning_rate = { low = 2, high = 1 }\n[grid]",
     "random.training.learning_rate must be two ends low < high"),
    ("[grid]", "[random]\ncount = 2\nmodel.member = [\"mamba\"]\n[grid]", "model.member must be swept once"),
    ("[grid]", "[random]\nmodel.init_scale = [0.1]\n[grid]", "random must say how many points to draw"),
    ("[grid]", "[random]\ncount = true\nmodel.init_scale = [0.1]\n[grid]", "random.count must be a whole number"),
    ("[grid]", "[random]\ncount = 2\nmodel.init_scale = { low = 1, high = inf }\n[grid]", "must be two ends"),
    ("[grid]", "[random]\ncount = 2\ntraining.batch_size = { low = 4.5, high = 9 }\n[grid]", "whole numbers for ends"),
    ("[2, 6.0]", "[2, 2.0]", "grid.test.outlier_scale must have every value once"),
    ("training.steps = 40", "prompts.outlier_fraction = { from = 0.0, to = 0.5, count = 2 }", "must be a number"),
    ("training.steps = 40", "prompts.outlier_scale = 2020-01-01", "prompts.outlier_scale must be a number"),
    ("training.steps = 40", "prompts.kind = \"Training\"", "prompts.kind must be one of chain, classification"),
    ("training.steps = 40", "model.kind = [\"GatedAttention\"]", "model.kind must be one of chain_attention"),
    ("training.steps = 40", "init_seed = 7", "base.init_seed must not be given"),
    ("test_prompts = 500", "test_prompts = true", "test_prompts must be a whole number >= 1"),
    ("test_prompts = 500", "reseed = [\"init\"]", "reseed must be one of both, init, data"),
    ("name = \"small\"", "name = \"..\"", "name must be at most 60 letters"),
    ("[\"error\", \"floor\"]", "[\".own:f\"]", "measure must be a function that can be imported"),
    ("y = \"test.outlier_scale\"", "y = \"prompts.outlier_fraction\"", "plot.y must differ from x"),
    ("y = \"test.outlier_scale\"", "y = \"model.member\"", "plot.y must be a field of numbers"),
    ("panel = \"model.member\"", "", "plot.panel must be model.member, which takes several values"),
    ("[plot]", "[plot]\nkind = \"pie\"", "plot.kind must be one of phase, lines, got 'pie'"),
    ("y = \"test.outlier_scale\"", "kind = \"lines\"", "plot.panel must be test.outlier_scale, which takes several"),
    ("y = \"test.outlier_scale\"", "by = \"test.outlier_scale\"\nkind = \"lines\"\nlog_y = 1",
     "plot.log_y must be true or false, got 1"),
    ("y = \"test.outlier_scale\"", "by = \"test.outlier_scale\"\nkind = \"lines\"\ncentre = \"mode\"",
     "plot.centre must be one of mean, median"),
    ("y = \"test.outlier_scale\"", "by = \"test.outlier_scale\"\nkind = \"lines\"\ny = \"beauty\"",
     "plot.y must be measured, one of error"),
])
def test_a_bad_file_is_refused_in_one_line(tmp_path, old, new, message):
    assert old in FILE
    path = tmp_path / "sweep.toml"
    path.write_text(FILE.replace(old, new, 1))
    with pytest.raises(IclabError, match=message) as caught:
        read_sweep(path)
    assert "\n" not in str(caught.value)


def test_a_grid_must_name_something_and_a_file_must_exist(tmp_path):
    (tmp_path / "empty.toml").write_text("[grid]\n")
    with pytest.raises(IclabError, match="grid must name at least one field"):
        read_sweep(tmp_path / "empty.toml")
    with pytest.raises(IclabError, match="sweep file must be an existing file"):
        read_sweep(tmp_path / "absent.toml")


def test_an_id_follows_everything_that_is_measured(tiny_run):
    trial = Sweep(base=tiny_run, seeds=np.int64(1)).trials()[0]
    ids = {trial.id(("error",), 500), trial.id(("error", "hinge"), 500), trial.id(("error",), 1000),
           replace_trial(trial, test=replace(trial.test, outlier_scale=9.0)).id(("error",), 500),
           replace_trial(trial, seed=1).id(("error",), 500),
           replace_trial(trial, run=trial.run.seeded(2)).id(("error",), 500)}
    assert len(ids) == 6
    assert None not in ids


def replace_trial(trial, **changes):
    import dataclasses

    return dataclasses.replace(trial, **changes)


def test_chains_have_measures_of_their_own():
    base = Run(model=ChainAttention(), prompts=Chain(dimension=9, patterns=6, prompt_length=4),
               training=Training(steps=20, batch_size=18, learning_rate=10.0, loss="squared", record_every=10))
    test = chain_test(base.prompts, patterns=4, transitions=weak_step(0.5, 0.7, patterns=4), prompt_length=4)
    sweep = Sweep(base=base, test=test, grid={"test.matching_fraction": [0.4, 0.9]}, prompts=500,
                  measure=("cot", "icl", "vote", "loss"))
    frame = sweep.run().frame
    assert frame["status"].to_list() == ["trained"] * 2
    for name in ("cot", "icl", "vote"):
        few, many = frame[name].to_list()
        assert 0 < many < few < 1
    with pytest.raises(SpecError, match=r"measure must be a function, or for labels of kind step one of cot, .*, "
                                        "got 'error'"):
        Sweep(base=base, test=test, grid={"test.matching_fraction": [0.4]}, measure=("error",)).trials()
    with pytest.raises(SpecError, match=r"or for labels of kind sign one of error, .*, got 'cot'"):
        Sweep(base=Run(), measure=("cot",), grid={"training.learning_rate": [1.0]}).trials()
