"""Every entry beyond the five papers, at a tiny scale."""

from __future__ import annotations

import pytest
from every_entry import check_entry, of_papers


@pytest.mark.slow
@of_papers("beyond")
def test_an_entry_runs_and_is_remembered(entry, small_lab, monkeypatch):
    check_entry(entry, small_lab, monkeypatch)
