"""The examples run, are short, and show what they say; so does the program in the README."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from iclab import Store
from iclab.lab.claims import judged
from iclab.lab.entries import Size
from iclab.lab.judging import run_entry
from iclab.lab.laboratory import Lab

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


def load(name, steps, monkeypatch):
    path = next(path for path in EXAMPLES if path.name.startswith(name))
    monkeypatch.setattr(sys, "argv", [str(path), str(steps)])
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_short(path):
    assert path.read_text().count("\n") < 60


def test_mamba_survives_and_linear_attention_does_not(monkeypatch):
    errors = load("01", 1500, monkeypatch).main()
    assert errors["mamba"] < 0.02
    assert errors["linear"] > 0.5


@pytest.mark.slow
def test_the_patch_on_digits_breaks_linear_attention(monkeypatch):
    errors = load("02", 1500, monkeypatch).main()
    assert errors["mamba"][3] < 0.45
    assert errors["linear"][3] > 0.65
    assert errors["linear"][0] < 0.25


def test_a_pytorch_module_is_a_predictor(monkeypatch):
    pytest.importorskip("torch", reason="the torch extra is not installed")
    errors = load("03", 150, monkeypatch).main()
    assert errors[0] < 0.02
    assert errors[2] < 0.1


@pytest.mark.slow
def test_the_worst_attack_opens_the_gate(monkeypatch):
    errors = load("06", 1000, monkeypatch).main()
    assert errors["mamba", "any combination of the training outliers"] > 0.9
    assert errors["linear", "any combination of the training outliers"] < 0.2


def test_a_sweep_answers_a_new_question(monkeypatch):
    errors = load("05", 1000, monkeypatch).main()
    assert errors[0.0] > 0.3
    assert errors[0.6] < 0.05


@pytest.mark.slow
def test_large_irrelevant_patterns_confuse_gpt2(monkeypatch):
    errors = load("07", 90, monkeypatch).main()
    assert max(errors[0.5]) < min(errors[5.0])


def test_step_by_step_pays_when_slips_pile_up(monkeypatch):
    errors = load("08", 150, monkeypatch).main()
    assert all(cot < 0.02 for cot, _ in errors.values())
    assert errors[0.05][1] < 0.02
    assert errors[0.27][1] > 0.5


def test_a_model_of_your_own_is_trained_and_attacked(monkeypatch):
    errors = load("09", 600, monkeypatch).main()
    assert max(errors.values()) < 0.05


@pytest.mark.slow
def test_without_a_mark_to_go_by_forgetting_does_not_help(monkeypatch):
    errors = load("10", 300, monkeypatch).main()
    assert errors["linear"][0] < 0.25
    assert errors["mamba"][0] > errors["linear"][0] + 0.05


def test_a_claim_of_your_own_can_fail(monkeypatch, tmp_path):
    import numpy as np

    module = load("11", 0, monkeypatch)
    monkeypatch.setitem(module.ENTRY.sizes, "tiny", Size(seeds=2, steps=300, prompts=500))
    outcome = run_entry(module.ENTRY, Lab(Store(tmp_path), "tiny"))
    assert outcome.claim.checks[0].measured > 0.02
    same = np.array([[0.1, 0.0], [0.12, 0.0]])
    assert judged(module.forgetting({"mamba": same, "linear": same}))[0].verdict == "fails"


def test_a_pytorch_loop_trains_a_model_of_the_papers_and_ones_own(monkeypatch):
    pytest.importorskip("torch", reason="the torch extra is not installed")
    errors = load("12", 400, monkeypatch).main()
    assert errors["mamba"] < 0.05
    assert errors["own"] < 0.2


@pytest.mark.slow
def test_gates_are_set_and_transplanted(monkeypatch):
    errors = load("18", 600, monkeypatch).main()
    assert errors["Mamba"] < 0.05
    assert errors["linear Transformer with Mamba's gates"] < 0.05
    assert errors["Mamba, the gates of poisoned examples at 1"] > 0.5
    assert min(errors["Mamba, every gate at 1"], errors["linear Transformer"]) > 0.4
    assert errors["a vote without attention on the query's pattern"] > 0.5 > errors["a vote"]


def test_the_page_on_interventions_runs_from_top_to_bottom(capsys):
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "interventions.md").read_text(), re.S):
        exec(compile(block.replace("steps=1500", "steps=600"), "interventions.md", "exec"), names)
    assert "gates 0 ('reader', 'token') (1, 21)" in capsys.readouterr().out
    assert names["error"](names["grafted"]) < 0.1 < names["error"](names["linear"])


def test_the_tutorial_runs_from_top_to_bottom(capsys):
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "tutorial.md").read_text(), re.S):
        exec(compile(block.replace("steps=1500", "steps=600"), "tutorial.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "Theorem 4 of linear Transformer - not covered" in printed
    assert names["check"].measured < 0.1
    mamba, linear = (names["measure_error"](names[name], names["attack"]).error for name in ("mamba", "linear"))
    assert mamba < 0.1
    assert linear > 0.5


def test_the_sweep_file_is_a_phase_diagram_of_a_thousand_trainings():
    from iclab import read_sweep

    sweep, plot = read_sweep(ROOT / "examples" / "04_phase_diagram.toml")
    assert len(sweep.trials()) == 1000
    assert (plot.x, plot.y) == ("prompts.outlier_fraction", "prompts.outlier_scale")


def test_the_readmes_program_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(blocks) == 1
    exec(compile(blocks[0].replace("steps=3000", "steps=200"), "README.md", "exec"), {})
    assert "Mamba" in capsys.readouterr().out
