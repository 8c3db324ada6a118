"""Running sweeps: shared trainings, isolated failures, interruption, plans."""

from __future__ import annotations

import threading

import numpy as np
import polars as pl
import pytest
import sabotage

import iclab.sweeps.packs as packs
from iclab import IclabError, Store, Sweep, replace, train
from iclab.core.parallel import each
from iclab.probes import model_errors
from iclab.sweeps.conditions import filtered
from iclab.sweeps.engines import _Count, run_sweep
from iclab.sweeps.planner import plan_sweep
from iclab.sweeps.results import stored_results
from iclab.training.trainer import MemoryLimit


@pytest.fixture
def small(tiny_run):
    return Sweep(base=tiny_run, test={"label_rule": "flip"}, prompts=500, seeds=2,
                 grid={"prompts.pattern_norm": [1.0, 2.0, 3.0], "test.outlier_scale": [1.0, 4.0]})


@pytest.fixture
def trained_now(monkeypatch):
    """The runs trained during the test."""
    runs, real = [], packs.train_many
    monkeypatch.setattr(packs, "train_many", lambda requested, **kw: runs.extend(requested) or real(requested, **kw))
    return runs


def errors(results):
    return results.frame.select(*results.axes, "seed", "error", "hinge", "loss")


def test_a_trial_measures_what_its_run_alone_would(small, trained_now):
    results = small.run()
    assert len(results.frame) == 12
    assert len(trained_now) == 6
    trial = results.trials[5]
    alone = train(trial.run)
    expected = model_errors([alone], [trial.test], count=500, seeds=[trial.seed])[0, 0]
    row = results.frame.row(5, named=True)
    assert row["error"] == pytest.approx(expected, abs=1e-12)
    assert row["loss"] == pytest.approx(alone.loss[-1], rel=1e-4)
    assert row["floor"] == pytest.approx(0.4 ** 6 / 2)
    assert row["prompts.pattern_norm"] == trial.run.prompts.pattern_norm
    over = results.over_seeds()
    assert len(over) == 6
    assert over["trained"].to_list() == [2] * 6
    same_setting = results.frame.filter((pl.col("prompts.pattern_norm") == 1.0) & (pl.col("test.outlier_scale") == 4.0))
    assert over.row(1, named=True)["error"] == pytest.approx(same_setting["error"].mean())


def test_finished_trials_are_found_and_a_new_test_costs_no_training(small, tmp_path, trained_now):
    first = small.run(store=tmp_path)
    trainings = len(trained_now)
    again = small.run(store=tmp_path)
    assert len(trained_now) == trainings
    assert errors(first).equals(errors(again))
    other = Sweep(base=small.base, test={"label_rule": "target"}, grid=small.grid, seeds=2, prompts=500)
    seen = []
    other.run(store=tmp_path, watch=seen.append)
    assert len(trained_now) == trainings
    assert (seen[-1].done, seen[-1].running, seen[-1].failed) == (12, 0, 0)
    assert max(tally.running for tally in seen) > 0
    table = stored_results(tmp_path)
    assert len(table.frame) == 24
    assert set(table.axes) == {"prompts.pattern_norm", "test.outlier_scale", "test.label_rule"}
    assert len(stored_results(tmp_path, ["test.label_rule=flip", "prompts.pattern_norm>=2"]).frame) == 8
    with pytest.raises(IclabError, match="where must name a column"):
        filtered(table.frame, ["nothing=1"])
    with pytest.raises(IclabError, match="where must compare error with a number, got 'much'"):
        filtered(table.frame, ["error<much"])


def test_a_run_that_fails_or_diverges_is_reported_and_isolated(tiny_run, tmp_path):
    sweep = Sweep(base=tiny_run, grid={"prompts.pattern_norm": [1.0, 2.0, 3.0]}, prompts=500,
                  measure=("error", sabotage.refuse_large))
    results = sweep.run(store=tmp_path)
    assert results.frame["status"].to_list() == ["trained", "trained", "failed"]
    assert results.frame["reason"][2] == "measure: ValueError: too large for me"
    assert results.frame["norm"].to_list() == [1.0, 2.0, None]
    assert results.counts == {"trained": 2, "stuck": 0, "diverged": 0, "failed": 1}
    seen = []
    sweep.run(store=tmp_path, watch=seen.append)  # only the failure is tried again
    assert (seen[0].found, seen[-1].failed) == (2, 1)
    wild = Sweep(base=tiny_run, grid={"training.learning_rate": [0.5, 1e30]}, prompts=500)
    frame = wild.run(store=tmp_path).frame
    assert frame["status"].to_list() == ["trained", "diverged"]
    assert frame["reason"][1].startswith("at step")
    assert frame["error"][1] is None


