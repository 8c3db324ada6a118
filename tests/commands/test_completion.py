"""Completion scripts name every command and option, and a misspelt name gets the nearest known one."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from iclab.cli import main
from iclab.commands import COMMANDS
from iclab.commands.completion import ZSH, bash_script, fish_script, words_of

WORDS = {"list": ["--json", "--help"], "reproduce": ["mamba.fig2", "--scale", "--help"]}


def completed(line):
    """What bash offers at the end of a line."""
    words = line.split(" ")
    script = (bash_script(WORDS) + f"COMP_WORDS=({' '.join(repr(word) for word in words)}); "
              f"COMP_CWORD={len(words) - 1}; _iclab; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd="/").stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_ids_and_options():
    assert completed("iclab re") == ["reproduce"]
    assert completed("iclab reproduce mam") == ["mamba.fig2"]
    assert completed("iclab reproduce --s") == ["--scale"]
    assert completed("iclab list --") == ["--json", "--help"]
    assert completed("iclab reproduce --scale ") == ["quick", "full"]
    assert "bin" in completed("iclab reproduce b")  # a file, since cwd is the root folder
    assert "bin" not in completed("iclab b")  # a command, never a file


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (tmp_path / "script").write_text(fish_script(WORDS) if shell == "fish" else ZSH + bash_script(WORDS))
    ask = ("for line in 'iclab re' 'iclab reproduce mam' 'iclab reproduce --scale '; complete -C $line; end"
           if shell == "fish" else "functions _iclab > /dev/null && print reproduce mamba.fig2 full $_comps[iclab]")
    told = subprocess.run([shell, *(["-f"] if shell == "zsh" else ["--no-config"]), "-c",
                           f"source {tmp_path / 'script'}; {ask}"],
                          capture_output=True, text=True, check=True, env={**os.environ, "HOME": str(tmp_path)})
    assert told.stderr == ""
    for word in ("reproduce", "mamba.fig2", "full", *(["_bash_complete"] if shell == "zsh" else [])):
        assert word in told.stdout


def test_fish_has_a_line_per_word():
    lines = fish_script(WORDS).splitlines()
    assert len(lines) == len(WORDS) + sum(map(len, WORDS.values()))
    assert any(line.endswith("from reproduce' -a mamba.fig2") for line in lines)
    assert any(line.endswith("from list' -l json") for line in lines)


def test_options_are_those_of_the_help():
    assert {"--training.steps", "--model.member", "--resume", "--help"} <= set(words_of("train"))
    assert {"--scale", "--seed", "mamba.fig2"} <= set(words_of("reproduce"))


def test_the_command_knows_its_shells(capsys):
    assert main(["completion", "tcsh"]) == 2
    assert "shell must be one of bash, zsh, fish, got 'tcsh'" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "meant"), [
    (["reprodce"], "reproduce"), (["reproduce", "mamba.robst"], "mamba.robust"), (["train", "--step", "3"],
                                                                               "--training.steps"),
    (["train", "--training.stps", "3"], "--training.steps"), (["train", "--model", "gpt3"], "gpt2"),
    (["verify", "--sale", "full"], "--scale")])
def test_a_misspelt_name_gets_the_nearest_one(arguments, meant, capsys):
    assert main(arguments) == 2
    assert f"; did you mean {meant}?" in capsys.readouterr().err


def test_a_name_like_no_other_gets_none(capsys):
    assert main(["zzzz"]) == 2
    assert "did you mean" not in capsys.readouterr().err
    assert "zzzz" not in COMMANDS
