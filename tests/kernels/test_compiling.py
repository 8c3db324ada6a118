"""Compiled kernels on disk: kept by the hash of their sources, ahead of their use, and replaced when damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iclab.kernels import ahead, arithmetic

SCRIPT = """
import numpy as np
from iclab.kernels.arithmetic import exponentials
print(float(exponentials(np.zeros(2, np.float32))[0][0]), exponentials.stats.cache_hits.total())
"""


def run(folder, *arguments):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False,
                          timeout=300)


@pytest.mark.slow
def test_damaged_kernels_are_compiled_again(tmp_path, record_property):
    first = run(tmp_path, "-c", SCRIPT)
    assert first.stdout.split() == ["1.0", "0"], first.stderr
    assert run(tmp_path, "-c", SCRIPT).stdout.split() == ["1.0", "1"]
    cases = 0
    for kind in ("*.nbc", "*.nbi"):
        for damage in (lambda content: content[:len(content) // 2], lambda content: b"", lambda content: b"x" * 99):
            for file in tmp_path.rglob(kind):
                file.write_bytes(damage(file.read_bytes()))
            again = run(tmp_path, "-c", SCRIPT)
            assert again.stdout.split() == ["1.0", "0"], again.stderr
            assert run(tmp_path, "-c", SCRIPT).stdout.split() == ["1.0", "1"]
            cases += 1
    record_property("cases", cases)


def test_a_part_of_kernels_is_refused_to_python():
    with pytest.raises(TypeError, match="choice is a part of kernels; only compiled code can call it"):
        arithmetic.choice(3, 4)


@pytest.mark.slow
def test_kernels_compiled_ahead_are_not_compiled_again(tmp_path):
    done = run(tmp_path, "-m", "iclab.kernels.ahead")
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob(ahead.DONE))
    script = ("from iclab.kernels import softmax, softmax_follow, chains_fused, chain_answers, ahead; "
              "ahead.compile_kernels(); "
              "print([f.stats.cache_misses.total() for f in (softmax.train, softmax_follow.follow_softmax, "
              "chains_fused.train, chain_answers.answer)])")
    again = run(tmp_path, "-c", script)
    assert again.stdout.strip() == "[0, 0, 0, 0]", again.stderr


def test_a_job_starts_one_process_and_waits_for_what_it_compiles(monkeypatch, tmp_path):
    from iclab import ChainAttention, GatedAttention
    from iclab.kernels import compiling

    started = []

    class Process:
        def __init__(self, arguments, **options):
            started.append(arguments)
            self.waited = False

        def wait(self):
            self.waited = True

        def kill(self):
            self.waited = None

    monkeypatch.setattr(ahead, "_processes", [])
    monkeypatch.setattr(ahead, "cores", lambda: 2)
    monkeypatch.setattr(compiling, "cache_folder", lambda: str(tmp_path))
    monkeypatch.setattr(ahead.subprocess, "Popen", Process)
    ahead.start_compiling()
    ahead.start_compiling()
    assert started == [[sys.executable, "-m", "iclab.kernels.ahead"]]
    ahead.wait_until_compiled(GatedAttention())
    assert not ahead._processes[0].waited
    ahead.wait_until_compiled(ChainAttention())
    assert ahead._processes[0].waited
    monkeypatch.setattr(ahead, "_processes", [])
    (Path(tmp_path) / ahead.DONE).touch()
    ahead.start_compiling()
    assert len(started) == 1