@pytest.mark.slow
def test_points_are_distinguished_even_when_their_functions_look_alike(tiny_run):
    rules = [lambda c, k, x: c, lambda c, k, x: -c]
    results = Sweep(base=tiny_run, grid={"prompts.label_rule": rules}, seeds=2, prompts=500).run()
    over = results.over_seeds()
    assert over["trained"].to_list() == [2, 2]
    assert over["prompts.label_rule"].n_unique() == 2


@pytest.mark.parametrize("name", ["status", "trial", "seconds", "error", "loss"])
def test_a_measure_cannot_take_a_name_that_is_in_use(tiny_run, name):
    frame = Sweep(base=tiny_run, measure=("error", lambda trained, test, seed: {name: 1.0}), prompts=500).run().frame
    assert frame["status"].to_list() == ["failed"]
    assert f"got '{name}', which is taken" in frame["reason"][0]


def test_a_store_keeps_different_measurements_of_one_setting_apart(tiny_run, tmp_path):
    grid = {"prompts.pattern_norm": [1.0, 2.0]}
    for measure in (("error",), ("floor", "hinge")):
        Sweep(base=tiny_run, grid=grid, measure=measure, prompts=500).run(store=tmp_path)
    table = stored_results(tmp_path)
    assert len(table.frame) == 2
    assert table.frame.select("error", "hinge", "floor").null_count().sum_horizontal()[0] == 0
    Sweep(base=tiny_run, grid=grid, measure=("error",), prompts=1000).run(store=tmp_path)
    assert stored_results(tmp_path).axes == ["prompts.pattern_norm", "test_prompts"]
    assert len(stored_results(tmp_path, ["prompts.noise_norm=none"]).frame) == 4
    with pytest.raises(IclabError, match="where must leave at least one row"):
        stored_results(tmp_path, ["error<0"])
    Sweep(base=tiny_run, grid={"data_seed": [1, 2]}, reseed="init", measure=("error",), prompts=500).run(store=tmp_path)
    assert "data_seed" in stored_results(tmp_path, ["test_prompts=500"]).axes


def broken_rule(clean, coin, x):
    if x.shape[0] > 7:
        raise RuntimeError("no rule for long prompts")
    return clean


def test_a_run_that_cannot_be_trained_does_not_stop_the_others(tiny_run):
    # The rule passes the spec's own check (6 examples and a query) and breaks for the longer prompts of a batch.
    prompts = replace(tiny_run.prompts, label_rule=broken_rule)
    longer = replace(prompts, label_rule="flip", prompt_length=9)
    object.__setattr__(longer, "label_rule", broken_rule)
    sweep = Sweep(base=replace(tiny_run, prompts=prompts), grid={"prompts": [prompts, longer]}, test=prompts,
                  prompts=500)
    frame = sweep.run().frame
    assert frame["status"].to_list() == ["trained", "failed"]
    assert "no rule for long prompts" in frame["reason"][1]


def test_a_lambda_runs_unstored(tiny_run, tmp_path, trained_now):
    run = replace(tiny_run, prompts=replace(tiny_run.prompts, label_rule=lambda clean, coin, x: -clean))
    for _ in range(2):
        results = Sweep(base=run, prompts=500).run(store=tmp_path)
        assert results.counts["trained"] == 1
    assert len(trained_now) == 2
    assert not list(tmp_path.rglob("*.safetensors"))
    assert not list(tmp_path.rglob("*.parquet"))


def test_damage_is_noticed_and_computed_again(small, tmp_path, trained_now):
    before = errors(small.run(store=tmp_path))
    trainings = len(trained_now)
    for file in tmp_path.rglob("*.parquet"):
        file.write_bytes(file.read_bytes()[:-5])
    weights = sorted(tmp_path.rglob("*.safetensors"))
    content = weights[0].read_bytes()
    weights[0].write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    packs.store_at.cache_clear()  # rows that this process has read already are not read again
    assert errors(small.run(store=tmp_path)).equals(before)
    assert len(trained_now) == trainings + 1
    assert Store(tmp_path).damaged() == []


