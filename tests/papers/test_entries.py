"""Entries: their list, every one of the Mamba paper against the protocol, and the order that the paper states."""

from __future__ import annotations

import re

import numpy as np
import pytest
from every_entry import check_entry, of_papers

from iclab import IclabError
from iclab.lab.laboratory import Lab
from iclab.papers.catalogue import all_entries, chosen_entries
from iclab.papers.mamba import robustness
from iclab.sweeps.store import Store


def test_every_entry_has_an_id_a_kind_a_title_and_a_place():
    entries = all_entries()
    assert {"mamba.fig2", "mamba.robust"} <= set(entries)
    for name, entry in entries.items():
        assert re.fullmatch(r"[a-z]+\.[a-z0-9_]+", name)
        assert entry.kind in ("figure", "table", "claim")
        assert entry.title
        assert entry.place


def test_the_workshop_papers_figures_are_aliases():
    assert [entry.id for entry in chosen_entries(["workshop.fig1", "mamba.fig2", "workshop.table2"])] == [
        "mamba.fig2", "mamba.table1"]


def test_a_papers_key_chooses_all_its_entries():
    chosen = chosen_entries(["scaling"])
    assert len(chosen) >= 6
    assert {entry.room for entry in chosen} == {"scaling"}
    assert chosen_entries(["scaling.width", "scaling"])[0].id == "scaling.width"
    assert len(chosen_entries(["scaling.width", "scaling"])) == len(chosen)


def test_an_unknown_id_is_refused():
    with pytest.raises(IclabError, match=r"id must be one of .*, got 'mamba\.nope'"):
        chosen_entries(["mamba.nope"])


def test_every_paper_is_run_by_one_of_these_tests():
    rooms = {entry.room for entry in all_entries().values()}
    assert rooms <= {"mamba", "icl", "selectors", "cot", "scaling", "beyond"}


@of_papers("mamba")
def test_an_entry_runs_and_is_remembered(entry, small_lab, monkeypatch):
    check_entry(entry, small_lab, monkeypatch)


def test_mamba_survives_where_the_linear_transformer_breaks(small_lab):
    errors = robustness.measure(small_lab).errors["paper"]
    flip = {model: table[:, 0].mean(axis=0) for model, table in errors.items()}
    assert flip["linear"][6] > 0.5 > flip["mamba"][6]
    assert (np.diff(flip["linear"]) > -0.01).all()


def test_a_bad_scale_is_named(tmp_path):
    with pytest.raises(IclabError, match="scale must be one of tiny, quick, full, got 'huge'"):
        Lab(Store(tmp_path), "huge")
