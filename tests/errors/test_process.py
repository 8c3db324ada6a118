"""Environments that could end the process, tried in a separate one."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from iclab.cli import main

COMMAND = [sys.executable, "-m", "iclab.cli"]


@pytest.mark.parametrize(("variable", "value", "message"), [
    ("XLA_FLAGS", "--no_such_flag", "XLA_FLAGS must be flags that XLA knows, got '--no_such_flag'"),
    ("JAX_PLATFORMS", "nonsense", "JAX must be able to start, got JAX_PLATFORMS='nonsense'"),
    ("JAX_ENABLE_X64", "banana", "JAX must be able to start, got JAX_ENABLE_X64='banana'"),
], ids=lambda value: value[:14])
def test_a_variable_that_keeps_jax_from_starting(tmp_path, variable, value, message):
    others = {name: text for name, text in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run([*COMMAND, "notation"], capture_output=True, text=True, cwd=tmp_path, check=False,
                          env={**others, variable: value})
    assert done.returncode == 2
    assert done.stderr.startswith(f"iclab: {message}")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_undecodable_bytes_are_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, "utf-8", errors="strict"))
    assert main(["train", "--out", "\udcff.safetensors", "--training.steps", "2", "--training.batch-size", "8"]) == 0
    assert written.getvalue().endswith(b"saved to \\udcff.safetensors\n")
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff.safetensors"]
