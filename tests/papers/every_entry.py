"""What must hold for every entry, at the tiny scale."""

from __future__ import annotations

import csv
import re

import pytest

from iclab.figures import recipes
from iclab.lab.claims import judged
from iclab.lab.judging import run_entry
from iclab.papers.catalogue import all_entries
from readable import complaints

NO_RATE = r"hinge|squared|norm|score|needs|needed|iterations"
"""Words of plots that show something else than error rates."""


def verdicts(checks):
    """The verdicts of a part's checks."""
    return [check.verdict for check in judged(checks)]


def errors_stay_in_range(plot):
    """No interval of an error rate in a plot leaves [0, 1]; panels of errors are recognised by their words."""
    for row in csv.DictReader(plot.csv.splitlines()):
        words = f"{plot.title} {plot.caption} {row.get('panel', '')}".lower()
        if re.search(r"\berrors?\b", words) and not re.search(NO_RATE, words):
            ends = [float(row[end] or "nan") for end in ("low", "high")]  # a reference has no interval
            assert not any(end < 0 or end > 1 for end in ends), (plot.name, row)


def of_papers(*rooms):
    """A test for each entry in these rooms."""
    entries = [entry for entry in all_entries().values() if entry.room in rooms]
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.id)


def check_entry(entry, lab, monkeypatch):
    """Run an entry, check what it shows, and run it again, which must train nothing."""
    def looked_at(figure, kind):
        picture = written(figure, kind)
        assert not (found := complaints(figure)), found
        return picture

    written = recipes._written
    monkeypatch.setattr(recipes, "_written", looked_at)
    outcome = run_entry(entry, lab)
    assert outcome.shown
    assert outcome.says
    assert outcome.measured
    assert outcome.plots or outcome.tables or outcome.claim
    for plot in outcome.plots:
        assert plot.svg.startswith("<svg")
        assert plot.csv.count("\n") > 1
        errors_stay_in_range(plot)
    assert (outcome.claim is not None) == (entry.kind == "claim")
    for part in outcome.claim.parts if outcome.claim else ():
        assert part.checks, part.place
        assert part.premises or part.kind != "theorem", part.place
        for check in part.checks:
            assert check.kind != "share" or 0 <= check.low <= check.high <= 1, check.words

    def no_training(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr("iclab.sweeps.store.train_many", no_training)
    # The plots have been checked, and drawing them again takes long.
    monkeypatch.setattr(recipes, "_written", lambda figure, kind: b"<svg/>")
    assert run_entry(entry, lab).measured == outcome.measured
