"""`iclab reproduce`: stored outcomes, interruption at any time, users' entries, the live table, the last screen."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
import pytest
from rich.console import Console

from iclab import IclabError
from iclab.cli import main
from iclab.commands.board import Board, claims_list
from iclab.figures.plots import Plot
from iclab.lab import outcomes
from iclab.lab.claims import Check, Claim, Earlier, PartResult, Premise, judged
from iclab.lab.entries import Entry, Note, Outcome, Search, Table
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab
from iclab.lab.outcomes import Finished, finish, from_json, to_json, with_kept
from iclab.papers.catalogue import all_entries, own_entry
from iclab.papers.references import ASKED_FOR
from iclab.sweeps import versions
from iclab.sweeps.store import Store
from iclab.theory import Constant

SPEC_CLAIMS = [
    "mamba.eq3", "mamba.robust", "mamba.unseen", "mamba.tasks", "mamba.length", "mamba.context", "mamba.window",
    "mamba.premises", "mamba.bounds", "mamba.attention", "mamba.gate", "mamba.position", "mamba.iterations",
    "mamba.family", "icl.unseen", "icl.tasks", "icl.ood", "icl.context", "icl.baselines", "icl.pruning",
    "icl.attention", "icl.norms", "icl.neurons", "icl.width", "icl.start", "icl.alpha", "icl.iterations",
    "selectors.attention", "selectors.features", "selectors.decode", "selectors.noise", "cot.dynamics",
    "cot.examples", "cot.icl", "cot.condition1", "cot.iterations", "scaling.patterns", "scaling.irrelevant",
    "scaling.width", "scaling.batch", "scaling.length", "scaling.start",
]
FIGURES = [
    "mamba.fig2", "mamba.fig3", "mamba.fig4", "mamba.fig5", "mamba.fig6", "mamba.table1", "icl.fig2", "icl.fig3",
    "icl.fig4", "icl.fig5", "icl.fig6", "icl.fig7", "selectors.fig1", "cot.fig2", "cot.fig3", "cot.fig4", "cot.fig5",
]

SOURCE = '''
import numpy as np
from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import per_seed
from iclab.papers.mamba.settings import one_layer_run
from iclab import replace, Training

WORD = "first"

def run(lab):
    base = replace(one_layer_run("linear", 4), training=Training(steps=4, batch_size=8, learning_rate=0.1))
    models = [lab.train([run])[0] for run in per_seed(base, lab.seeds(2))]
    plot = error_figure("mine.plot", "t", "c", [Panel("p_a", [1.0, 2.0], [Curve("mamba", np.eye(2))])], "x")
    return Findings(shown=WORD, measured=[float(model.loss[-1]) for model in models], plots=[plot])

def checks(losses):
    return [Check("loss", Mean(losses), "<", 100.0)]

ENTRY = Entry("mine.claim", "Mine", "ours", run, says="Losses are finite.",
              parts=(Part("ours", "the loss", "It is finite.", checks),))
'''


def test_every_claim_and_every_figure_is_an_entry():
    entries = all_entries()
    asked_for = {name for name, entry in entries.items() if entry.room in ASKED_FOR}
    assert {name for name, entry in entries.items() if entry.kind == "claim"} - asked_for == set(SPEC_CLAIMS)
    assert {"mamba.cause", "icl.cause", "cot.cause", "mamba.real", "regression.pool"} <= asked_for
    assert set(FIGURES) <= set(entries)


def claims_of(folder):
    """The claims without their durations, which differ between runs."""
    claims = json.loads((folder / "claims.json").read_text())["claims"]
    for claim in claims:
        assert claim.pop("seconds") >= 0
    return claims


@pytest.fixture
def entry_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.slow
def test_killed_at_any_time_it_gives_the_same_claims(tmp_path, entry_file):
    """Two entries, killed once while the first trains and once between the two, compared with an undisturbed run."""
    other = entry_file.with_name("other.py")
    other.write_text(SOURCE.replace("mine.claim", "mine.other").replace('"linear"', '"mamba"'))

    def start(out):
        command = [sys.executable, "-m", "iclab.cli", "reproduce", str(entry_file), str(other), "--scale", "quick",
                   "--out"]
        return subprocess.Popen([*command, str(tmp_path / out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    assert start("whole").wait(300) == 0
    for sign in ("store/runs/*/*.safetensors", "store/measurements/outcome-mine.claim*"):
        process = start("killed")
        while not list((tmp_path / "killed").glob(sign)) and process.poll() is None:
            time.sleep(0.01)
        process.kill()
        process.wait()
    assert start("killed").wait(300) == 0
    assert claims_of(tmp_path / "killed") == claims_of(tmp_path / "whole")
    assert len(claims_of(tmp_path / "whole")) == 2


def reproduce(path, out, *options):
    return main(["reproduce", str(path), "--scale", "quick", "--out", str(out), *options])


def test_a_users_entry_is_run_stored_and_run_again_when_it_changes(tmp_path, entry_file, capsys):
    out = tmp_path / "out"
    assert reproduce(entry_file, out) == 0
    first = claims_of(out)
    assert first[0]["headline"] == "ours holds"
    checkpoints = {file: file.read_bytes() for file in out.rglob("*.safetensors")}
    assert len(checkpoints) == 2
    assert sorted(path.name for path in (out / "figures").iterdir()) == ["mine.plot.csv", "mine.plot.svg"]
    outcomes = len(list((out / "store").rglob("outcome-*")))
    capsys.readouterr()
    assert reproduce(entry_file, out, "--formats", "pdf,png") == 0
    assert capsys.readouterr().out.endswith("".join(f"figure: {out / 'figures' / f'mine.plot.{kind}'}\n"
                                                    for kind in ("svg", "pdf", "png")))
    assert (out / "figures" / "mine.plot.pdf").read_bytes().startswith(b"%PDF")
    assert (out / "figures" / "mine.plot.png").read_bytes().startswith(b"\x89PNG")
    assert len(list((out / "store").rglob("outcome-*"))) == outcomes == 1
    assert "first" in (out / "report.html").read_text()
    entry_file.write_text(SOURCE.replace('"first"', '"second"'))
    assert reproduce(entry_file, out) == 0
    assert "second" in (out / "report.html").read_text()
    assert {file: file.read_bytes() for file in out.rglob("*.safetensors")} == checkpoints  # nothing was trained again
    assert claims_of(out) == first
    told = capsys.readouterr().out
    assert "mine.claim" in told
    assert told.endswith(f"report: {out / 'report.html'}\nfigure: {out / 'figures' / 'mine.plot.svg'}\n")
    page = (out / "report.html").read_text()
    assert f"iclab reproduce {entry_file} --scale quick" in page
    assert f"iclab verify {out / 'claims.json'}" in page
    assert '<details class="entry" open>' in page
    twin = entry_file.with_name("twin.py")
    twin.write_text(SOURCE)
    assert main(["reproduce", str(entry_file), str(twin), "--out", str(out)]) == 2
    assert "id of the entry must be new, got 'mine.claim'" in capsys.readouterr().err


def test_a_changed_package_changes_the_version_of_a_users_entry(entry_file, monkeypatch):
    before = outcomes._version(own_entry(str(entry_file))).words
    real = versions._source
    monkeypatch.setattr(versions, "_source", lambda name: real(name) + b"# changed" * name.endswith("robustness"))
    versions._code_version.cache_clear()
    assert outcomes._version(own_entry(str(entry_file))).words == before  # it does not use that module
    monkeypatch.setattr(versions, "_source", lambda name: real(name) + b"# changed" * name.endswith("mamba.settings"))
    versions._code_version.cache_clear()
    try:
        assert outcomes._version(own_entry(str(entry_file))).words != before
    finally:
        versions._code_version.cache_clear()


def test_a_report_includes_stored_outcomes_of_other_runs(tmp_path, entry_file):
    lab = Lab(Store(tmp_path), "quick")
    entries = [own_entry(str(entry_file))]
    assert with_kept([], entries, lab) == []
    now = finish(entries[0], lab)
    assert not now.kept
    again = with_kept([], entries, lab)
    assert [item.outcome for item in again] == [now.outcome]
    assert again[0].kept
    assert with_kept([], entries, Lab(Store(tmp_path), "full")) == []
    entry_file.write_text(entry_file.read_text() + "\n# changed\n")
    assert with_kept([], [own_entry(str(entry_file))], lab) == []


@pytest.mark.parametrize(("text", "message"), [
    ("1 / 0", "cannot be imported: ZeroDivisionError"),
    ("x = 1", "must define ENTRY"),
    (SOURCE.replace('Entry("mine.claim"', 'Entry("mamba.robust"'), "id of the entry must be new, got 'mamba.robust'"),
    (SOURCE.replace('Entry("mine.claim"', 'Entry("claims"'), "id of the entry must be two words"),
])
def test_a_bad_file_is_one_line(tmp_path, text, message, capsys):
    path = tmp_path / "bad.py"
    path.write_text(text)
    assert reproduce(path, tmp_path / "out") == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert main(["reproduce", "mamba.fig2", "--formats", "pdf,gif"]) == 2
    assert "formats must be some of svg, pdf, png, csv, got 'gif'" in capsys.readouterr().err
    assert main(["reproduce", "absent.py"]) == 2
    assert "id must be a file that can be read, got 'absent.py'" in capsys.readouterr().err


def a_claim(name="mamba.robust", value=0.005, threshold=0.01):
    checks = judged([Check("error", Mean([value - 1e-4, value, value + 1e-4]), "<=", threshold),
                     Check("runs that finish", Mean([1.0, 1.0]), ">=", 1.0)])
    earlier = [Earlier(1, "too strict", "fails", tuple(checks))]
    part = PartResult("theorem", "theorem 2", "Small errors.", [Premise("fraction", "< 0.6", "0.5", True, "fitted")],
                      checks, 2, earlier)
    return Claim(id=name, statement="Small errors.", parts=[part], settings={"a": 1}, seeds=[0, 1], runs=["x"],
                 scale="quick", notes=["n"])


def test_an_outcome_survives_storage():
    outcome = Outcome(shown="s", says="p", measured="m", plots=[Plot("a", "t", "c", "<svg/>", "x,y\n")],
                      tables=[Table("a", "t", ("x", "y"), [("1", np.float32(2.5)), ("2", float("nan"))])],
                      claim=a_claim(), settings={"steps": 3}, seeds=[0],
                      constants=[Constant("k", 1.0, 0.5, 2.0, 3, 4, "quick")],
                      notes=[Note("2026-11-18", "n")], searched=Search(("delta",), 4, 2, "delta 0.1"))
    again = from_json(json.loads(json.dumps(to_json(outcome))))
    assert again.claim == outcome.claim
    assert again.plots == outcome.plots
    assert again.constants == outcome.constants
    assert again.notes == outcome.notes
    assert again.searched.chosen == "delta 0.1"
    assert again.tables[0].header == ("x", "y")
    assert again.tables[0].rows[0] == ("1", 2.5)
    assert np.isnan(again.tables[0].rows[1][1])
    assert from_json(to_json(Outcome("s", "p", "m"))) == Outcome("s", "p", "m")
    with pytest.raises(IclabError, match="an outcome must hold numbers, strings, lists and dicts, got a set"):
        to_json(Outcome("s", "p", "m", settings={"a": {1}}))


def test_the_deciding_check():
    good, bad = a_claim(), a_claim(value=0.5)
    assert good.deciding.deciding.name == bad.deciding.deciding.name == "error"
    assert good.summary.startswith("Theorem 2 holds: error: 0.005 [")
    assert bad.summary.startswith("Theorem 2 fails: error: 0.5 [")
    assert Claim("x", "", [], {}, [], [], "quick").summary == ""


def test_the_last_screen(capsys):
    claims_list([a_claim(), a_claim("mamba.unseen", 0.5), a_claim("mine.[/b]", float("nan"))])
    printed = capsys.readouterr().out
    assert "theorem" in printed
    assert "mine.[/b]" in printed
    assert "[nan, nan]" in printed
    assert "Small errors." in printed


def test_the_live_table_shows_what_fits_around_the_running_entry():
    entries = [Entry(f"mamba.e{i}", f"Title {i}", "ours", lambda lab: None, kind="figure") for i in range(40)]
    screen = Console(force_terminal=True, width=100, height=20)
    shown = Board(entries, screen)
    for entry in entries[:20]:
        shown.done(Finished(entry, Outcome("s", "p", "m", claim=a_claim(entry.id)), 2.0))
    with shown.entry(entries[20]) as progress:
        progress(30, 100)
        with screen.capture() as captured:
            screen.print(shown)
    text = captured.get()
    assert "20 of 40 entries" in text
    assert "mamba.e20" in text
    assert "mamba.e19" in text
    assert "\u2713 1" in text
    assert "mamba.e3 " not in text
    assert text.count("\n") <= 20
