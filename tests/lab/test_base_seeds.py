"""Verdicts at several base seeds: where they differ, the part is inconclusive and says so."""

from __future__ import annotations

import copy

import pytest

from iclab import IclabError
from iclab.lab.base_seeds import shipped_verdicts, verdicts_by_seed, with_other_seeds
from iclab.lab.claims import Check, Claim, PartResult, Premise, judged
from iclab.lab.estimates import Mean
from iclab.papers.catalogue import main_entries

LOW, HIGH = (0.1, 0.11, 0.12), (2.0, 2.1, 2.2)


def a_claim(values, premises=(), replies=None, scale="full"):
    part = PartResult("figure", "figure 1", "It is small.", list(premises),
                      judged([Check("error", Mean(values), "<=", 1.0)]), replies=replies or {})
    return Claim("a.b", "s", [part], {}, [0], [], scale)


def a_run(values, seed, scale="full"):
    return {"scale": scale, "base_seed": seed, "claims": [a_claim(values, scale=scale).to_json()]}


def test_verdicts_that_agree_change_nothing():
    shipped = verdicts_by_seed([a_run(LOW, seed) for seed in range(3)])
    (part,) = with_other_seeds(a_claim(LOW), shipped).parts
    assert part.by_seed == ["holds"] * 3
    assert part.verdict == "holds"


def test_a_verdict_that_depends_on_the_seed_is_inconclusive_with_its_reason():
    shipped = verdicts_by_seed([a_run(LOW, 0), a_run(HIGH, 1), a_run(LOW, 2)])
    (part,) = with_other_seeds(a_claim(LOW, replies={"inconclusive": "More seeds would tell."}), shipped).parts
    assert (part.verdict, part.verdict_here) == ("inconclusive", "holds")
    assert "depends on the base seed (holds at 0, fails at 1, holds at 2)" in part.sentence
    assert part.reply == "More seeds would tell."
    assert part.to_json()["by_seed"] == ["holds", "fails", "holds"]


def test_a_premise_that_is_not_met_stays_the_first_thing_to_say():
    shipped = verdicts_by_seed([a_run(LOW, 0), a_run(HIGH, 1)])
    unmet = Premise("Theorem 1: batch size", ">= 3", "2", False)
    (part,) = with_other_seeds(a_claim(LOW, [unmet]), shipped).parts
    assert part.verdict == "outside"


def test_other_scales_and_rules_are_judged_by_their_own_run():
    shipped = verdicts_by_seed([a_run(LOW, 0), a_run(HIGH, 1)])
    assert with_other_seeds(a_claim(LOW, scale="quick"), shipped).parts[0].verdict == "holds"
    changed = copy.deepcopy(shipped)
    changed["claims"]["a.b"]["figure 1"]["rule_version"] = 2
    assert with_other_seeds(a_claim(LOW), changed).parts[0].verdict == "holds"


def test_runs_that_do_not_belong_together_are_refused():
    with pytest.raises(IclabError, match="scale must be the same"):
        verdicts_by_seed([a_run(LOW, 0), a_run(LOW, 1, "quick")])
    with pytest.raises(IclabError, match="base_seed must be different"):
        verdicts_by_seed([a_run(LOW, 0), a_run(LOW, 0)])
    less = a_run(LOW, 1)
    less["claims"] = []
    with pytest.raises(IclabError, match="judged in every run"):
        verdicts_by_seed([a_run(LOW, 0), less])


def test_the_shipped_verdicts_are_those_of_the_parts():
    parts = {(entry.id, part.place): len(part.earlier) + 1 for entry in main_entries() for part in entry.parts}
    shipped = {(claim, place): of["rule_version"] for claim, places in shipped_verdicts()["claims"].items()
               for place, of in places.items()}
    assert shipped == parts
