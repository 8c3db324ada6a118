"""Verdicts follow from premises and checks by rule; headlines, totals and sentences from the verdicts."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from iclab import SpecError
from iclab.lab.claims import (
    Check,
    CheckResult,
    Claim,
    Earlier,
    PartResult,
    Premise,
    judged,
    totals,
    worst,
)
from iclab.lab.entries import Part
from iclab.lab.estimates import Mean

INTERVALS = {"holds": (0.1, 0.09, 0.11), "inconclusive": (0.1, 0.0, 0.3), "fails": (0.5, 0.4, 0.6)}
MET, UNMET = (Premise("batch size", ">= 100", "128", True), Premise("step size", "< 1", "10", False))


def check(interval, relation="<", threshold=0.2, name="error"):
    return CheckResult(name, "mean", interval[0], relation, threshold, *interval[1:], 0.95, 4, {}, name)


@pytest.mark.parametrize(("interval", "relation", "threshold", "verdict"), [
    ((0.1, 0.05, 0.15), "<", 0.2, "holds"),
    ((0.1, 0.05, 0.15), "<", 0.12, "inconclusive"),
    ((0.1, 0.05, 0.15), "<", 0.04, "fails"),
    ((0.1, 0.05, 0.15), ">", 0.04, "holds"),
    ((0.1, 0.1, 0.1), ">=", 0.1, "holds"),
    ((0.1, math.nan, math.nan), "<", 0.2, "inconclusive"),
    ((math.nan, math.nan, math.nan), "<", 0.2, "inconclusive"),
])
def test_a_check_is_judged_by_its_whole_interval(interval, relation, threshold, verdict):
    assert check(interval, relation, threshold).verdict == verdict


def part(*verdicts, kind="theorem", premises=(MET,), **fields):
    return PartResult(kind, f"{kind} 1", "It works.", list(premises), [check(INTERVALS[v]) for v in verdicts], **fields)


def claim(*parts):
    return Claim("a.b", "s", list(parts), {}, [0], [], "quick")


def test_a_part_is_as_good_as_its_worst_check():
    assert part("holds", "holds").verdict == "holds"
    assert part("holds", "inconclusive").verdict == "inconclusive"
    assert part("inconclusive", "fails", "holds").verdict == "fails"
    assert part().verdict == "inconclusive"


@pytest.mark.parametrize("checks", ["holds", "fails", "inconclusive"])
def test_a_part_with_an_unmet_premise_says_nothing_about_its_theorem(checks):
    judged_part = part(checks, premises=(MET, UNMET))
    assert judged_part.verdict == "outside"
    assert "step size must be < 1, is 10" in judged_part.sentence
    assert "error: " in judged_part.sentence  # the measurement is shown


def test_a_bound_is_tight_or_not_and_never_fails():
    assert part("fails", kind="ours", tight=True).verdict == "not tight"
    assert part("holds", kind="ours", tight=True).verdict == "tight"
    assert part("inconclusive", kind="ours", tight=True).verdict == "inconclusive"


def test_a_headline_shows_the_parts_side_by_side():
    assert claim(part("holds"), part("fails", kind="figure")).headline == "theorem holds, figure fails"
    mixed = claim(part("holds"), dataclasses.replace(part("fails"), place="theorem 2"), part("holds", kind="ours"))
    assert mixed.headline == "theorem holds and fails, ours holds"
    counts = totals([mixed, claim(part("fails"))])
    assert counts["theorem"] == {"holds": 1, "fails": 2}
    assert counts["ours"] == {"holds": 1}


def test_a_failing_theorem_is_looked_at_first():
    first = claim(part("holds"), part("fails", kind="ours"), dataclasses.replace(part("fails"), place="theorem 2"))
    assert first.deciding.place == "theorem 2"
    assert first.summary.startswith("Theorem 2 fails: error: 0.5 [0.4, 0.6], must be < 0.2")


def test_the_worst_of_several_is_judged_and_named():
    estimates = [("a", Mean([0.1, 0.2])), ("b", Mean([0.5, 0.6])), ("c", Mean([math.nan, 0.1]))]
    assert worst("error ({})", estimates[:2], "<=", 0.3).name == "error (b)"
    assert worst("error ({})", estimates[:2], ">=", 0.3).name == "error (a)"
    assert worst("error ({})", estimates, "<=", 0.3).name == "error (c)"  # what is not a number is worst
    result, = judged([worst("error ({})", estimates[:2], "<=", 0.3)])
    assert result.level == 0.975
    assert result.key == "error (the worst)"  # the same in every run


def test_a_part_of_a_theorem_must_name_its_theorem():
    with pytest.raises(SpecError, match="theory must name the theorems whose premises 'theorem 1' takes"):
        Part("theorem", "theorem 1", "It works.", lambda measured: [])
    with pytest.raises(SpecError, match="kind must be one of theorem, figure, remark, ours, got 'lemma'"):
        Part("lemma", "lemma 1", "It works.", lambda measured: [])
    with pytest.raises(SpecError, match="relation must be one of < <= > >=, got '='"):
        Check("error", Mean([1.0]), "=", 1.0)


def test_json_has_what_a_reader_needs():
    earlier = Earlier(1, "too strict", "fails", (check(INTERVALS["fails"]),))
    data = json.loads(json.dumps(claim(part("holds", version=2, earlier=[earlier])).to_json()))
    assert {"id", "headline", "statement", "parts", "settings", "seeds", "runs", "scale", "seconds"} <= set(data)
    written = data["parts"][0]
    assert written["premises"] == [{"name": "batch size", "required": ">= 100", "actual": "128", "met": True,
                                    "constant": ""}]
    assert set(written["checks"][0]) == {"name", "key", "kind", "measured", "relation", "threshold", "interval",
                                         "level", "seeds", "detail", "verdict"}
    assert written["rule_version"] == 2
    assert written["earlier_rules"][0]["reason"] == "too strict"
    assert written["earlier_rules"][0]["verdict"] == "fails"
