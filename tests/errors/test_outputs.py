"""Where output is written: never over a device, a pipe or a link, never outside its folder, without tracebacks."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest
from refusal import refused

from iclab.core.errors import IclabError, SpecError
from iclab.core.files import write_whole
from iclab.figures.plots import Plot
from iclab.lab.entries import Table


def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(IclabError, match="it is a folder, a device or a pipe, not a file"):
        write_whole(tmp_path / "pipe", b"content")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_link_is_kept_and_its_target_written(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["../up", "/absolute", "a\\q", 'a"><script>', "a\0b", "a\udcffb", "", "a/b", None, 3])
@pytest.mark.parametrize("make", [lambda name: Plot(name, "", "", "<svg", ""), lambda name: Table(name, "", (), [])])
def test_plots_and_tables_need_valid_file_names(name, make):
    with pytest.raises(SpecError, match=r"name of the (plot|table) must be"):
        make(name)


STREAMS = {
    "a reader that leaves": ("{} theory --paper icl | head -1; exit ${{PIPESTATUS[0]}}", 0, "In short:"),
    "help for a reader that leaves": ("{} --help | head -1; exit ${{PIPESTATUS[0]}}", 0, "usage: iclab"),
    "a full output": ("{} theory --paper icl >/dev/full", 2, ""), "a closed output": ("{} list >&-", 0, ""),
    "a full error": ("{} eval nofile 2>/dev/full", 2, ""),
}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("name", STREAMS)
def test_streams_that_fail_give_no_traceback(name, tmp_path):
    line, code, out = STREAMS[name]
    done = subprocess.run(["bash", "-c", line.format(f"{sys.executable} -m iclab")], capture_output=True, text=True,
                          check=False, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith(out)


def test_an_impossible_file_name_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(["eval", "a" * 5000], "checkpoint 'a")


@pytest.mark.parametrize("arguments", [["eval", "x", "--seed=--"], ["theory", "--accuracy=--"], ["train", "--out=--"],
                                       ["results", "s", "--limit=--"], ["chain", "--steps=--"]])
def test_two_dashes_are_not_a_value(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(arguments, "must be a value, got '--'")