def test_an_interruption_keeps_what_is_finished(small, tmp_path):
    def stop(tally):
        if tally.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small.run(store=tmp_path, watch=stop, workers=1)
    finished = len(Store(tmp_path).rows())
    assert 0 < finished < 12
    seen = []
    results = small.run(store=tmp_path, watch=seen.append)
    assert seen[0].found == finished
    assert results.counts["trained"] == 12


@pytest.mark.slow
def test_memory_is_bounded_by_narrower_packs(small, monkeypatch):
    from iclab.training.program import Program
    from iclab.training.programs import pack_bytes

    widths, real = [], Program.train
    monkeypatch.setattr(Program, "train",
                        lambda self, pack, *rest: widths.append(len(pack.runs)) or real(self, pack, *rest))
    # A kernel's memory hardly grows with the pack; that of a compiled program does.
    small = replace(small, base=replace(small.base, training=replace(small.base.training, backend="xla")))
    wide = small.run(workers=1)
    needed = pack_bytes([trial.run for trial in wide.trials[:3]], False)
    narrow = small.run(workers=1, memory=7 * needed // 10)
    assert widths[:2] == [3, 3]  # six runs in two packs, evenly
    assert max(widths[2:]) <= 2
    np.testing.assert_allclose(narrow.frame["loss"], wide.frame["loss"], rtol=1e-4)
    with pytest.raises(MemoryLimit, match=r"memory must allow .* MiB for each pack at work, got 0.0 MiB"):
        small.run(memory=1000)


@pytest.mark.parametrize(("options", "message"), [
    ({"engine": "slurm"}, "engine must be one of local, ray, got 'slurm'"),
    ({"workers": 0}, "workers must be at least 1, got 0"),
    ({"store": "/proc/none"}, "store must be a folder or fsspec URL that can be written"),
])
def test_bad_options_are_refused(small, options, message):
    with pytest.raises(IclabError, match=message):
        run_sweep(small, **options)


def test_the_plan_counts_and_estimates(small, tmp_path):
    plan = plan_sweep(small, tmp_path)
    assert (plan.trials, plan.trainings, plan.finished, plan.packs, plan.compilations) == (12, 6, 0, 2, 1)
    assert plan.seconds > 0
    assert plan.pack_mebibytes > 0
    small.run(store=tmp_path)
    done = plan_sweep(small, tmp_path)
    assert (done.finished, done.packs, done.seconds) == (12, 0, 0.0)


def test_the_plan_of_what_cannot_be_trained_is_one_line(tiny_run):
    with pytest.raises(IclabError, match="the sweep's runs cannot be trained: ValueError: no matrices"):
        plan_sweep(Sweep(base=replace(tiny_run, training=replace(tiny_run.training, optimizer=sabotage.no_matrices))))


def test_counts_are_right_with_many_threads(small):
    trials = small.trials()
    all_packs = packs.make_packs(trials, [None] * 12, set(range(12)))
    seen = []
    count = _Count(1200, 0, 100 * sum(pack.steps for pack in all_packs), seen.append)

    def work(_):
        for pack in all_packs:
            count.begin(pack)
            count.end(pack, {i: {"status": "trained"} for i in pack.trials})

    for _ in each(work, range(100), workers=8):
        pass
    assert (count.tally.done, count.tally.running) == (1200, 0)
    assert len(seen) == 2 * 100 * len(all_packs)


def test_a_frame_for_pandas(small):
    pandas = pytest.importorskip("pandas")
    frame = small.run().pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == 12


def test_a_pack_can_be_stopped(small):
    """A pack whose stop event is set raises `Interrupted`."""
    stop = threading.Event()
    stop.set()
    trials = small.trials()
    pack = packs.make_packs(trials, [None] * 12, set(range(12)))[0]
    job = packs.Job(("error",), 500, None, None, False, "x")
    with pytest.raises(packs.Interrupted):
        packs.run_pack(job, pack, stop=stop)
