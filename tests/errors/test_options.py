"""Every option of every command, with values of the wrong kind, out of range, or at the edge of it."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
from refusal import outcome, refused

from iclab import save_checkpoint, train
from iclab.cli import main

UNREADABLE = "\udcff"
"""How Python holds the byte 0xff of a command line."""
NOT_OF_THE_KIND = {
    "INT": ("", "x", "nan", "1.5", "1e3", "-1", str(2**32), "9" * 20, "9" * 5000, UNREADABLE),
    "FLOAT": ("", "x", "nan", "inf", "-inf", "1e400", "-1", UNREADABLE),
    "BOOL": ("", "1", "maybe", UNREADABLE),
    "ROWS": ("", "x", "1,x", "1;2,3", "nan,nan,nan", "0,0,0", "1e400,1,1", UNREADABLE),
    "TEXT": ("", "é", ":", "x:", ":x", "a:b:c", "builtins:exit", "os:abort", "sys:exit", "posix:abort", "numpy:nothing",
             "x" * 5000, UNREADABLE)}
EDGE = ("0", "-0.0", "5e-324", "1e-308", "1e-200", "1e200", "1e308")
NOT_TRIED = {"--help", "--out", "--resume", "--checkpoint", "--constants", "--matrices", "--store"}
"""Options that name files, or have no value that is wrong for every command."""


def options(*command):
    """The options of a command and the kinds of their values, as its help shows them."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), pytest.raises(SystemExit):
        main([*command, "--help"])
    kinds = dict(re.findall(r"^ +(--[a-z][a-z.-]*) ([A-Z]+)", text.getvalue(), flags=re.MULTILINE))
    assert len(kinds) >= 8, f"{command} has more options than {list(kinds)}"
    return {name: kind for name, kind in kinds.items() if name not in NOT_TRIED}


@pytest.mark.parametrize("command", [("train",), ("eval", "m.safetensors"), ("theory",), ("theory", "--paper", "icl"),
                                     ("theory", "--paper", "cot"), ("chain",)], ids=" ".join)
def test_a_value_of_the_wrong_kind_is_refused(command, tmp_path, monkeypatch, record_property, tiny_run):
    monkeypatch.chdir(tmp_path)
    if command[0] == "eval":
        save_checkpoint("m.safetensors", train(tiny_run))
    cases = [f"{name}={value}" for name, kind in options(*command).items() if kind in NOT_OF_THE_KIND
             for value in NOT_OF_THE_KIND[kind]]
    for case in cases:
        refused([*command, case])
    record_property("cases", len(cases))


@pytest.mark.parametrize("paper", ["mamba", "icl", "selectors", "cot"])
def test_numbers_at_the_edge_are_judged_or_refused(paper, tmp_path, monkeypatch, record_property):
    monkeypatch.chdir(tmp_path)
    command = ["theory", "--paper", paper]
    cases = [f"{name}={value}" for name, kind in options(*command).items() if kind == "FLOAT" for value in EDGE]
    for case in cases:
        code, out, err = outcome([*command, case])
        assert (code == 0 and out and not err) or (code == 2 and not out and err.count("\n") == 1), f"{case}: {err}"
    record_property("cases", len(cases))


