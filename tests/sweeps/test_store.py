"""The store: results are found again, damage is noticed, interruption loses no finished work."""

from __future__ import annotations

import json
import os
import zlib
from functools import partial

import jax
import numpy as np
import optax
import pytest

from iclab import Classification, GatedAttention, IclabError, LabelEmbedding, Run, Training, replace
from iclab.commands.programs import remove_damaged
from iclab.core.identity import canonical, from_json, to_json
from iclab.sweeps.storage import Files
from iclab.sweeps.store import Store, check_writable, run_id


def one_file(folder):
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert len(files) == 1
    return files[0]


def test_a_run_is_named_by_its_spec_alone(tiny_run):
    assert run_id(tiny_run) == run_id(replace(tiny_run, init_seed=0))
    changed = [tiny_run.seeded(1), replace(tiny_run, prompts=replace(tiny_run.prompts, outlier_scale=2.5)),
               replace(tiny_run, model=replace(tiny_run.model, init_scale=0.1))]
    assert len({run_id(run) for run in [tiny_run, *changed]}) == 4
    as_whole = replace(tiny_run, prompts=replace(tiny_run.prompts, pattern_norm=3))
    assert run_id(as_whole) == run_id(tiny_run)


def test_a_field_that_came_later_counts_where_it_is_used(tiny_run):
    assert "outlier_vectors" not in canonical(tiny_run)
    own = replace(tiny_run, prompts=replace(tiny_run.prompts, outlier_vectors=np.ones((1, 9))))
    assert "outlier_vectors" in canonical(own)
    assert from_json(to_json(own), {kind.__name__: kind for kind in (
        Run, Training, GatedAttention, LabelEmbedding, Classification)}) == own


def test_a_run_is_named_by_what_its_functions_hold_and_its_precision(tiny_run):
    def with_optimizer(optimizer):
        return run_id(replace(tiny_run, training=replace(tiny_run.training, optimizer=optimizer)))

    def momentum(value):
        return lambda rate: optax.sgd(rate, momentum=value)

    def closure(value):
        def optimizer(rate):
            return optax.sgd(rate, momentum=value)
        return optimizer

    assert with_optimizer(closure(0.0)) == with_optimizer(closure(0.0)) is not None
    assert with_optimizer(closure(0.0)) != with_optimizer(closure(0.9))
    assert with_optimizer(momentum(0.0)) is None  # a lambda has no unique name
    assert with_optimizer(partial(momentum(0.0))) is None
    assert with_optimizer(partial(optax.sgd, momentum=0.0)) != with_optimizer(partial(optax.sgd, momentum=0.9))
    with jax.enable_x64(True):
        double = run_id(tiny_run)
    assert double != run_id(tiny_run)


def test_finished_runs_are_not_trained_again(tiny_run, tmp_path, monkeypatch):
    store = Store(tmp_path)
    runs = [tiny_run.seeded(seed) for seed in range(3)]
    first = store.train(runs[:2])
    requested = []

    import iclab.sweeps.store as module

    real = module.train_many
    monkeypatch.setattr(module, "train_many", lambda runs, **kw: requested.extend(runs) or real(runs, **kw))
    again = store.train(runs)
    assert requested == [runs[2]]
    np.testing.assert_array_equal(first[1].params[0].W_B, again[1].params[0].W_B)


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: b"", lambda data: data[:-1] + b"\x07"])
def test_a_damaged_run_is_computed_again(tiny_run, tmp_path, damage):
    store = Store(tmp_path)
    before = store.train([tiny_run])[0]
    path = one_file(tmp_path / "runs")
    path.write_bytes(damage(path.read_bytes()))
    assert store.find(tiny_run) is None
    np.testing.assert_array_equal(store.train([tiny_run])[0].params[0].W_B, before.params[0].W_B)
    assert store.find(tiny_run) is not None


def test_runs_finished_before_an_interruption_stay(tiny_run, tmp_path):
    store = Store(tmp_path)
    short = tiny_run
    long = replace(tiny_run.seeded(1), training=replace(tiny_run.training, steps=5000))

    def stop(done, total):
        if store.find(short) is not None:
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


def test_a_store_may_be_anywhere_that_fsspec_reaches(tiny_run):
    store = Store("memory://somewhere/store")
    store.check()
    before = store.train([tiny_run])[0]
    stored = Store("memory://somewhere/store").find(tiny_run)
    np.testing.assert_array_equal(stored.params[0].W_B, before.params[0].W_B)
    assert store.recall("m", 1, lambda: {"a": 2}) == store.recall("m", 1, lambda: {"a": 2}) == {"a": 2}
    store.add_rows([{"trial": "c" * 24, "status": "trained", "error": 0.5}])
    assert Store("memory://somewhere/store").rows()["c" * 24]["error"] == 0.5


@pytest.mark.parametrize("place", ["nowhere://bucket/x", "/proc/nothing/store", "memory"])
def test_a_store_that_cannot_be_used_is_refused(place, tmp_path):
    if place == "memory":
        (tmp_path / "memory").write_text("a file, not a folder")
        place = str(tmp_path / "memory")
    with pytest.raises(IclabError, match="store must be a folder or fsspec URL that can be written, got"):
        Store(place).check()


def test_a_file_is_named_by_its_content(tmp_path):
    files = Files(tmp_path)
    files.put("folder", "key", "json", b"1234")
    files.put("folder", "key", "json", b"1234")
    path = one_file(tmp_path)
    assert files.get("folder", "key", bytes) == b"1234"
    assert files.get("folder", "ke", bytes) is None
    path.write_bytes(b"1235")
    assert files.get("folder", "key", bytes) is None
    assert files.damage == [f"folder/{path.name}"]
    files.put("folder", "key", "json", b"1234")
    assert one_file(tmp_path) == path


