"""The playground's file, its models against Python's, and `iclab play`; its models have random weights."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np
import pytest
from exhibited import SOURCES, close, compare_chain, compare_gated, compare_softmax, in_python
from visitor import go, outputs, strip

from iclab.cli import main
from iclab.commands import play, reproduce
from iclab.lab import outcomes
from iclab.lab.entries import Entry, Findings
from iclab.papers.mamba.settings import training_prompts
from iclab.prompts import Prompt
from iclab.report.playground import page as playground_page
from iclab.report.playground.exhibits import GATED_STEPS, RATES, at_step, exhibits
from iclab.report.playground.page import as_script
from iclab.report.playground.ported import used_coordinates
from iclab.sweeps.sources import Trace

MANY = 200


# --- what is in the file ---------------------------------------------------------------------------------------------

def test_the_program_in_the_package_was_built_from_these_sources():
    files = [path for path in (SOURCES / "src").rglob("*") if path.suffix in (".ts", ".tsx", ".css")]
    names = sorted([*(path.relative_to(SOURCES).as_posix() for path in files), "package-lock.json"])
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + b"\0" + (SOURCES / name).read_bytes() + b"\0")
    for built in ("app.js", "app.css"):
        first = playground_page.HERE.joinpath(built).read_text().splitlines()[0]
        assert digest.hexdigest() in first, f"{built} is old: run `npm run build` in playground/"


def test_one_small_file_that_loads_nothing_else(path):
    text = path.read_text()
    assert len(text.encode()) < 1_500_000
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(script) == 1
    assert base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode() in policy
    assert "default-src 'none'" in policy
    assert "The MIT License" in script[0]  # of the bundled libraries
    assert re.findall(r'(?:src|href)="', text.split("<script>")[0]) == []


def test_what_a_spec_says_cannot_leave_its_script_element():
    nasty = {"name": "</script><script>alert(1)</script>"}
    text = as_script(nasty)
    assert "<" not in text
    assert json.loads(text) == nasty


def test_the_weights_shown_are_those_of_each_step(models):
    mamba = models[0]
    for step in GATED_STEPS[1:]:
        record = list(mamba.steps).index(step)
        assert (mamba.probes["0/W_B"][record] == at_step(mamba, step)[0].W_B).all()
    assert not (at_step(mamba, 0)[0].W_B == at_step(mamba, 4)[0].W_B).all()
    assert float(at_step(mamba, 0)[0].W_B[0, 0]) == pytest.approx(mamba.run.model.init_scale)


def test_models_are_trained_as_the_paper_has_it():
    shown = {exhibit.name: exhibit.run for exhibit in exhibits()}
    for member, rate in RATES.items():
        assert shown[member].model.member == member
        assert shown[member].prompts == training_prompts()
        assert float(shown[member].training.learning_rate) == rate
    for exhibit in exhibits():
        assert all(step % exhibit.run.training.record_every == 0 for step in exhibit.steps)


def test_every_model_can_be_traced(page, models):
    page.get_by_text("Where the weights come from").click()
    runs = page.locator("footer details details summary code").all_inner_texts()
    assert len(runs) == len(set(runs)) == len(models)
    assert all(re.fullmatch(r"[0-9a-f]{24}", run) for run in runs)


# --- the models agree with Python ------------------------------------------------------------------------------------

def test_gated_models_equal_python(page, models):
    for number in range(len(RATES)):
        for step in (GATED_STEPS[-1], GATED_STEPS[3], 0):
            compare_gated(page, number, models[number], step, MANY)


def test_softmax_models_equal_python(page, models):
    for number in (0, 1):
        for step in (exhibits()[7 + number].steps[-1], 0):
            compare_softmax(page, number, models[7 + number], step, MANY)


def test_chains_of_thought_equal_python(page, models):
    compare_chain(page, models[-1], exhibits()[-1].steps[-1], MANY)


def test_python_reads_what_the_page_shows(page, models):
    """Python's models read the prompts that the page shows."""
    for i, link in enumerate(("#poison", "#poison?seed=8&rule=target&scale=1.5&trained=3",
                              "#poison?seed=9&direction=against&fraction=0.3&poisoned=02&flipped=5",
                              "#poison?direction=own&first=1&second=-0.5&third=0.2&placement=close")):
        go(page, link)
        width, count, values = page.evaluate("[iclab.columns.width, iclab.columns.count, [...iclab.columns.values]]")
        columns = np.zeros((1, count, 32))
        columns[..., used_coordinates(models[0].run)] = np.array(values).reshape(count, width)
        shown = outputs(page)
        step = GATED_STEPS[3 if i == 1 else -1]
        for number in range(len(RATES)):
            model, params = models[number].run.model, at_step(models[number], step)
            prompt = Prompt(columns[..., :30], columns[..., 30], None)
            output, seen = in_python(model, params, prompt)
            close(shown[number], output[0])
            gates = seen.gates[0, 0, :-1]
            np.testing.assert_allclose(strip(page, list(RATES)[number], "gate"), gates / gates.max(), atol=2e-4)
            votes = gates * seen.scores[0, 0, :-1] * columns[0, :-1, 30]
            if list(RATES)[number] != "gla":  # its votes use the gate of every axis
                shares = np.abs(votes) / np.abs(votes).max()
                np.testing.assert_allclose(strip(page, list(RATES)[number], "vote"), shares, atol=4e-4)
            truth = page.evaluate("iclab.prompt.truth")
            row = page.locator(f"[data-model={list(RATES)[number]}]")
            assert ("right" in row.locator(".answer").inner_text()) == (output[0] * truth > 0)
            margin = float(row.locator(".margin").inner_text().removeprefix("margin ").replace("\u2212", "-"))
            assert margin == pytest.approx(output[0] * truth, abs=0.0051)
            scores = np.abs(seen.scores[0, 0, :-1])
            np.testing.assert_allclose(strip(page, list(RATES)[number], "score"), scores / scores.max(), atol=4e-4)


