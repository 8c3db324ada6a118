"""Every entry made small enough for a test, and what must hold for all of them."""

from __future__ import annotations

import csv
import re
from functools import partial

import pytest

from iclab import GPT2
from iclab.lab.entries import Size
from iclab.papers.catalogue import all_entries
from iclab.papers.cot import families as cot_families
from iclab.papers.cot import iterations as cot_iterations
from iclab.papers.cot import settings as cot_settings
from iclab.papers.icl import alpha as icl_alpha
from iclab.papers.icl import baselines as icl_baselines
from iclab.papers.icl import context as icl_context
from iclab.papers.icl import families as icl_families
from iclab.papers.icl import iterations as icl_iterations
from iclab.papers.icl import ood
from iclab.papers.icl import search as icl_search
from iclab.papers.icl import settings as icl_settings
from iclab.papers.icl import tasks as icl_tasks
from iclab.papers.mamba import attack, context, deep, family, iterations, length, settings, tasks, window
from iclab.papers.selectors import noise as selectors_noise
from iclab.papers.selectors import settings as selectors_settings


def shrink(monkeypatch):
    """Make every entry small enough for a test."""
    monkeypatch.setitem(settings.SIZES, "quick", Size(seeds=2, steps=600, prompts=1000))
    monkeypatch.setitem(icl_settings.SIZES, "quick", Size(seeds=2, steps=100, prompts=500))
    monkeypatch.setitem(icl_settings.GPT2_SIZES, "quick", Size(seeds=2, steps=20, prompts=500))
    monkeypatch.setitem(icl_context.SEEDS, "quick", {"softmax": 2, "gpt2": 2})
    monkeypatch.setitem(icl_context.PROMPTS, "quick", {"softmax": 500, "gpt2": 500})
    monkeypatch.setattr(icl_settings, "GPT2", partial(GPT2, layers=1, heads=1, size=8))
    monkeypatch.setitem(icl_context.LENGTHS, "gpt2", (6, 20))
    monkeypatch.setitem(icl_context.LENGTHS, "softmax", (4, 64))
    monkeypatch.setitem(icl_context.FRACTIONS, "softmax", (0.4, 1.0))
    monkeypatch.setitem(icl_context.FRACTIONS, "gpt2", (0.4, 1.0))
    monkeypatch.setitem(ood.SUMS, "softmax", (0.8, 1.0))
    monkeypatch.setitem(ood.SUMS, "gpt2", (0.8, 1.0))
    monkeypatch.setitem(icl_alpha.SEEDS, "quick", 2)
    monkeypatch.setitem(icl_alpha.LENGTHS, "quick", (20,))
    monkeypatch.setitem(icl_families.MODELS, "quick", ("softmax",))
    monkeypatch.setitem(icl_iterations.SEEDS, "quick", 2)
    monkeypatch.setitem(icl_search.SETTINGS, "quick", [icl_search.Setting(steps=50)])
    monkeypatch.setitem(icl_families.SEEDS, "quick", {"others": 2})
    monkeypatch.setitem(icl_families.STEPS, "quick", 100)
    monkeypatch.setitem(selectors_settings.SIZES, "quick", Size(seeds=2, steps=50, prompts=500))
    monkeypatch.setattr(selectors_noise, "STEPS", {"lam*": 50, "tau": 50})
    monkeypatch.setitem(icl_baselines.SEEDS, "quick", 2)
    monkeypatch.setitem(icl_tasks.SEEDS, "quick", 2)
    monkeypatch.setitem(icl_tasks.STEPS, "quick", 50)
    monkeypatch.setitem(icl_baselines.FITTED, "quick", (5, 5))
    monkeypatch.setitem(cot_settings.SIZES, "quick", Size(seeds=2, steps=100, prompts=100))
    monkeypatch.setitem(cot_iterations.SEEDS, "quick", 2)
    monkeypatch.setattr(cot_iterations, "STEPS", 100)
    monkeypatch.setattr(cot_families, "SEEDS", 2)
    monkeypatch.setitem(cot_families.STEPS, "quick", 50)
    monkeypatch.setitem(deep.DEEP, "quick", Size(seeds=2, steps=100, prompts=500))
    monkeypatch.setitem(window.STEPS, "quick", 100)
    monkeypatch.setitem(attack.EFFORT, "quick", {"steps": 3, "starts": 1, "searched": 64, "count": 500})
    for module in (tasks, length, context, iterations, window):
        monkeypatch.setitem(module.SEEDS, "quick", 2)
    monkeypatch.setitem(tasks.SHIFTS, "quick", (1,))
    monkeypatch.setitem(family.SEEDS, "quick", 2)
    monkeypatch.setitem(family.STEPS, "quick", 100)
    monkeypatch.setitem(family.SEARCH_STEPS, "quick", 100)
    monkeypatch.setitem(family.MEMBERS, "quick", ("mamba", "mamba2_step", "linear"))
    monkeypatch.setattr(family, "RATES", (0.1, 1.0))
    monkeypatch.setitem(length.STEPS, "quick", 300)
    monkeypatch.setitem(iterations.AXES, "quick", {"beta": (2.5, 4.0), "eta": (0.5, 2.0)})


DIFFERENCE = re.compile(r"excess|added|less that|less the|exponent|over the theorem")
"""Marks of names that mention an error but are not error rates."""


def errors_stay_in_range(plot):
    """No interval of an error rate in a plot leaves [0, 1]; panels of errors are recognised by their words."""
    for row in csv.DictReader(plot.csv.splitlines()):
        words = f"{plot.title} {plot.caption} {row.get('panel', '')}".lower()
        if re.search(r"\berrors?\b", words) and not re.search(r"hinge|norm|score|needs|needed|iterations", words):
            ends = [float(row[end] or "nan") for end in ("low", "high")]  # a reference has no interval
            assert not any(end < 0 or end > 1 for end in ends), (plot.name, row)


def of_papers(*papers):
    """A test for each entry of these papers."""
    entries = [entry for entry in all_entries().values() if entry.paper in papers]
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.id)


def check_entry(entry, lab, monkeypatch):
    """Run an entry, check what it shows, and run it again, which must train nothing."""
    outcome = entry.run(lab)
    assert outcome.shown
    assert outcome.paper
    assert outcome.measured
    assert outcome.plots or outcome.tables or outcome.claim
    for plot in outcome.plots:
        assert plot.svg.startswith("<svg")
        assert plot.csv.count("\n") > 1
        errors_stay_in_range(plot)
    for check in outcome.claim.checks if outcome.claim else ():
        if re.search(r"\berror\b|^attention on|\bshare of\b", check.name) and not DIFFERENCE.search(check.name):
            assert not any(end < 0 or end > 1 for end in (check.low, check.high)), check.words
    assert (outcome.claim is not None) == (entry.kind == "claim")

    def no_training(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr("iclab.sweeps.store.train_many", no_training)
    # The plots have been checked, and drawing them again takes long.
    monkeypatch.setattr("matplotlib.figure.Figure.tight_layout", lambda self: None)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda self, buffer, **_: buffer.write("<svg/>"))
    assert entry.run(lab).measured == outcome.measured
