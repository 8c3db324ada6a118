"""Every entry of the cot paper, at a tiny scale."""

from __future__ import annotations

from shrunken import run_paper, shrink

from iclab.papers.entries import Lab
from iclab.runs.store import Store


def test_every_entry_runs_and_is_remembered(tmp_path, monkeypatch):
    shrink(monkeypatch)
    for paper in ("cot",):
        run_paper(paper, Lab(Store(tmp_path), "quick"), monkeypatch)
