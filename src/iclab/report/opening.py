"""The ten lines that open the page: what held, what failed, what surprised, how long it took, how to check it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from iclab.core.words import duration
from iclab.lab.claims import Claim
from iclab.lab.outcomes import Finished
from iclab.lab.verify import REFERENCES
from iclab.report.summary import Judged, counted_by_kind, failures, overall, parts_of


class Line(NamedTuple):
    """A line: what it is about, its text, and where to read on."""

    term: str
    text: str
    verdict: str = ""
    """The verdict that it counts, if it counts one."""
    entries: Mapping[str, int] = {}
    """How many of the parts counted each entry has."""
    listed: bool = False
    """Whether the section on what was not confirmed lists its parts."""


def opening_lines(finished: Sequence[Finished], scale: str, options: str, claims_file: str = "claims.json"
                  ) -> list[Line]:
    """The lines about these entries; without a judged claim only how long they took and how to repeat them."""
    claims = [item.outcome.claim for item in finished if item.outcome.claim]
    return [*(_found(claims) if claims else ()), *_effort(finished, scale, options, claims_file)]


def _found(claims: Sequence[Claim]) -> list[Line]:
    parts = parts_of(claims)
    judged = [item for item in parts if item.group != "bound"]
    bounds = Counter(item.part.verdict for item in parts if item.group == "bound")
    lines = [Line("In short", overall(claims)), _counted("Holds", "holds", judged)]
    for term, verdict, of in (("Fails", "fails", [item for item in judged if item.part.kind != "ours"]),
                              ("Fails, ours", "fails", [item for item in judged if item.part.kind == "ours"]),
                              ("Inconclusive", "inconclusive", judged), ("Not tested", "outside", judged)):
        lines.append(_counted(term, verdict, of))
    if bounds:
        are = "is" if bounds["tight"] == 1 else "are"
        lines.append(Line("Bounds", f"Of {bounds.total()} sufficient bounds that were asked about {bounds['tight']} "
                                    f"{are} tight, also needed, and {bounds['not tight']} not."))
    return [*lines, _surprise(claims)]


def _counted(term: str, verdict: str, parts: Sequence[Judged]) -> Line:
    """How many of these parts have a verdict, by kind; where a paper fails, in which entries."""
    having = [item for item in parts if item.part.verdict == verdict]
    kinds = "statements of ours" if term == "Fails, ours" else f"parts{counted_by_kind([item.part for item in having])}"
    text = f"{len(having) or 'None'} of {len(parts)} {kinds}"
    where = Counter(item.claim.id for item in having) if term == "Fails" else {}
    return Line(term, f"{text}; in" if where else f"{text}.", verdict, where,
                listed=bool(having) and not where and verdict != "holds")


def _surprise(claims: Sequence[Claim]) -> Line:
    """The statement of a paper that fails by the widest margin inside its premises, theorems first."""
    failing = failures(claims)
    if not failing:
        return Line("Surprise", "No statement of a paper fails.")
    worst = max((item for item in failing if item.part.kind == failing[0].part.kind),
                key=lambda item: item.part.deciding.margin if item.part.deciding else 0.0)
    place = worst.part.place
    measured = f" Measured: {worst.part.deciding.words}." if worst.part.deciding else ""
    return Line("Surprise", f"{place[:1].upper()}{place[1:]} fails by the widest margin. It says, in our words: "
                            f"{worst.part.says}{measured} See", entries={worst.claim.id: 1})


def _effort(finished: Sequence[Finished], scale: str, options: str, claims_file: str) -> list[Line]:
    slowest = max(finished, key=lambda item: item.seconds)
    took = (f"{duration(sum(item.seconds for item in finished))} for {len(finished)} "
            f"{'entry' if len(finished) == 1 else 'entries'}; the longest, with the models that it trained first, "
            f"took {duration(slowest.seconds)}:")
    compare = f"Compare the numbers with those of this release, `iclab verify {shlex.quote(claims_file)}`, or run" if (
        scale in REFERENCES) else "Run"
    again = f"{compare} an entry again, `iclab reproduce {slowest.entry.path or slowest.entry.id} {options}`."
    return [Line("Time", took, entries={slowest.entry.id: 1}), Line("Check it", again)]


def who_says(item: Finished, papers: Mapping[str, Any]) -> str:
    """Whose words stand beside an entry: a paper's, ours, or a claim's of both."""
    claim = item.outcome.claim
    kinds = {part.kind for part in claim.parts} if claim else set()
    if item.entry.place.startswith("ours") or item.entry.room not in papers or kinds == {"ours"}:
        return "We ask"
    return "Claim" if claim else "The paper says"
