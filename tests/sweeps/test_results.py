"""Tables of results: means over all seeds, conditions that cannot flatter them."""

from __future__ import annotations

import json

import polars as pl
import pytest

from iclab import IclabError, SpecError, Store, Sweep, phase_diagram
from iclab.cli import main
from iclab.sweeps.results import Results, stored_over_seeds, stored_results

ERRORS = {1.0: [0.001, 0.002, 0.003, 0.4], 2.0: [0.001, 0.001, 0.002, 0.002], 3.0: [0.9, 0.9, None, 1.0]}
"""By pattern norm, one per seed; None if the run diverged."""


def row(seed, error):
    return {"seed": seed, "error": error, "status": "trained" if error is not None else "diverged",
            "reason": "" if error is not None else "at step 10", "test_prompts": 500, "sweep": "x", "run": None,
            "seconds": 1.0 + seed}


@pytest.fixture
def results(tiny_run):
    sweep = Sweep(base=tiny_run, grid={"prompts.pattern_norm": list(ERRORS)}, seeds=4, measure=["error"])
    trials = sweep.trials()
    return Results(sweep, trials, [row(t.seed, ERRORS[t.run.prompts.pattern_norm][t.seed]) for t in trials])


@pytest.fixture
def place(results, tmp_path):
    """A store that holds the same results."""
    Store(tmp_path).add_rows([{**values, "trial": f"{i:024x}", "finished": 1.0, "fields": json.dumps(trial.fields())}
                              for i, (trial, values) in enumerate(zip(results.trials, results.rows, strict=True))])
    return tmp_path


def norms(frame):
    return frame["prompts.pattern_norm"].to_list()


def test_means_are_over_all_seeds_that_trained_of_all_that_were_tried(results):
    over = results.over_seeds()
    assert over["seeds"].to_list() == [4, 4, 3]
    assert over["of"].to_list() == [4, 4, 4]
    assert over["diverged"].to_list() == [0, 0, 1]
    assert over["error"].to_list() == pytest.approx([0.1015, 0.0015, 2.8 / 3])


@pytest.mark.parametrize(("where", "expected"), [
    (["error<0.01"], [2.0]), (["error>0.01"], [1.0, 3.0]), (["error_high<0.01"], [2.0]), (["diverged=0"], [1.0, 2.0]),
    (["seeds<4"], [3.0]), (["trained>=4", "error<0.2"], [1.0, 2.0]), (["prompts.pattern_norm>1", "error<0.5"], [2.0]),
])
def test_a_condition_on_what_was_measured_leaves_no_seed_out(results, place, where, expected):
    whole = dict(zip(ERRORS, results.over_seeds()["error"], strict=True))
    for over in (results.over_seeds(where), stored_over_seeds(place, where, every_field=True),
                 stored_results(place).over_seeds(where)):
        assert norms(over) == expected
        assert over["error"].to_list() == pytest.approx([whole[norm] for norm in expected])
        assert over["of"].to_list() == [4] * len(expected)


def test_a_condition_on_a_setting_chooses_trials(results, place):
    for over in (results.over_seeds(["seed<2"]), stored_over_seeds(place, ["seed<2", "prompts.noise_norm=none"])):
        assert over["of"].to_list() == [2] * 3
        assert over["error"].to_list() == pytest.approx([0.0015, 0.001, 0.9])
    assert results.over_seeds(["seed>7"]).is_empty()


def test_trials_are_chosen_by_their_settings(results, place):
    for table in (results, stored_results(place)):
        part = table.where("prompts.pattern_norm=2", "seed in 0,2")
        assert type(part) is type(table)
        assert (norms(part.frame), part.frame["error"].to_list()) == ([2.0, 2.0], [0.001, 0.002])
        assert part.over_seeds()["of"].to_list() == [2]
        with pytest.raises(SpecError, match=r"where must choose trials by a setting \(prompts.pattern_norm, seed, .*"
                                            "got 'error<0.1'; to choose points by an outcome, .* write over_seeds"):
            table.where("seed=0", "error<0.1")
        with pytest.raises(IclabError, match="where must leave at least one row, got 'seed=9'"):
            table.where("seed=9")
    assert [trial.seed for trial in results.where("seed=3").trials] == [3, 3, 3]


def test_tables_print_as_one_line(results, place):
    for table, name in ((results, "Results"), (stored_results(place), "Stored")):
        assert repr(table) == (f"{name}(12 trials over prompts.pattern_norm: 11 trained, 1 diverged; "
                               "measured error)")


@pytest.mark.parametrize("where", ["status=trained", "reason!=x", "seconds<2"])
def test_a_condition_on_the_outcome_of_a_trial_is_refused(results, place, where):
    name = where.partition("=")[0].strip("!").partition("<")[0]
    message = f"where must not choose seeds by their outcome .*trained, stuck, diverged, failed.*, got '{name}'"
    with pytest.raises(SpecError, match=message):
        results.over_seeds([where])
    with pytest.raises(SpecError, match=message):
        stored_over_seeds(place, [where])


