"""The five papers are named alike on the page, in README.md and in CITATION.cff."""

from __future__ import annotations

from pathlib import Path

from iclab.papers.references import SOURCES

REFERENCES = [reference for source in SOURCES.values() for reference in source.references]
ROOT = Path(__file__).parents[2]


def test_there_are_five_papers():
    assert list(SOURCES) == ["mamba", "icl", "selectors", "cot"]
    assert len(REFERENCES) == 5
    assert REFERENCES[0].words.endswith("Meng Wang. arXiv 2510.00399, 2025")
    assert REFERENCES[2].words.endswith("Pin-Yu Chen. ICML 2024")
    assert REFERENCES[4].words == "Anonymous authors. Manuscript under review at ICML"


def test_readme_and_citation_name_them():
    readme, citation = (" ".join((ROOT / name).read_text().split()) for name in ("README.md", "CITATION.cff"))
    for reference in REFERENCES:
        assert reference.title in readme
        assert reference.title in citation
        assert reference.link in readme
        assert reference.link in citation
