"""Outcomes kept as JSON: an entry that has been run is shown again at once, until its code or settings change."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from typing import Any

from iclab.figures.plots import Plot
from iclab.papers.claims import Check, Claim
from iclab.papers.entries import Entry, Lab, Outcome, Table
from iclab.theory.statements import Condition, Constant, shipped_constants

LIBRARIES = ("matplotlib", "scikit-learn", "scipy")
"""Beside those that every result counts with (iclab.runs.versions)."""


@dataclass(frozen=True)
class Finished:
    """An entry that has been run."""

    entry: Entry
    outcome: Outcome
    seconds: float
    """What it took when it was computed; less than alone if other entries had trained its models before."""


def finish(entry: Entry, lab: Lab) -> Finished:
    """Run an entry, or find its outcome again."""
    def compute() -> dict[str, Any]:
        began = time.perf_counter()
        outcome = entry.run(lab)
        return {"outcome": to_json(outcome), "seconds": time.perf_counter() - began}

    versions = {name: metadata.version(name) for name in LIBRARIES}
    constants = {name: constant.to_json() for name, constant in shipped_constants().items()}
    kept = lab.store.recall(f"outcome-{entry.id}", [entry.id, lab.scale, lab.base_seed, versions, constants], compute,
                            entry.module)
    outcome, seconds = from_json(kept["outcome"]), kept["seconds"]
    if outcome.claim is not None:
        outcome = replace(outcome, claim=replace(outcome.claim, seconds=seconds))
    return Finished(entry, outcome, seconds)


def to_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain values."""
    return json.loads(json.dumps(asdict(outcome), default=lambda value: value.item()))


def from_json(data: dict[str, Any]) -> Outcome:
    """The outcome that `to_json` described."""
    made = dict(data)
    made["plots"] = [Plot(**plot) for plot in data["plots"]]
    made["tables"] = [Table(table["name"], table["title"], tuple(table["header"]),
                            [tuple(row) for row in table["rows"]]) for table in data["tables"]]
    made["constants"] = [Constant(**constant) for constant in data["constants"]]
    if data["claim"] is not None:
        claim = dict(data["claim"])
        claim["checks"] = [Check(**check) for check in claim["checks"]]
        claim["conditions"] = [Condition(*condition) for condition in claim["conditions"]]
        made["claim"] = Claim(**claim)
    return Outcome(**made)