@pytest.mark.parametrize("where", ["error<0.01", "status=trained"])
def test_a_table_of_trials_chosen_by_their_outcome_has_no_means(place, where):
    table = stored_results(place, [where, "prompts.pattern_norm<3"])
    assert len(table.frame) < 12
    with pytest.raises(SpecError, match=f"over_seeds must average all seeds, got trials chosen by '{where}'"):
        table.over_seeds()
    with pytest.raises(SpecError, match="over_seeds must average all seeds"):
        phase_diagram(stored_results(place, [where], every_field=True), "prompts.pattern_norm", "model.init_scale")
    assert len(stored_results(place, ["seed<2"]).over_seeds()) == 3


def test_no_interval_of_an_error_leaves_its_range(results):
    over = results.over_seeds()
    assert over["error_low"].min() >= 0
    assert over["error_high"].max() <= 1
    assert over["error_high"][0] > 0.2  # cut below, not above


def test_one_seed_has_no_interval_and_no_condition_on_it_holds(results):
    assert results.over_seeds(["seed=0", "error_high>0"]).is_empty()
    assert len(results.over_seeds(["seed=0", "error_high=none"])) == 3


def test_the_command_filters_means(place, tmp_path, capsys):
    out = tmp_path / "means.parquet"
    assert main(["results", str(place), "--over-seeds", "--where", "error<0.2", "--parquet", str(out)]) == 0
    over = pl.read_parquet(out)
    assert norms(over) == [1.0, 2.0]
    assert over["error"].to_list() == pytest.approx([0.1015, 0.0015])
    assert over.select("seeds", "of").rows() == [(4, 4), (4, 4)]
    assert main(["results", str(place), "--where", "error<0.2"]) == 0
    assert capsys.readouterr().out.count("trained") == 7
    assert main(["results", str(place), "--over-seeds", "--where", "error<0"]) == 2
    assert "where must leave at least one row, got 'error<0'" in capsys.readouterr().err
    with pytest.raises(IclabError, match="where must name a column"):
        stored_over_seeds(place, ["errr<1"])
    with pytest.raises(SystemExit):
        main(["results", "--help"])
    assert "before averaging" in " ".join(capsys.readouterr().out.split())


def test_the_command_sorts_and_chooses_columns(place, tmp_path, capsys):
    out = tmp_path / "trials.csv"
    assert main(["results", str(place), "--sort", "prompts.pattern_norm, seed desc", "--columns",
                 "seed,prompts.pattern_norm,error", "--where", "seed in 0, 2", "--csv", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 6 rows, 3 columns\n"
    table = pl.read_csv(out)
    assert table.columns == ["seed", "prompts.pattern_norm", "error"]
    assert table["seed"].to_list() == [2, 0] * 3
    assert table["prompts.pattern_norm"].is_sorted()
    assert main(["results", str(place), "--sort", "error desc", "--columns", "error", "--limit", "3"]) == 0
    shown = [float(row.strip("| ")) for row in capsys.readouterr().out.splitlines()[2:5]]
    assert shown == sorted(shown, reverse=True)
    assert main(["results", str(place), "--columns", "eror"]) == 2
    assert "got 'eror'; did you mean error?" in capsys.readouterr().err
    assert main(["results", str(place), "--where", "seed in a"]) == 2
    assert "where must compare seed with a number, got 'a'" in capsys.readouterr().err


def stored_row(run, finished, measured, **values):
    """A row as a sweep stores it."""
    return {"trial": f"{run}{finished}".ljust(24, "0"), "run": run * 24, "sweep": "s", "seed": 0, "status": "trained",
            "reason": "", **values, "test_prompts": 500, "fields": json.dumps({"model.kind": "gated_attention"}),
            "measured": json.dumps(measured), "seconds": 1.0, "started": 0.0, "finished": float(finished)}


def test_quantities_of_one_training_go_together_and_the_later_row_decides(tmp_path):
    store = Store(tmp_path)
    store.add_rows([stored_row("a", 1, ["error", "mine"], error=0.2, mine=1.0)])
    store.add_rows([stored_row("a", 2, ["hinge", "mine"], hinge=0.5, mine=None)])
    frame = stored_results(store).frame
    assert (frame["error"][0], frame["hinge"][0], frame["mine"][0]) == (0.2, 0.5, None)


def test_what_another_training_measured_is_not_shown_as_this_ones(tmp_path):
    store = Store(tmp_path)
    store.add_rows([stored_row("a", 1, ["error", "hinge"], error=0.2, hinge=1.5)])
    store.add_rows([{**stored_row("b", 2, ["error"], error=None), "status": "diverged"}])
    frame = stored_results(store).frame
    assert frame["status"].to_list() == ["diverged"]
    assert frame["error"].to_list() == [None]
    assert "hinge" not in frame.columns or frame["hinge"].to_list() == [None]