def test_a_prompt_of_the_page_is_what_the_paper_says(page):
    go(page, "#poison?fraction=0.5&scale=2&direction=v1")
    prompt, values = page.evaluate("[iclab.prompt, [...iclab.columns.values]]")
    columns = np.array(values).reshape(-1, 20)
    direction = np.array([0.7, 0.6, -0.4]) / np.linalg.norm([0.7, 0.6, -0.4])
    for token, column in zip([*prompt["examples"], prompt["query"]], columns, strict=True):
        expected = np.zeros(20)
        expected[token["pattern"]] = 3.0
        expected[6 + token["irrelevant"]] = 3.0 * token["kappa"]
        if token["outlier"]:
            expected[16:19] = 2 * 2.0 * direction
            assert token["label"] == -token["clean"]
        expected[19] = token["label"]
        np.testing.assert_allclose(column, expected, atol=1e-6)
    assert not prompt["query"]["outlier"]
    assert 4 <= sum(token["outlier"] for token in prompt["examples"]) <= 16


# --- the command -----------------------------------------------------------------------------------------------------

def test_play_writes_the_page_and_opens_it(models, tmp_path, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(play, "kept", lambda lab: models)
    monkeypatch.setattr(play.webbrowser, "open", lambda url: seen.append(url) or True)
    monkeypatch.chdir(tmp_path)
    assert main(["play"]) == 0
    assert seen == [(tmp_path / "results" / "playground.html").as_uri()]
    assert "playground: results/playground.html" in capsys.readouterr().out
    assert '"report":false' in (tmp_path / "results" / "playground.html").read_text()
    (tmp_path / "results" / "report.html").write_text("")
    assert main(["play", "--no-open"]) == 0
    assert len(seen) == 1
    assert '"report":true' in (tmp_path / "results" / "playground.html").read_text()


def test_play_says_so_where_there_is_no_browser(models, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(play, "kept", lambda lab: models)
    monkeypatch.setattr(play.webbrowser, "open", lambda url: False)
    assert main(["play", "--out", str(tmp_path)]) == 0
    assert "No browser could be opened" in capsys.readouterr().out


def test_reproduce_writes_it_beside_the_report(models, tmp_path, monkeypatch, capsys):
    entry = Entry("mine.own", "Mine", "ours", lambda lab: Findings("a"), kind="figure", module=__name__)
    monkeypatch.setattr(reproduce, "chosen_entries", lambda ids: [entry])
    monkeypatch.setattr(reproduce, "all_entries", lambda: {"mine.own": entry})
    monkeypatch.setattr(outcomes, "_version", lambda entry: Trace({"version": "1"}))
    trained_seeds = []
    monkeypatch.setattr(play, "trained", lambda lab: trained_seeds.append(lab.base_seed) or models)
    monkeypatch.setattr(reproduce, "kept", lambda lab: None)
    part, whole, stored = (tmp_path / name for name in ("part", "whole", "stored"))
    assert main(["reproduce", "mine.own", "--out", str(part)]) == 0
    assert not (part / "playground.html").exists()
    assert "playground.html" not in (part / "report.html").read_text()
    assert trained_seeds == []
    capsys.readouterr()
    assert main(["reproduce", "--out", str(whole), "--seed", "3"]) == 0
    assert trained_seeds == [3]
    assert f"playground: {whole / 'playground.html'}" in capsys.readouterr().out
    assert 'href="playground.html"' in (whole / "report.html").read_text()
    assert '"report":true' in (whole / "playground.html").read_text()
    monkeypatch.setattr(reproduce, "kept", lambda lab: models)
    assert main(["reproduce", "mine.own", "--out", str(stored)]) == 0
    assert trained_seeds == [3]
    assert (stored / "playground.html").exists()


@pytest.mark.parametrize(("arguments", "message"), [(["--seed", "-1"], "seed must be in [0, 1048576), got -1"),
                                                    (["--out", "/proc/none"], "out must be a folder"),
                                                    (["--port=80"], "unrecognized arguments: --port=80")])
def test_play_refuses_nonsense(arguments, message, capsys):
    assert main(["play", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