def test_a_failure_gives_way_to_a_success_and_damaged_rows_to_none(tmp_path):
    store = Store(tmp_path)
    a, b = "a" * 24, "b" * 24
    store.add_rows([{"trial": a, "status": "failed"}, {"trial": b, "status": "trained"}])
    store.add_rows([{"trial": b, "status": "failed"}, {"trial": a, "status": "trained"}])
    assert {name: row["status"] for name, row in Store(tmp_path).rows().items()} == {a: "trained", b: "trained"}
    for file in (tmp_path / "results").iterdir():
        file.write_bytes(file.read_bytes()[:-3])
    (tmp_path / "results" / "notes.txt").write_text("mine")
    (tmp_path / "results" / "folder").mkdir()
    fresh = Store(tmp_path)
    assert fresh.rows() == {}
    assert len(fresh.damaged()) == 2
    fresh.tidy({a})  # a sweep removes only its own rows
    assert [name[0] for name in fresh.damaged()] == ["b"]
    fresh.tidy({a, b})
    assert fresh.damaged() == []
    assert (tmp_path / "results" / "notes.txt").exists()


def test_rows_whose_file_is_gone_are_forgotten(tmp_path):
    store = Store(tmp_path)
    store.add_rows([{"trial": "a" * 24, "status": "trained"}])
    assert len(store.rows()) == 1
    one_file(tmp_path).unlink()
    assert store.rows() == {}


def test_a_run_computed_again_is_the_same_file(tiny_run, tmp_path):
    for name in ("one", "two", "three"):
        Store(tmp_path / name).train([tiny_run])
    names = {one_file(tmp_path / name).name for name in ("one", "two", "three")}
    assert len(names) == 1


def test_a_file_under_another_key_is_rejected(tiny_run, tmp_path):
    """Renamed or copied to another key, with a correct digest: read, it would silently give a wrong number."""
    store = Store(tmp_path)
    assert [store.recall("m", number, partial(float, number)) for number in (1, 2)] == [1.0, 2.0]
    files = list((tmp_path / "measurements").iterdir())
    first, second = sorted(files, key=lambda file: json.loads(file.read_text())["value"])
    key = second.name.rsplit("-", 1)[0]
    second.unlink()
    swapped = second.with_name(f"{key}-{first.name.rsplit('-', 1)[1]}")
    first.rename(swapped)
    assert store.recall("m", 2, partial(float, 2)) == 2.0
    assert not swapped.exists(), "a damaged file that was computed again stays behind"

    other = replace(tiny_run, training=replace(tiny_run.training, optimizer=partial(optax.sgd, nesterov=True)))
    trained = store.train([tiny_run, other])
    files = {file.name.split("-")[0]: file for file in (tmp_path / "runs").rglob("*.safetensors")}
    one_run, other_run = files[run_id(tiny_run)], files[run_id(other)]
    content = one_run.read_bytes()
    other_run.unlink()
    copied = other_run.with_name(f"{run_id(other)}-{one_run.name.split('-')[1]}")
    copied.write_bytes(content)
    assert store.find(other) is None
    np.testing.assert_array_equal(store.train([other])[0].params[0].W_B, trained[1].params[0].W_B)
    assert not copied.exists()


NOT_FILES = {"folder": lambda path: path.mkdir(), "loop": lambda path: path.symlink_to(path),
            "dangling": lambda path: path.symlink_to("nowhere"), "pipe": lambda path: os.mkfifo(path)}


@pytest.mark.parametrize("kind", NOT_FILES)
@pytest.mark.parametrize("place", ["file", "folder above", "top"])
def test_a_folder_pipe_or_link_in_place_of_a_file_is_set_aside(kind, place, tmp_path, record_property):
    store, calls = Store(tmp_path), []

    def compute():
        calls.append(1)
        return 1.5

    assert store.recall("m", 1, compute) == 1.5
    path = one_file(tmp_path / "measurements")
    path.unlink()
    if place != "file":
        path.parent.rmdir()
        if place == "folder above" and kind == "folder":
            path.parent.write_text("a file where a folder belongs")
        elif kind != "folder":
            NOT_FILES[kind](path.parent)
    else:
        NOT_FILES[kind](path)
    assert store.recall("m", 1, compute) == 1.5
    assert Store(tmp_path).recall("m", 1, compute) == 1.5
    assert len(calls) == 2
    if (place, kind) != ("top", "folder"):
        assert store.files.moved[0].startswith("set-aside/measurements")
    record_property("cases", 1)


def test_a_damaged_program_is_removed_so_that_it_can_be_replaced(tmp_path):
    good = zlib.compress(b"a program")
    contents = {"good": good, "cut": good[:-3], "empty": b"", "turned": good[:4] + b"?" + good[5:], "other": b"text"}
    for name, content in contents.items():
        (tmp_path / f"{name}-cache").write_bytes(content)
    (tmp_path / "folder-cache").mkdir()
    (tmp_path / "loop-cache").symlink_to(tmp_path / "loop-cache")
    assert sorted(remove_damaged(tmp_path)) == sorted(
        f"{name}-cache" for name in (*contents, "folder", "loop") if name != "good")
    assert [file.name for file in tmp_path.glob("*-cache")] == ["good-cache"]
    assert remove_damaged(tmp_path / "absent") == []
