"""The store: found again, damage noticed, interruption loses nothing finished."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np
import optax
import pytest

from iclab import IclabError, replace
from iclab.runs.store import Store, check_writable, run_id


def test_a_run_is_named_by_its_spec_alone(tiny_run):
    assert run_id(tiny_run) == run_id(replace(tiny_run, init_seed=0))
    changed = [tiny_run.seeded(1), replace(tiny_run, prompts=replace(tiny_run.prompts, outlier_scale=2.5)),
               replace(tiny_run, model=replace(tiny_run.model, init_scale=0.1))]
    assert len({run_id(run) for run in [tiny_run, *changed]}) == 4
    as_whole = replace(tiny_run, prompts=replace(tiny_run.prompts, pattern_norm=3))
    assert run_id(as_whole) == run_id(tiny_run)


def test_a_run_is_named_by_what_its_functions_hold_and_its_precision(tiny_run):
    def with_optimizer(optimizer):
        return run_id(replace(tiny_run, training=replace(tiny_run.training, optimizer=optimizer)))

    def momentum(value):
        return lambda rate: optax.sgd(rate, momentum=value)

    assert with_optimizer(momentum(0.0)) == with_optimizer(momentum(0.0))
    assert with_optimizer(momentum(0.0)) != with_optimizer(momentum(0.9))
    assert with_optimizer(partial(optax.sgd, momentum=0.0)) != with_optimizer(partial(optax.sgd, momentum=0.9))
    with jax.enable_x64(True):
        double = run_id(tiny_run)
    assert double != run_id(tiny_run)


def test_finished_runs_are_not_trained_again(tiny_run, tmp_path, monkeypatch):
    store = Store(tmp_path)
    runs = [tiny_run.seeded(seed) for seed in range(3)]
    first = store.train(runs[:2])
    asked = []

    import iclab.runs.store as module

    real = module.train_many
    monkeypatch.setattr(module, "train_many", lambda runs, **kw: asked.extend(runs) or real(runs, **kw))
    again = store.train(runs)
    assert asked == [runs[2]]
    np.testing.assert_array_equal(first[1].params[0].W_B, again[1].params[0].W_B)


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: b"", lambda data: data[:-1] + b"\x07"])
def test_a_damaged_run_is_computed_again(tiny_run, tmp_path, damage):
    store = Store(tmp_path)
    before = store.train([tiny_run])[0]
    path = store.run_path(tiny_run)
    path.write_bytes(damage(path.read_bytes()))
    assert store.find(tiny_run) is None
    np.testing.assert_array_equal(store.train([tiny_run])[0].params[0].W_B, before.params[0].W_B)
    assert store.find(tiny_run) is not None


def test_runs_finished_before_an_interruption_stay(tiny_run, tmp_path):
    store = Store(tmp_path)
    short = tiny_run
    long = replace(tiny_run.seeded(1), training=replace(tiny_run.training, steps=5000))

    def stop(done, total):
        if store.run_path(short).exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.train([short, long], progress=stop)
    assert store.find(short) is not None
    assert store.find(long) is None


def test_a_measurement_is_remembered_until_its_ingredients_change(tmp_path):
    store, calls = Store(tmp_path), []

    def compute():
        calls.append(1)
        return [1.5, 2]

    assert store.recall("m", {"a": 1}, compute) == store.recall("m", {"a": 1}, compute) == [1.5, 2]
    assert len(calls) == 1
    store.recall("m", {"a": 2}, compute)
    assert len(calls) == 2
    for file in (tmp_path / "measurements").iterdir():
        file.write_text(file.read_text().replace("1.5", "9.5"))
    assert store.recall("m", {"a": 1}, compute) == [1.5, 2]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(IclabError, match="out must be a folder that can be written"):
        check_writable(tmp_path / "file" / "results")
