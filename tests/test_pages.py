"""The documentation: its programs run, and its links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
LINKED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
SLOW = {"playground", "weights_in_pytorch", "real_mamba", "token_prompts", "dynamics", "interventions",
        "your_own_attack"}
"""Pages whose programs take more than three seconds."""

OPTIONAL = {"torch": "torch", "equinox": "frameworks", "flax": "frameworks"}
"""Packages that pages may use, and the extra that brings each."""


def programs(page):
    """The Python programs of a page; the files that stand in it are blocks of `py`, and tested as examples."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def run(page, folder, monkeypatch, shorter=()):
    """Import the programs of a page, one after the other, as one module; `shorter` are numbers of steps to replace."""
    source = "\n".join(programs(page))
    for name in set(re.findall(rf"^(?:from|import) (?:iclab\.)?({'|'.join(OPTIONAL)})\b", source, re.MULTILINE)):
        package = pytest.importorskip(name, reason=f"the {OPTIONAL[name]} extra is not installed")
        if name == "torch":
            package.set_num_threads(1)
    for steps, fewer in shorter:
        assert f"steps={steps}" in source
        source = source.replace(f"steps={steps}", f"steps={fewer}")
    path = folder / f"page_{page.stem}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem, marks=[pytest.mark.slow] * (page.stem in SLOW))
                                  for page in DOCS if programs(page) and page.stem != "tutorial"])
def test_the_programs_of_a_page_run(page, tmp_path, monkeypatch):
    module = run(page, tmp_path, monkeypatch)
    if page.stem == "real_mamba":
        assert module.measure_error(module.trained.predict, module.attack, count=1000).error < 0.1
        assert module.weights.share < 0.6
    if page.stem == "token_prompts":
        assert module.errors_by_token(module.trained, module.prompts).loss.mean() < module.floor.mean + 0.1
    if page.stem == "weights_in_pytorch":
        assert module.measure_error(module.trained, module.attack, count=500).error < 0.2


def test_the_tutorial_shows_what_it_says(tmp_path, monkeypatch, capsys):
    tutorial = run(ROOT / "docs" / "tutorial.md", tmp_path, monkeypatch, shorter=[(1500, 600)])
    assert "Theorem 4 of linear Transformer - not covered" in capsys.readouterr().out
    assert tutorial.check.measured < 0.1
    assert tutorial.measure_error(tutorial.mamba, tutorial.attack).error < 0.1
    assert tutorial.measure_error(tutorial.linear, tutorial.attack).error > 0.5


def anchors(page):
    """The anchors of a page's headings, as forges and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page):
    """The relative links of a page that lead nowhere."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`(?!\])", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = target.partition("#")
        place = page.parent / path if path else page
        if re.match(r"\w+:", target):
            continue
        if not place.exists() or (anchor and anchor not in anchors(place)):
            yield target


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.stem)
def test_the_links_of_a_page_lead_somewhere(page):
    assert list(broken(page)) == []


def test_a_broken_link_is_noticed(tmp_path):
    (tmp_path / "there.md").write_text("# A title: with `code`\n")
    page = tmp_path / "page.md"
    page.write_text("[a](there.md) [b](there.md#a-title-with-code) [c](https://x.org) ![d](none.png)\n"
                    "[`e`](there.md#no)\n[f](#no)\n```\n[g](none.md)\n```\n")
    assert list(broken(page)) == ["none.png", "there.md#no", "#no"]
