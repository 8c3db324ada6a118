"""Sweeps in separate processes: killed, interrupted, two with one store, spread over devices."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from iclab import Store
from iclab.sweeps.results import stored_results
from tiny_sweep import TINY_PROMPTS

TICK = 0.01
"""Seconds by which the time of a file may be behind the clock."""
FILE = f"""
seeds = 4
test_prompts = 500
{TINY_PROMPTS}training.steps = 2000
training.learning_rate = 0.1
training.record_every = 1000
[grid]
prompts.outlier_fraction = {{ from = 0.0, to = 0.8, count = 6 }}
model.member = ["mamba", "linear"]
"""
started: list = []


def start(file, out, *options):
    command = [sys.executable, "-m", "iclab.cli", "sweep", str(file), "--out", str(out), "--json", *options]
    started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return started[-1]


@pytest.fixture(autouse=True)
def _no_process_outlives_its_test():
    yield
    for process in started:
        process.kill()
        process.communicate()
    started.clear()


def stored_files(store):
    """Every finished file with its inode and time: those of a file computed again would differ."""
    identities = {}
    for file in [*store.rglob("*.safetensors"), *store.rglob("*.parquet")]:
        identities[file.name] = file.stat().st_ino, file.stat().st_mtime_ns
    return identities


def wait_for_more(process, store, before):
    while len(stored_files(store)) <= before and process.poll() is None:
        time.sleep(0.02)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The sweep of FILE, run without interruption."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "sweep.toml").write_text(FILE)
    process = start(folder / "sweep.toml", folder / "out")
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["trained"] == 48
    return folder


def values(store):
    frame = stored_results(store).frame
    return frame.select(sorted(set(frame.columns) - {"seconds", "sweep"})).sort("run")


@pytest.mark.slow
def test_killed_five_times_it_completes_and_computes_nothing_twice(undisturbed, tmp_path):
    store, chance = tmp_path / "store", random.Random(0)
    for _ in range(5):
        process = start(undisturbed / "sweep.toml", tmp_path, "--store", str(store))
        before = stored_files(store)
        wait_for_more(process, store, len(before))
        time.sleep(chance.uniform(0, 0.6))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        after = stored_files(store)
        assert before.items() <= after.items()
    assert after
    process = start(undisturbed / "sweep.toml", tmp_path, "--store", str(store))
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert after.items() <= stored_files(store).items()
    assert json.loads(stdout)["trained"] == 48
    assert values(store).equals(values(undisturbed / "out" / "store"))


@pytest.mark.slow
def test_two_processes_share_one_store(undisturbed, tmp_path):
    store = tmp_path / "store"
    both = [start(undisturbed / "sweep.toml", tmp_path / name, "--store", str(store)) for name in "ab"]
    for process in both:
        stdout, stderr = process.communicate()
        assert process.returncode == 0, stderr
        assert json.loads(stdout)["trained"] == 48
    assert Store(store).damaged() == []
    assert_frame_equal(values(store), values(undisturbed / "out" / "store"), check_exact=True)
    # A file can be seen from its renaming on, which changes its status; file times may be behind by a tick.
    files = [(pl.read_parquet(file), file.stat().st_ctime) for file in (store / "results").glob("*.parquet")]
    rows = pl.concat([frame.with_columns(kept=pl.lit(time)) for frame, time in files], how="diagonal")
    for _, same in rows.group_by("trial"):
        times = same.sort("kept").select("started", "kept").rows()
        assert all(late[0] < times[0][1] + TICK for late in times[1:]), "computed again after it was kept"


@pytest.mark.slow
def test_ctrl_c_says_how_to_continue(undisturbed, tmp_path):
    store = tmp_path / "store"
    process = start(undisturbed / "sweep.toml", tmp_path)
    wait_for_more(process, store, 0)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate()
    assert process.returncode == 130
    assert "rerun the same command to continue" in stderr
    assert "Traceback" not in stderr


@pytest.mark.slow
def test_four_devices_train_what_one_does(tmp_path):
    code = """
import jax, numpy as np, sys
from iclab import Classification, Run, Sweep, Training
from iclab.training import packing, program
assert len(jax.devices()) == 4
prompts = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2, prompt_length=6)
sweep = Sweep(base=Run(prompts=prompts, training=Training(steps=30, batch_size=16, record_every=10, learning_rate=0.1)),
              grid={"prompts.outlier_fraction": [0.0, 0.2, 0.4]}, seeds=6, prompts=500)
used, real = set(), program.Program.program
def watched(self, *args):
    made = real(self, *args)
    used.update(device for sharding in jax.tree.leaves(made.output_shardings) for device in sharding.device_set)
    return made
program.Program.program = watched
spread = sweep.run().frame
assert len(used) == 4, used
assert set(spread["status"]) == {"trained"}
program.shards_for = packing.shards_for = lambda count: 1
alone = sweep.run().frame
np.testing.assert_allclose(spread["loss"], alone["loss"], rtol=1e-9)
np.testing.assert_array_equal(spread["error"], alone["error"])
"""
    # In double precision: two programs of different widths need not round alike.
    flags = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_ENABLE_X64": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=flags, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
