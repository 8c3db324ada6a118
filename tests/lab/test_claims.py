"""The verdict follows from the checks by rule."""

from __future__ import annotations

import json
import math

import pytest

from iclab.lab.claims import Check, Claim
from iclab.probes import Interval


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
    assert Check.of("x", Interval(*interval), relation, threshold).verdict == verdict


def claim(*verdicts):
    intervals = {"holds": (0.1, 0.1, 0.1), "inconclusive": (0.1, 0.0, 0.3), "fails": (0.5, 0.4, 0.6)}
    checks = [Check.of(v, Interval(*intervals[v]), "<", 0.2) for v in verdicts]
    return Claim("a.b", "s", "p", checks, [], {}, [0], [], "quick")


def test_a_claim_is_as_good_as_its_worst_check():
    assert claim("holds", "holds").verdict == "holds"
    assert claim("holds", "inconclusive").verdict == "inconclusive"
    assert claim("inconclusive", "fails", "holds").verdict == "fails"
    assert claim().verdict == "inconclusive"


def test_json_has_what_a_reader_needs():
    data = json.loads(json.dumps(claim("holds").to_json()))
    assert {"id", "verdict", "statement", "place", "checks", "conditions", "settings", "seeds", "runs", "scale",
            "seconds"} <= set(data)
    assert set(data["checks"][0]) == {"name", "measured", "relation", "threshold", "interval", "verdict"}
