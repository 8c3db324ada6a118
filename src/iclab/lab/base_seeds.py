"""Verdicts of the reference runs with several base seeds: a part on which they disagree is inconclusive.

`verdicts_by_seed.json` ships with the package; `benchmarks/verdicts_by_seed.py` makes it from the `claims.json` of runs
that differ in `--seed` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from iclab.core.errors import require
from iclab.core.files import read_json
from iclab.lab.claims import Claim

Verdicts = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""By claim and place: the version of the rule, and a verdict per base seed."""


def verdicts_by_seed(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The document that ships, from those of runs of one scale, in the order of their base seeds."""
    seeds, scales = [run["base_seed"] for run in runs], {run["scale"] for run in runs}
    require(len(scales) == 1, "scale", sorted(scales), "be the same in all runs")
    require(sorted(set(seeds)) == seeds, "base_seed", seeds, "be different, and the runs in their order")
    parts = [{(claim["id"], part["place"]): part for claim in run["claims"] for part in claim["parts"]} for run in runs]
    documents: dict[str, dict[str, Any]] = {}
    for claim, place in parts[0]:
        of = [run[claim, place] for run in parts if (claim, place) in run]
        require(len(of) == len(runs), "part", f"{claim}, {place}", "be judged in every run")
        documents.setdefault(claim, {})[place] = {"rule_version": of[0]["rule_version"],
                                                  "verdicts": [part["verdict_here"] for part in of]}
    return {"scale": scales.pop(), "base_seeds": seeds, "claims": documents}


@cache
def shipped_verdicts() -> dict[str, Any]:
    """The document that ships with the package."""
    return dict(read_json(resources.files("iclab.lab").joinpath("verdicts_by_seed.json").read_text()))


def with_other_seeds(claim: Claim, shipped: Mapping[str, Any] | None = None) -> Claim:
    """The claim, its parts with their verdicts at other base seeds, if these come from the same scale and rule."""
    document = shipped_verdicts() if shipped is None else shipped
    if claim.scale != document["scale"]:
        return claim
    known: Mapping[str, Mapping[str, Any]] = document["claims"].get(claim.id, {})
    return replace(claim, parts=[
        replace(part, by_seed=known[part.place]["verdicts"])
        if known.get(part.place, {}).get("rule_version") == part.version else part for part in claim.parts])
