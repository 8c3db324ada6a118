"""Compare the claims of a run with those of a reference: another machine, another seed, another version.

A check agrees if its number lies inside the reference's interval, or if the distance between the two numbers is within
what both intervals allow together; one whose number has no spread may differ by 1 % of the number or its threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, NamedTuple

from iclab.core.errors import IclabError
from iclab.core.files import read_json

SCHEMA = 2
"""Version of claims.json."""
REFERENCES = ("quick", "full")
"""Scales for which a reference ships."""
ROUNDING = 0.01
Numbers = tuple[float, float, float, float]
"""Number, ends of its interval, threshold."""


class ComparedCheck(NamedTuple):
    """A check of a run beside that of the reference."""

    claim: str
    part: str
    name: str
    reference: tuple[float, float, float]
    """Number and ends of the interval."""
    yours: tuple[float, float, float]
    status: str
    """`inside` the reference's interval, outside it but `within noise`, or `differs`."""


class ComparedPart(NamedTuple):
    """A part whose verdict is not that of the reference."""

    claim: str
    part: str
    reference: str
    yours: str


class Comparison(NamedTuple):
    """What agrees with the reference, what differs, and what cannot be compared."""

    checks: list[ComparedCheck]
    verdicts: list[ComparedPart]
    not_run: list[str]
    """Claims and checks of the reference that the run does not have."""
    new: list[str]
    """Claims and checks of the run that the reference does not have."""

    @property
    def differing(self) -> list[ComparedCheck]:
        """The checks that differ."""
        return [check for check in self.checks if check.status == "differs"]

    @property
    def last_line(self) -> str:
        """How many checks were compared, and how many differ."""
        return f"{len(self.checks)} checks compared, {len(self.differing)} differ"


def read_claims(content: bytes | str, name: str) -> dict[str, Any]:
    """The document of a `claims.json`; anything else is refused."""
    try:
        document = read_json(content)
    except ValueError as error:
        raise IclabError(f"{name} must be a claims.json, got a file that is not JSON ({error})") from None
    version = document.get("schema") if isinstance(document, dict) else None
    if version != SCHEMA or not isinstance(document.get("claims"), list):
        raise IclabError(f"{name} must be a claims.json with the schema {SCHEMA}, got the schema {version!r}; "
                         "`iclab reproduce` writes one")
    return document


def shipped_reference(scale: str) -> dict[str, Any]:
    """The claims of the run that ships with this release, at this scale."""
    if scale not in REFERENCES:
        raise IclabError(f"scale must be one that a reference ships for, {' or '.join(REFERENCES)}, got {scale!r}")
    return _shipped(f"reference_{scale}.json")


def shipped_beyond() -> dict[str, Any]:
    """The claims of the entries that run only when they are named, in the run that ships with this release."""
    return _shipped("reference_beyond.json")


def _shipped(name: str) -> dict[str, Any]:
    return read_claims(resources.files("iclab.lab").joinpath(name).read_text(), name)


def reference_for(run: Mapping[str, Any]) -> dict[str, Any]:
    """What ships to compare a run with: the reference of its scale, and what it has of the claims beyond."""
    reference, beyond = shipped_reference(str(run.get("scale"))), shipped_beyond()
    if run.get("scale") != beyond["scale"]:
        return reference
    named = {claim.get("id") for claim in run["claims"] if isinstance(claim, Mapping)}
    return reference | {"claims": [*reference["claims"], *(claim for claim in beyond["claims"]
                                                           if claim["id"] in named)]}


def usual_seconds(scale: str) -> dict[str, float]:
    """How long every entry took in the runs that ship with this release; empty for a scale without one."""
    if scale not in REFERENCES:
        return {}
    shipped = [shipped_reference(scale), shipped_beyond()]
    return {entry: seconds for run in shipped if run["scale"] == scale for entry, seconds in run["seconds"].items()}


def compare(reference: Mapping[str, Any], run: Mapping[str, Any], name: str = "claims") -> Comparison:
    """Compare two documents of claims."""
    try:
        theirs, mine = dict(_checks(reference)), dict(_checks(run))
        verdicts, my_verdicts = dict(_verdicts(reference)), dict(_verdicts(run))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IclabError(f"{name} must follow the schema of claims.json, got a document without {error}") from None
    checks = [ComparedCheck(*key, theirs[key][:3], mine[key][:3], _status(theirs[key], mine[key])) for key in theirs
              if key in mine]
    changed = [ComparedPart(*key, verdicts[key], my_verdicts[key]) for key in verdicts
               if key in my_verdicts and verdicts[key] != my_verdicts[key]]
    return Comparison(checks, changed, [_words(key) for key in theirs if key not in mine],
                      [_words(key) for key in mine if key not in theirs])


def _checks(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str], Numbers]]:
    for claim in document["claims"]:
        for part in claim["parts"]:
            for check in part["checks"]:
                measured, low, high, threshold = (math.nan if value is None else float(value) for value in (
                    check["measured"], *check["interval"], check["threshold"]))
                yield (claim["id"], part["place"], f"{check['key']} {check['relation']}"), (measured, low, high,
                                                                                            threshold)


def _verdicts(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    for claim in document["claims"]:
        for part in claim["parts"]:
            yield (claim["id"], part["place"]), part["verdict_here"]


def _status(theirs: Numbers, mine: Numbers) -> str:
    (number, low, high, threshold), (value, least, most, _) = theirs, mine
    if math.isnan(number) or math.isnan(value):
        return "inside" if math.isnan(number) and math.isnan(value) else "differs"
    if low <= value <= high:
        return "inside"
    upward = value > number
    room = math.hypot(*(0.0 if math.isnan(end) else end for end in (
        high - number if upward else number - low, value - least if upward else most - value)))
    rounding = ROUNDING * max(abs(number), abs(threshold))
    return "within noise" if abs(value - number) <= max(room, rounding) else "differs"


def _words(key: tuple[str, ...]) -> str:
    return " / ".join(key)
