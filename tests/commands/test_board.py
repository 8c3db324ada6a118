"""The live table of `iclab reproduce` and its last screen: verdicts by part, never by colour alone."""

from __future__ import annotations

import re

import pytest
from rich.console import Console

from iclab.commands.board import Board, claims_list, headline
from iclab.lab.claims import CheckResult, Claim, PartResult, Premise
from iclab.lab.entries import Entry, Outcome
from iclab.lab.outcomes import Finished


def a_part(kind, place, value, **options):
    check = CheckResult("error", "rate", value, "<=", 0.01, value - 0.001, value + 0.001, 0.95, 4, {}, "error")
    return PartResult(kind, place, "Errors are small.", options.pop("premises", []), [check], **options)


def a_claim(name):
    return Claim(name, "Errors are small.", [
        a_part("theorem", "theorem 2", 0.005), a_part("figure", "figure 5", 0.5),
        a_part("ours", "beyond", float("nan")),
        a_part("theorem", "theorem 3", 0.005, premises=[Premise("fraction", "< 0.6", "0.7", False)]),
        a_part("theorem", "its bound", 0.5, tight=True)], {}, [0], [], "quick")


@pytest.fixture
def item():
    entry = Entry("mamba.one", "Title", "ours", lambda lab: None, kind="figure")
    return Finished(entry, Outcome("s", "p", "m", claim=a_claim("mamba.one")), 2.0)


def test_a_headline_shows_the_parts_side_by_side(item):
    assert headline(item) == "theorem holds and outside and not tight, figure fails, ours inconclusive"
    assert headline(Finished(item.entry, Outcome("s", "p", "m"), 2.0)) == "shown"


def test_the_live_table(item, capsys):
    screen = Console(force_terminal=True, width=80, height=20, color_system=None)
    others = [Entry(f"selectors.{name}", "A title that is far too long for a narrow terminal", "ours", lambda lab: None,
                    kind="figure") for name in ("of_a_long_name", "next")]
    shown = Board([item.entry, *others], screen, {item.entry.id: 10.0, "selectors.next": 20.0})
    shown.done(item)
    with shown.entry(others[0]) as progress:
        progress(1, 2)
        with screen.capture() as captured:
            screen.print(shown)
    text = captured.get()
    assert max(map(len, text.splitlines())) <= 80
    for whole in ("mamba.one", "selectors.of_a_long_name", "✓ 1  ✗ 1  ? 1  ○ 1  ◇ 1", "2 s", "1 of 3 entries", " left"):
        assert whole in text, whole
    Board([item.entry], Console(force_terminal=False)).done(item)
    assert "Title: theorem holds and outside and not tight, figure fails" in capsys.readouterr().out


def test_time_left_is_what_is_left_at_the_pace_so_far(item, monkeypatch):
    others = [Entry(f"mamba.{name}", "Title", "ours", lambda lab: None, kind="figure") for name in ("two", "three")]
    shown = Board([item.entry, *others], Console(force_terminal=True), {"mamba.one": 10.0, "mamba.two": 20.0})
    assert shown.left(shown.began + 5.0) is None
    shown.done(item)
    assert shown.left(shown.began + 5.0) == pytest.approx(5.0 * (20.0 + 1.0) / 10.0)
    shown.running, shown.share = "mamba.two", 0.5
    assert shown.left(shown.began + 10.0) == pytest.approx(10.0 * (10.0 + 1.0) / 20.0)


def test_the_last_screen(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    claims_list([a_claim("mamba.one"), a_claim("mine.[/b]")])
    printed = capsys.readouterr().out
    for pattern in ("✓ holds +theorem 2\n", "✗ fails +figure 5\n", r"\? inconclusive +ours: beyond\n",
                    "○ outside +theorem 3\n", "◇ not tight +its bound\n", r"^mine\.\[/b\]  Errors are small\.$",
                    "must be <= 0.01"):
        assert re.search(pattern, printed, re.MULTILINE), pattern
    header = next(line for line in printed.splitlines() if line.split()[:1] == ["parts"])
    assert re.split(" {2,}", header.strip()) == ["parts", "holds", "fails", "inconclusive", "outside", "tight",
                                                 "not tight"]
    assert max(len(line.rstrip()) for line in printed.splitlines()) <= 80
    totals = {line.split()[0]: line.split()[1:] for line in printed.splitlines()[-9:] if line.strip()}
    assert totals["theorems"] == ["2", "-", "-", "2", "-", "-"]
    assert totals["ours"] == ["-", "-", "2", "-", "-", "-"]
    assert totals["bound"] == ["needed?", "-", "-", "-", "-", "-", "2"]
