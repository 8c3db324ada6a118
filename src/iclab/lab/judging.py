"""From an entry's findings to its outcome: premises, checks, earlier rules, and the sentences that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iclab.core.identity import to_json
from iclab.lab.claims import Claim, Earlier, PartResult, judged, worst_verdict
from iclab.lab.entries import Entry, Findings, Outcome, Part
from iclab.lab.laboratory import Lab
from iclab.lab.premises import Spec, premises_of


def run_entry(entry: Entry, lab: Lab) -> Outcome:
    """Run an entry and judge its parts."""
    lab = lab.at(entry)
    findings = entry.run(lab)
    seeds = sorted({run.init_seed for run in lab.runs.values()} | {run.data_seed for run in lab.runs.values()})
    settings = _settings(findings, lab)
    claim, measured = None, findings.numbers
    if entry.parts:
        parts = [judge_part(entry.paper, part, findings.measured, findings.specs_at(part.place))
                 for part in entry.parts]
        notes = [f"{note.date}: {note.text}" for note in entry.notes]
        claim = Claim(entry.id, entry.says, parts, settings, seeds, sorted(lab.runs), lab.scale, notes=notes)
        measured = " ".join([*(part.sentence for part in parts), findings.numbers]).strip()
    return Outcome(findings.shown, entry.says, measured, list(findings.plots), list(findings.tables), claim, settings,
                   seeds, list(findings.constants), list(entry.notes), findings.searched)


def judge_part(paper: str, part: Part, measured: Any, specs: Sequence[Spec]) -> PartResult:
    """Judge a part by its rule and by the earlier ones."""
    premises = premises_of(paper, part.theory, specs, accuracy=part.accuracy, constant=part.constant,
                           measured=part.measured)
    earlier = []
    for version, rule in enumerate(part.earlier, 1):
        checks = tuple(judged(rule.checks(measured)))
        earlier.append(Earlier(version, rule.reason, worst_verdict(checks), checks))
    return PartResult(part.kind, part.place, part.says, premises, judged(part.checks(measured)), len(earlier) + 1,
                      earlier, part.tight, dict(part.replies))


def _settings(findings: Findings, lab: Lab) -> dict[str, Any]:
    """The judged runs and tests, the size of the entry, and what else it says."""
    specs = findings.specs.values() if isinstance(findings.specs, dict) else [findings.specs]
    first = next((spec for group in specs for spec in group), None)
    described: dict[str, Any] = {} if first is None else {"run": to_json(first[0]), "test": to_json(first[1])}
    size = lab.entry.sizes.get(lab.scale) if lab.entry else None
    if size is not None:
        described["size"] = to_json(vars(size))
    return described | {name: to_json(value) for name, value in findings.settings.items()}
