"""Outcomes stored as JSON: a finished entry is not run again until its code or settings change."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from iclab.core.errors import IclabError
from iclab.figures.recipes import Plot
from iclab.lab.base_seeds import with_other_seeds
from iclab.lab.claims import CheckResult, Claim, Earlier, PartResult, Premise
from iclab.lab.entries import Entry, Note, Outcome, Search, Table
from iclab.lab.judging import run_entry
from iclab.lab.laboratory import Lab
from iclab.sweeps.sources import Trace, Untraceable, trace_module
from iclab.sweeps.tracing import say_not_stored
from iclab.theory.statements import Constant, shipped_constants

LIBRARIES = ("matplotlib", "scikit-learn", "scipy")
"""Libraries that outcomes depend on, besides those of every result (iclab.sweeps.versions)."""


@dataclass(frozen=True)
class Finished:
    """An entry that has been run."""

    entry: Entry
    outcome: Outcome
    seconds: float
    """Time to compute it; less than on its own if other entries had already trained its models."""
    when: str = ""
    """Date and machine of that computation."""
    kept: bool = False
    """Whether it was loaded from the store."""


def finish(entry: Entry, lab: Lab) -> Finished:
    """Run an entry, or load its stored outcome."""
    stored = kept_outcome(entry, lab)
    if stored is not None:
        return stored
    try:
        version = _version(entry)
    except Untraceable as reason:
        version = None
        say_not_stored(reason)

    def compute() -> dict[str, Any]:
        began = time.perf_counter()
        outcome = to_json(run_entry(entry, lab))
        when = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {platform.system()} {platform.machine()}"
        return {"outcome": outcome, "seconds": time.perf_counter() - began, "when": when}

    data = compute() if version is None else lab.store.recall(*_key(entry, lab), compute, version)
    return replace(_finished(entry, data), kept=False)


def kept_outcome(entry: Entry, lab: Lab) -> Finished | None:
    """The stored outcome of an entry; None if it has not been run in its present form."""
    try:
        data = lab.store.recalled(*_key(entry, lab), _version(entry))
    except Untraceable:
        return None
    return None if data is None else _finished(entry, data)


def with_kept(finished: Sequence[Finished], entries: Sequence[Entry], lab: Lab) -> list[Finished]:
    """The entries run now and the stored outcomes of the others, in the order of `entries`."""
    done = {item.entry.id: item for item in finished}
    others = [kept_outcome(entry, lab) for entry in entries if entry.id not in done]
    items = done | {item.entry.id: item for item in others if item is not None}
    order = [entry.id for entry in entries]
    return sorted(items.values(), key=lambda item: order.index(item.entry.id) if item.entry.id in order else len(order))


def _key(entry: Entry, lab: Lab) -> tuple[str, list[Any]]:
    versions = {name: metadata.version(name) for name in LIBRARIES}
    constants = {law: constant.value for law, constant in shipped_constants().items()}  # premises depend on them
    return f"outcome-{entry.id}", [entry.id, lab.scale, lab.base_seed, versions, constants]


def _version(entry: Entry) -> Trace:
    """What an outcome depends on: the entry's module (the user's or the package's) and this one."""
    trace = Trace(package={__name__} if entry.path else {__name__, entry.module or entry.run.__module__})
    if entry.path:
        trace.add(trace_module(sys.modules[entry.module]))
    return trace


def _finished(entry: Entry, data: dict[str, Any]) -> Finished:
    outcome, seconds = from_json(data["outcome"]), data["seconds"]
    if outcome.claim is not None:
        outcome = replace(outcome, claim=with_other_seeds(replace(outcome.claim, seconds=seconds)))
    return Finished(entry, outcome, seconds, data["when"], kept=True)


def to_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON values."""
    def plain(value: Any) -> Any:
        if not hasattr(value, "item"):
            raise IclabError(f"an outcome must hold numbers, strings, lists and dicts, got a {type(value).__name__}")
        return value.item()

    return json.loads(json.dumps(asdict(outcome), default=plain))


def from_json(data: dict[str, Any]) -> Outcome:
    """The inverse of `to_json`."""
    values = dict(data)
    values["plots"] = [Plot(**plot) for plot in data["plots"]]
    values["tables"] = [Table(table["name"], table["title"], tuple(table["header"]),
                              [tuple(row) for row in table["rows"]]) for table in data["tables"]]
    values["constants"] = [Constant(**constant) for constant in data["constants"]]
    values["notes"] = [Note(*note) for note in data["notes"]]
    values["searched"] = None if data["searched"] is None else Search(*data["searched"])
    if data["claim"] is not None:
        parts = [_part(part) for part in data["claim"]["parts"]]
        values["claim"] = Claim(**{**data["claim"], "parts": parts})
    return Outcome(**values)


def _part(data: dict[str, Any]) -> PartResult:
    checks = [CheckResult(*check) for check in data["checks"]]
    earlier = [Earlier(version, reason, verdict, tuple(CheckResult(*check) for check in old))
               for version, reason, verdict, old in data["earlier"]]
    premises = [Premise(*premise) for premise in data["premises"]]
    return PartResult(**{**data, "premises": premises, "checks": checks, "earlier": earlier})
