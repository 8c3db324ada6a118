"""Many small result files: merged without loss, read in parallel, rejected under another name."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time

import polars as pl
import pytest

from iclab import IclabError, Store
from iclab.cli import main
from iclab.sweeps import rows as module
from iclab.sweeps.results import stored_results


def row(number, **values):
    return {"trial": f"{number:024x}", "run": "r", "sweep": "s", "seed": number, "status": "trained", "reason": "",
            "error": number / 1000, "test_prompts": 500, "fields": json.dumps({"a": number}), "seconds": 1.0,
            "started": 1.0, "finished": 2.0, **values}


def packs(folder):
    return [name for name in os.listdir(folder / "results") if name.endswith(".parquet")]


def test_files_are_merged_as_they_are_added_and_when_they_are_shown(tmp_path):
    store = Store(tmp_path)
    for number in range(200):
        store.add_rows([row(number, **({"hinge": 0.5} if number % 2 else {}))])
    assert len(packs(tmp_path)) == 3 + 200 - 3 * module.MERGE_ABOVE
    assert {name: stored["error"] for name, stored in Store(tmp_path).rows().items()} == {
        f"{number:024x}": number / 1000 for number in range(200)}
    assert len(stored_results(tmp_path).frame) == 200
    for number in range(200, 270):  # as other processes would have left them
        Store(tmp_path).add_rows([row(number)])
    assert len(packs(tmp_path)) > module.MERGE_ABOVE
    assert main(["results", str(tmp_path), "--limit", "1"]) == 0
    assert len(packs(tmp_path)) == 1
    assert len(Store(tmp_path).rows()) == 270
    assert len(store.rows()) == 270  # a store that was open meanwhile


def test_merging_does_not_change_which_row_counts(tmp_path):
    for number in range(80):
        Store(tmp_path).add_rows([row(number, status="failed", error=None)])
        Store(tmp_path).add_rows([row(number)])
    before = Store(tmp_path).rows()
    Store(tmp_path).tidy()
    assert len(packs(tmp_path)) == 1
    assert Store(tmp_path).rows() == before
    assert {stored["status"] for stored in before.values()} == {"trained"}


def test_a_store_that_cannot_be_written_is_still_shown(tmp_path, monkeypatch, capsys):
    for number in range(70):
        Store(tmp_path).add_rows([row(number)])

    def full(*_):
        raise IclabError("cannot write: No space left on device")

    monkeypatch.setattr("iclab.sweeps.storage.write_whole", full)
    assert main(["results", str(tmp_path), "--limit", "0"]) == 0
    assert len(packs(tmp_path)) == 70
    assert capsys.readouterr().out.count("\n") >= 70


ADDER = """
import sys
from test_rows import row
from iclab import Store
from iclab.sweeps import rows
rows.MERGE_ABOVE = 4
place, first = sys.argv[1], int(sys.argv[2])
for number in range(first, first + 30):
    Store(place).add_rows([row(number)])
    if number % 7 == 0:
        Store(place).tidy()
"""


@pytest.mark.slow
def test_killed_and_concurrent_processes_lose_no_row(tmp_path, record_property):
    """Processes that add and merge at once, some of them killed at any moment: no added row is lost."""
    chance, turns, path = random.Random(0), 3, os.pathsep.join([os.path.dirname(__file__), *sys.path])
    for turn in range(turns):
        workers = [subprocess.Popen([sys.executable, "-c", ADDER, str(tmp_path), str(1000 * (2 * turn + which))],
                                    env={**os.environ, "PYTHONPATH": path}) for which in range(2)]
        try:
            while not any(name.startswith(f"{1000 * 2 * turn:024x}"[:21]) for name in Store(tmp_path).rows()) \
                    and workers[0].poll() is None:
                time.sleep(0.02)
            time.sleep(chance.uniform(0, 0.3))
            before = set(Store(tmp_path).rows())
            workers[0].kill()
            assert workers[1].wait() == 0
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        after = set(Store(tmp_path).rows())
        assert before <= after
        assert {f"{1000 * (2 * turn + 1) + number:024x}" for number in range(30)} <= after
    assert Store(tmp_path).damaged() == []
    record_property("cases", turns)


def test_damage_is_counted_not_silent(tmp_path, capsys, record_property):
    kinds = {
        "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
        "empty": lambda path: path.write_bytes(b""),
        "turned": lambda path: path.write_bytes(path.read_bytes()[:50] + b"?" + path.read_bytes()[51:]),
        "folder": lambda path: (path.unlink(), path.mkdir()),
        "loop": lambda path: (path.unlink(), path.symlink_to(path)),
        "pipe": lambda path: (path.unlink(), os.mkfifo(path)),
        "dangling": lambda path: (path.unlink(), path.symlink_to("nowhere")),
        "renamed": lambda path: path.rename(path.with_name(f"{'f' * 24}-{path.name.split('-')[1]}")),
    }
    for number, break_ in enumerate(kinds.values()):
        Store(tmp_path).add_rows([row(number)])
        path = next(tmp_path.glob(f"results/{number:024x}-*"))
        break_(path)
    assert main(["results", str(tmp_path)]) == 2
    assert "has none that can be read" in capsys.readouterr().err
    Store(tmp_path).add_rows([row(99)])
    assert main(["results", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1
    assert "iclab: 4 damaged files left out of" in printed.err  # the others, which are not plain files, had been moved
    assert len(os.listdir(tmp_path / "set-aside")) == 4
    assert set(Store(tmp_path).rows()) == {f"{99:024x}"}
    record_property("cases", len(kinds))


def test_a_file_of_another_kind_with_a_right_digest_is_damage(tmp_path):
    store = Store(tmp_path)
    store.files.put("results", "a" * 24, "parquet", b"PAR1 but not really")
    store.files.put("results", "b" * 24, "parquet", pl.DataFrame({"x": [1]}).serialize())
    store.add_rows([row(1)])
    assert set(Store(tmp_path).rows()) == {f"{1:024x}"}
    assert len(Store(tmp_path).damaged()) == 2


def test_files_elsewhere_are_read_in_one_call(monkeypatch):
    """An object store is asked for many files at once, not for one after another."""
    for number in range(40):
        Store("memory://rows/store").add_rows([row(number)])
    store = Store("memory://rows/store")
    counts = []
    real = store.files.system.cat
    monkeypatch.setattr(store.files.system, "cat", lambda paths, **kw: counts.append(len(paths)) or real(paths, **kw))
    assert len(store.rows()) == 40
    assert counts == [40]


@pytest.mark.parametrize("place", ["a\0b", "x" * 5000])
def test_an_impossible_file_name_is_one_line(place, capsys):
    assert main(["results", place]) == 2
    assert capsys.readouterr().err.count("\n") == 1