LARGE = [
    (["train", "--prompts.dimension", "100000"], "must fit into memory: training .* takes about"),
    (["train", "--prompts.dimension", "2000000000"], "must fit into memory"),
    (["train", "--training.batch-size", "2000000000"], "must fit into memory"),
    (["train", "--prompts.prompt-length", "2000000000"], "must fit into memory"),
    (["train", "--prompts.dimension", "2147483648"], "dimension must be below 2,147,483,648"),
    (["train", "--prompts.dimension", "2000000000", "--prompts.relevant-patterns", "1000000000"],
     "must have at most 1,048,576 ordered pairs"),
    (["train", "--model.layers", "100000"], "layers must be below 1,001"),
    (["train", "--model.embedding.size", "2000000000"], "must fit into memory"),
    (["train", "--model.layers", "2", "--prompts.prompt-length", "10000000"], "must fit into memory"),
    (["theory", "--paper", "cot", "--prompts.patterns", "1000000", "--prompts.dimension", "1000000"],
     "patterns must be mixed by at most 1,000,000 coefficients"),
    (["eval", "m.safetensors", "--count", "99999999999"], r"count must be in \[1, 100,000,000\]"),
    (["eval", "m.safetensors", "--test.prompt-length", "2000000000"], "must fit into memory"),
    (["chain", "--prompts", "99999999999"], r"prompts must be in \[1, 100,000,000\]"),
    (["chain", "--examples", "2000000000"], r"examples must be in \[1, 100,000\]"),
    (["chain", "--models", "1000000000"], r"models must be in \[2, 10,000\]"),
    (["chain", "--training-steps", "99999999999"], "training-steps must be in"),
    (["chain", "--steps", "2000"], "must fit into memory"),
    (["chain", "--steps", "1000000000"], "transition probabilities"),
    (["chain", "--patterns", "100000"], "transition probabilities"),
    (["bench", "--rounds", "99999999999"], "rounds must be in"),
    (["train", "--out", "x" * 300], "out must be a file that can be written"),
    (["train", "--out", "."], "out must be a file, got the folder"),
    (["reproduce", "--seed", "99999999999"], "seed must be in"), (["play", "--seed", "-1"], "seed must be in"),
    (["reproduce", "fig2"], "got 'fig2'; did you mean mamba.fig2 or icl.fig2"),
    (["reproduce", "x" * 5000], "id must be one of"), (["reproduce", UNREADABLE], "id must be one of"),
    (["sweep", "absent.toml", "--workers", "99999999999"], "workers must be in"),
    (["sweep", "absent.toml", "--gpus", "nan"], "gpus must be in"),
    (["sweep", "absent.toml", "--memory", "9" * 400 + "GiB"], "memory must be a size"),
    (["sweep", "absent.toml", "--max-trials", "0"], "max-trials must be at least 1"),
    (["results", "absent", "--limit", "x"], "limit"), (["list", "--json=x"], "json"), (["notation", "x"], "x"),
    ([UNREADABLE], "command must be one of"), (["x" * 5000], "command must be one of"),
]


def test_sizes_too_large_are_refused_before_allocation(tmp_path, monkeypatch, record_property, tiny_run):
    monkeypatch.chdir(tmp_path)
    save_checkpoint("m.safetensors", train(tiny_run))
    monkeypatch.setenv("ICLAB_MEMORY", "24GiB")
    for arguments, message in LARGE:
        refused(arguments, message)
    monkeypatch.setenv("ICLAB_MEMORY", "lots")
    refused(["train"], "ICLAB_MEMORY must be a size such as 512MiB or 2GiB, got 'lots'")
    record_property("cases", len(LARGE) + 1)


OPTIMIZERS = ("polyak_sgd", "lbfgs", "scale_by_lbfgs", "scale_by_backtracking_linesearch", "scale_by_zoom_linesearch",
              "constant_schedule", "exponential_decay", "scale_by_schedule", "apply_if_finite", "masked", "chain",
              "identity", "GradientTransformation", "global_norm", "contrib", "__name__", "MultiSteps", "sgd ",
              "scale_by_polyak", "optax:lbfgs", "optax:exponential_decay", "numpy:ones")


def test_an_optimizer_must_take_steps(tmp_path, monkeypatch, record_property):
    monkeypatch.chdir(tmp_path)
    for name in OPTIMIZERS:
        refused(["train", "--training.optimizer", name], "training.optimizer must be the name of an optax optimizer")
    record_property("cases", len(OPTIMIZERS))


MODULES = {"leaves": "import sys\nsys.exit(3)", "fails": "1 / 0", "odd": "raise BaseException('odd')",
           "broken": "def f(:\n", "asks": "raise SystemExit", "lends": "from os import abort as f",
           "binds": "from functools import partial\nimport os\nf = partial(os._exit, 3)",
           "quits": "import sys\ndef f(*a):\n    sys.exit(3)", "deep": "def f(*a):\n    return f(*a)",
           "names": "f = exit", "number": "f = 3"}


def test_a_users_module_may_fail_in_any_way(tmp_path, monkeypatch, record_property):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [str(tmp_path), *__import__("sys").path])
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    for name, text in MODULES.items():
        (tmp_path / f"hostile_{name}.py").write_text(text)
    for name in MODULES:
        for option in ("--training.optimizer", "--prompts.label-rule"):
            refused(["train", option, f"hostile_{name}:f"], r"(optimizer|label.rule) must be")
    record_property("cases", 2 * len(MODULES))


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: Out of memory\nallocating")],
                         ids=repr)
def test_running_out_of_memory_is_reported_in_one_line(tmp_path, monkeypatch, error):
    def main(arguments):
        raise error

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("iclab.commands.notation.main", main)
    refused(["notation"], "the work must fit into memory, but memory ran out")
    monkeypatch.setattr("iclab.commands.notation.main", lambda arguments: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        refused(["notation"])
