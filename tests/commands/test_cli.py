"""The command line as a user meets it: results, and one clear line when the input is bad."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from iclab import load_checkpoint
from iclab.cli import main

SMALL = ["--prompts.dimension", "9", "--prompts.relevant-patterns", "3", "--prompts.irrelevant-patterns",
         "3", "--prompts.outlier-patterns", "2", "--prompts.prompt-length", "6", "--prompts.tasks", "all",
         "--training.steps", "20", "--training.record-every", "10", "--training.batch-size", "16"]


def test_help_does_not_import_jax():
    code = "import sys, iclab.cli as c; c.main(['--help']); sys.exit('jax' in sys.modules or 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "reproduce" in done.stdout


def test_list(capsys):
    assert main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"mamba.fig2", "mamba.robust"} <= {entry["id"] for entry in listed}
    assert main(["list"]) == 0
    assert "mamba.fig2" in capsys.readouterr().out


def test_train_eval_and_resume(tmp_path, capsys):
    path = str(tmp_path / "m.safetensors")
    assert main(["train", "--out", path, "--json", *SMALL]) == 0
    trained = json.loads(capsys.readouterr().out)
    assert trained["status"] == "trained"
    assert trained["run"]["prompts"]["dimension"] == 9
    assert main(["eval", path, "--count", "500", "--json", "--test.label-rule", "flip", "--test.outlier-fraction",
                 "0.5", "--test.outlier-mixtures", "0.8,0.6;0.6,0.8"]) == 0
    rate = json.loads(capsys.readouterr().out)
    assert 0 <= rate["low"] <= rate["error"] <= rate["high"] <= 1
    assert rate["floor"] == pytest.approx(0.5 ** 7)
    assert main(["train", "--resume", path, "--out", path, "--training.steps", "30", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 30


@pytest.mark.parametrize(("options", "status", "remedy"), [
    (["--training.learning-rate", "1e30"], "diverged at step 10", "a smaller learning_rate or a clip_norm"),
    (["--model.init-scale", "1e-12"], "stuck at a loss of 1", "a larger learning_rate or init_scale"),
])
def test_a_stuck_or_diverged_training_is_saved_and_reported(tmp_path, capsys, options, status, remedy):
    path = tmp_path / "m.safetensors"
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--out", str(path), "--json", *SMALL, *options])
    assert stopped.value.code == 1
    printed = capsys.readouterr()
    assert printed.err == f"iclab: {status}; try {remedy}\n"
    assert json.loads(printed.out)["status"] == f"{status}; try {remedy}"
    assert load_checkpoint(path).status == f"{status}; try {remedy}"


def test_reproduce_writes_everything(tmp_path, capsys):
    out = tmp_path / "results"
    assert main(["reproduce", "mamba.fig2", "mamba.robust", "--scale", "tiny", "--out", str(out)]) == 0
    assert "report.html" in capsys.readouterr().out
    claims = json.loads((out / "claims.json").read_text())["claims"]
    assert [claim["id"] for claim in claims] == ["mamba.robust"]
    assert {part["verdict"] for part in claims[0]["parts"]} <= {"holds", "fails", "inconclusive", "outside"}
    names = {file.stem for file in (out / "figures").glob("*.svg")}
    assert names == {file.stem for file in (out / "figures").glob("*.csv")}
    assert "mamba.fig2.paper" in names
    page = (out / "report.html").read_text()
    assert page.count("<svg xmlns") == len(names)
    assert "http://" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", "")
    assert "<script" not in page
    assert main(["reproduce", "mamba.robust", "--scale", "tiny", "--out", str(out)]) == 0


@pytest.mark.parametrize(("arguments", "message"), [
    (["dance"], "command must be one of"),
    (["reproduce", "mamba.nope"], "id must be one of"),
    (["reproduce", "--scale", "huge"], "scale must be one of tiny, quick, full, got 'huge'"),
    (["reproduce", "--seed", "-1"], "seed must be in"),
    (["reproduce", "--colour", "red"], "unrecognized arguments: --colour"),
    (["train", "--prompts.outlier-fraction", "1.2"], "outlier_fraction must be in [0, 1), got 1.2"),
    (["train", "--prompts.outlier-fraction", "lots"], "outlier-fraction must be a number, got 'lots'"),
    (["train", "--prompts.relevant-patterns", "40"], "dimension must be at least"),
    (["train", "--model.member", "lstm"], "member must be one of"),
    (["train", "--model.normalise", "maybe"], "normalise must be true or false, got 'maybe'"),
    (["train", "--prompts.label-rule", "nowhere:rule"], "label-rule must be a function"),
    (["train", "--training.optimizer", "magic"], "optimizer must be the name of an optax optimizer"),
    (["train", "--out", "."], "out must be a file, got the folder '.'"),
    (["eval", "."], "checkpoint must be a file, got the folder '.'"),
    (["train", "--prompts.label-rule", ":foo"], "label-rule must be a function"),
    (["train", "--prompts.rotation-seed", "-1"], "rotation_seed must be a whole number in [0, 2^32), got -1"),
    (["train", "--resume", "x.safetensors", "--init-seed", "3"], "cannot be given with --resume"),
    (["eval", "absent.safetensors"], "checkpoint must be an existing file, got 'absent.safetensors'"),
    (["eval"], "checkpoint"),
    (["chain", "--tau", "0.9"], "tau must be in [0.0456, 0.833] when rho is 0.8"),
    (["chain", "--tau-o", "0.4", "--rho-o", "0.9"], "tau_o must be in [0.542, 0.899] when rho_o is 0.9 with Condition "
                                                    "1"),
    (["chain", "--tau-o", "0.4"], "rho-o must be given with tau-o"),
    (["chain", "--tau-o", "0.4", "--rho-o", "0.1", "--rho", "0.3"], "rho cannot be given with tau-o"),
    (["chain", "--tau-o", "0.4", "--rho-o", "0.1", "--condition-one", "perhaps"], "condition-one must be true or "
                                                                                  "false"),
    (["chain", "--matrices", "absent.json"], "matrices must be an existing file, got 'absent.json'"),
    (["chain", "--matrices", "absent.json", "--steps", "3"], "steps cannot be given with matrices"),
    (["chain", "--examples", "0"], "examples must be in [1, 100,000], got 0"),
    (["chain", "--steps", "0"], "steps must be a whole number >= 1, got 0"),
    (["chain", "--matching-fraction", "0"], "matching_fraction must be in (0, 1], got 0.0"),
    (["chain", "--models", "1"], "models must be in [2, 10,000], got 1"),
])
def test_bad_input_is_one_line_and_code_2(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    assert not list(tmp_path.iterdir())


def test_chain_predicts_and_measures(tmp_path, capsys):
    """A user's matrices, and the results computed from them, as JSON and as a table."""
    path = tmp_path / "matrices.json"
    path.write_text(json.dumps([[[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]],
                                [[0.2, 0.1, 0.7], [0.7, 0.2, 0.1], [0.1, 0.7, 0.2]]]))
    small = ["--matrices", str(path), "--models", "2", "--prompts", "100", "--training-steps", "20", "--examples", "5",
             "--store", str(tmp_path / "store")]
    assert main(["chain", "--json", *small]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["quality"]["tau"] == pytest.approx(0.56)
    assert result["quality"]["tau_o"] == pytest.approx(0.1 * 0.2 + 0.8 * 0.7 + 0.1 * 0.1)
    assert result["quality"]["condition_one"] is True
    assert result["theory"]["winner"] in ("CoT", "ICL")
    assert 0 <= result["measured"]["icl"]["mean"] <= 1
    assert main(["chain", *small]) == 0
    printed = capsys.readouterr().out
    assert "Condition 1: yes" in printed
    assert "predicted: " in printed
    assert "note: " in printed  # f_2 f_1 of three patterns leads back to the start
    path.write_text("[[[0.5, 0.5], [0.3, 0.7]]]")
    assert main(["chain", "--matrices", str(path)]) == 2
    assert "transitions[0][0] must have one most likely pattern" in capsys.readouterr().err


def test_an_interruption_is_quick_and_keeps_the_steps(tmp_path):
    path = tmp_path / "m.safetensors"
    command = [sys.executable, "-m", "iclab.cli", "train", *SMALL, "--training.steps", "10000000", "--out", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not path.exists() and process.poll() is None:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    try:
        _, stderr = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "steps are saved" in stderr
    assert "Traceback" not in stderr
    assert 0 < load_checkpoint(path).steps[-1] < 10_000_000


def test_a_truncated_checkpoint_is_one_line(tmp_path, capsys):
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00{")
    assert main(["eval", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_that_cannot_be_written_is_refused_before_work(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "--out", str(tmp_path / "file" / "x")]) == 2
    assert "out must be a folder that can be written" in capsys.readouterr().err
    assert main(["train", "--out", str(tmp_path / "file" / "m.safetensors")]) == 2
