"""`iclab sweep` and `iclab results` as a user meets them."""

from __future__ import annotations

import json

import polars as pl
import pytest

from iclab.cli import main
from iclab.commands import progress
from iclab.commands.results import tables
from iclab.sweeps.engines import Tally
from tiny_sweep import TINY_PROMPTS

FILE = f"""
name = "tiny"
seeds = 2
test_prompts = 500
{TINY_PROMPTS}training.steps = 30
training.record_every = 10
[test]
label_rule = "flip"
[grid]
prompts.outlier_fraction = [0.0, 0.4]
prompts.outlier_scale = [1.0, 3.0]
[plot]
x = "prompts.outlier_fraction"
y = "prompts.outlier_scale"
theory = "mamba"
"""
LINES = """
[plot]
kind = "lines"
x = "prompts.outlier_fraction"
by = "prompts.outlier_scale"
log_y = true
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(FILE)
    return path


def test_plan_run_and_results(file, tmp_path, capsys):
    out, store = str(tmp_path / "out"), str(tmp_path / "store")
    assert main(["sweep", str(file), "--out", out, "--store", store, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "8 trials of 8 trainings; 0 trials are finished" in printed
    assert "2 packs for" in printed
    assert main(["sweep", str(file), "--out", out, "--store", store]) == 0
    printed = capsys.readouterr().out
    assert "tiny: 8 trials (8 trained, 0 stuck, 0 diverged, 0 failed)" in printed
    folder = tmp_path / "out" / "sweeps" / "tiny"
    assert {path.name for path in folder.iterdir()} == {"trials.csv", "over_seeds.csv", "phase.svg", "phase.csv"}
    assert len(pl.read_csv(folder / "trials.csv")) == 8
    assert main(["sweep", str(file), "--out", out, "--store", store, "--dry-run"]) == 0
    assert "8 trials, all finished" in capsys.readouterr().out
    file.write_text(FILE.partition("[plot]")[0] + LINES)
    assert main(["sweep", str(file), "--out", out, "--store", store, "--formats", "pdf"]) == 0
    assert {path.name for path in folder.glob("lines*")} == {"lines.svg", "lines.csv", "lines.pdf"}
    assert "tiny,outlier scale (training) 3,0.4," in (folder / "lines.csv").read_text()
    capsys.readouterr()

    assert main(["results", store, "--where", "prompts.outlier_scale>1", "--limit", "2"]) == 0
    printed = capsys.readouterr().out
    assert "prompts.outlier_fraction" in printed
    assert "2 more rows" in printed
    assert main(["results", store, "--over-seeds", "--csv", "-", "--parquet", str(tmp_path / "means.parquet")]) == 0
    captured = capsys.readouterr()
    assert f"means.parquet: 4 rows, {len(captured.out.splitlines()[0].split(','))} columns" in captured.err
    lines = captured.out.splitlines()
    assert len(lines) == 5
    assert "error_low" in lines[0]
    assert main(["results", store, "--all-fields", "--parquet", str(tmp_path / "r.parquet")]) == 0
    frame = pl.read_parquet(tmp_path / "r.parquet")
    assert frame["training.batch_size"].to_list() == [16] * 8
    damaged = next((tmp_path / "store" / "results").iterdir())
    damaged.write_bytes(b"")
    assert main(["results", store]) == 0
    assert "damaged file left out" in capsys.readouterr().err
    for path in (tmp_path / "store" / "runs").rglob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:100])
    for path in (tmp_path / "store" / "results").iterdir():
        path.unlink()
    assert main(["sweep", str(file), "--out", out, "--store", store]) == 0
    assert "8 damaged files left out" in capsys.readouterr().err


def test_progress_is_printed_in_lines_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    with progress.tally_bar() as show:
        show(Tally(10, done=4, running=2, failed=1, diverged=1, stuck=1, work=0.5))
    assert "4/10 done, 2 running, 1 failed, 1 diverged, 1 stuck, 0 s, about 0 s left" in capsys.readouterr().err


def test_a_failed_run_is_reported_and_shown(file, tmp_path, capsys):
    file.write_text(FILE.replace("seeds = 2", 'seeds = 2\nmeasure = ["error", "iclab.cli:main"]'))
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", str(file), "--out", str(tmp_path / "out"), "--json"])
    assert stopped.value.code == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["failed"] == 8
    assert "8 trials failed, the first: measure: TypeError" in printed.err
    assert "no phase diagram, error was not measured" in printed.err
    assert main(["results", str(tmp_path / "out" / "store")]) == 0
    assert "TypeError" in capsys.readouterr().out


def test_failures_are_reported_even_if_the_plot_cannot_be_drawn(file, tmp_path, capsys):
    file.write_text(FILE.replace("seeds = 2", 'seeds = 1\nmeasure = ["error", "tiny_sweep:refuse_large_scale"]')
                    .replace('theory = "mamba"', 'theory = "tiny_sweep:refuse_large_scale"'))
    for _ in range(2):  # the second time, finished trials are found
        with pytest.raises(SystemExit) as stopped:
            main(["sweep", str(file), "--out", str(tmp_path / "out")])
        assert stopped.value.code == 1
        lines = capsys.readouterr().err.splitlines()
        assert lines[0] == "iclab: 2 trials failed, the first: measure: ValueError: too large for me"
        assert lines[1].startswith("iclab: theory must be a function")
    assert (tmp_path / "out" / "sweeps" / "tiny" / "trials.csv").exists()


@pytest.mark.parametrize(("arguments", "message"), [
    (["--engine", "slurm"], "engine must be one of local, ray, got 'slurm'"),
    (["--address", "x:1"], "address must be given with --engine ray"),
    (["--memory", "lots"], "memory must be a size such as 512MiB or 2GiB, got 'lots'"),
    (["--formats", "pdf,gif"], "formats must be some of svg, pdf, png, csv, got 'gif'"),
    (["--workers", "0"], "workers must be in [1, 4096], got 0"),
    (["--store", "nowhere://x"], "store must be a folder or fsspec URL that can be written"),
    (["--store", "/proc/none"], "store must be a folder or fsspec URL that can be written"),
])
def test_bad_options_are_one_line(file, tmp_path, capsys, arguments, message):
    assert main(["sweep", str(file), "--out", str(tmp_path / "out"), *arguments]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "out" / "sweeps").exists()


def test_a_bad_file_runs_nothing(file, tmp_path, capsys):
    file.write_text(FILE.replace("outlier_scale = [1.0, 3.0]", "outlier_scale = [1.0, -3.0]"))
    assert main(["sweep", str(file), "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr().err
    assert "prompts.outlier_scale must be in [0, inf), got -3.0" in printed
    assert not (tmp_path / "out").exists()
    assert main(["results", str(tmp_path / "nothing")]) == 2
    assert "store must hold results of a sweep" in capsys.readouterr().err


def test_a_wide_table_is_folded_on_a_narrow_terminal():
    frame = pl.DataFrame({"model.member": ["mamba", "linear"], "training.learning_rate": [0.3, 1.0],
                          "error": [0.25, None], "reason": ["", "x" * 70]})
    (whole,) = tables(frame, None)
    assert tables(frame, 200) == [whole]
    narrow = tables(frame, 60)
    assert max(map(len, narrow[0].splitlines())) <= 60
    for name in frame.columns:
        assert sum(f" {name} " in part.splitlines()[0] for part in narrow) == 1
    assert all(part.splitlines()[0].startswith("| # |") and len(part.splitlines()) == 4 for part in narrow)
