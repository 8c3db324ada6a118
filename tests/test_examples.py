"""The examples run, are short, and show what they say; so does the program in the README."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from iclab import Store
from iclab.conformance import check_model
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_trained_against_an_attack_mamba_shuts_it_out_and_falls_to_the_next(monkeypatch):
    rounds = load("14", 800, monkeypatch).main()
    assert all(errors["worst attack on it"] > 0.8 for errors in rounds)
    assert rounds[1]["attack it was trained on"] < 0.05
    assert rounds[1]["clean"] < 0.02


@pytest.mark.slow
def test_a_faulty_sensor_breaks_linear_attention(monkeypatch):
    errors = load("15", 400, monkeypatch).main()
    assert errors["mamba"][2] < 0.2
    assert errors["linear"][2] > 0.5
    assert errors["linear"][0] < 0.1


@pytest.mark.slow
def test_a_model_in_equinox_is_trained_and_attacked(monkeypatch):
    pytest.importorskip("equinox", reason="the frameworks extra is not installed")
    errors = load("16", 150, monkeypatch).main()
    assert max(errors[0.0], errors[0.3]) < 0.1


@pytest.mark.slow
def test_a_model_in_flax_is_trained_and_attacked(monkeypatch):
    pytest.importorskip("flax", reason="the frameworks extra is not installed")
    errors = load("17", 400, monkeypatch).main()
    assert max(errors[0.0], errors[0.3]) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("library", "name", "model"), [("equinox", "16", "EquinoxReader"),
                                                        ("flax", "17", "FlaxReader")])
def test_models_of_other_libraries_do_what_all_models_must(library, name, model, monkeypatch, tmp_path):
    pytest.importorskip(library, reason="the frameworks extra is not installed")
    check_model(getattr(load(name, 0, monkeypatch), model)(), folder=tmp_path)


@pytest.mark.slow
def test_mamba_filters_poison_in_regression_where_huber_does_not(monkeypatch):
    errors = load("19", 500, monkeypatch).main()
    assert errors["mamba"]["pulled"] < 0.5
    assert errors["Huber"]["pulled"] > 1
    assert errors["linear"]["pulled"] > 1


@pytest.mark.slow
def test_an_order_parameter_of_ones_own_goes_as_predicted(monkeypatch):
    followed = load("20", 300, monkeypatch).main()
    assert followed["never met"][0][-1] > 0.3
    assert all(abs(predicted[-1] - trained[-1]) < 0.1 for predicted, trained in followed.values())


@pytest.mark.slow
def test_two_layers_count_transitions_and_one_does_not(monkeypatch):
    errors, unigram = load("22", 200, monkeypatch).main()
    assert errors[2] < unigram - 0.05 < errors[1]


def test_a_training_is_followed_and_logged(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    curves, models, folder = load("13", 300, monkeypatch).main()
    for index, trained in enumerate(models):
        assert curves.loss[index] == trained.loss.tolist()
        assert curves.gate[index] == trained.probes["gate"].tolist()
    printed = capsys.readouterr().out
    assert "rate 0.1  █" in printed
    assert "rate 1.0  █" in printed
    if folder is not None:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        logged = sorted(EventAccumulator(str(path)).Reload().Scalars("loss")[-1].value for path in tmp_path.iterdir())
        assert logged == pytest.approx(sorted(trained.loss[-1] for trained in models), rel=1e-6)


def test_the_sweep_files_are_a_phase_diagram_of_a_thousand_trainings_and_a_line_plot():
    from iclab import read_sweep

    sweep, plot = read_sweep(ROOT / "examples" / "04_phase_diagram.toml")
    assert len(sweep.trials()) == 1000
    assert (plot.x, plot.y) == ("prompts.outlier_fraction", "prompts.outlier_scale")
    sweep, lines = read_sweep(ROOT / "examples" / "21_lines.toml")
    assert len(sweep.trials()) == 200
    assert (lines.x, lines.y, lines.by) == ("test.outlier_fraction", "error", "prompts.outlier_fraction")


def test_the_readmes_program_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(blocks) == 1
    exec(compile(blocks[0].replace("steps=3000", "steps=200"), "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "mamba: error" in printed
    assert "information floor" in printed
