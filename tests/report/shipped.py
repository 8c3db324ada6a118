"""The entries as they came out in the runs that ship with the package, without their pictures."""

from __future__ import annotations

import math

from iclab.lab.claims import CheckResult, Claim, Earlier, PartResult, Premise
from iclab.lab.entries import Outcome
from iclab.lab.outcomes import Finished
from iclab.lab.verify import shipped_reference
from iclab.papers.catalogue import main_entries


def shipped_outcomes(scale):
    """Every main entry, with its claim if it is one."""
    reference = shipped_reference(scale)
    claims = {claim["id"]: as_claim(claim) for claim in reference["claims"]}
    return [Finished(entry, Outcome("", entry.says, "", claim=claims.get(entry.id)), reference["seconds"][entry.id])
            for entry in main_entries() if entry.id in reference["seconds"]]


def as_claim(data):
    """A claim of a claims.json."""
    parts = [PartResult(part["kind"], part["place"], part["says"], [Premise(**one) for one in part["premises"]],
                        [as_check(check) for check in part["checks"]], part["rule_version"],
                        [Earlier(old["version"], old["reason"], old["verdict"], tuple(map(as_check, old["checks"])))
                         for old in part["earlier_rules"]],
                        part["tight"], {part["verdict"]: part["reply"]}, part["by_seed"]) for part in data["parts"]]
    return Claim(data["id"], data["statement"], parts, {}, data["seeds"], data["runs"], data["scale"])


def as_check(data):
    """A check of a claims.json, which has null for what is not a number."""
    measured, low, high = (math.nan if value is None else value for value in (data["measured"], *data["interval"]))
    return CheckResult(data["name"], data["kind"], measured, data["relation"], data["threshold"], low, high,
                       data["level"], data["seeds"], data["detail"], data["key"])
