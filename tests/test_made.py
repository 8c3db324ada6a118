"""The tables and files that stand in the pages are those that the code makes and the examples are."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from iclab import IclabError

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [page for page in sorted(DOCS.glob("*.md")) if re.search("<!-- (made|file): ", page.read_text())]


@pytest.fixture(scope="module")
def made():
    spec = importlib.util.spec_from_file_location("made", DOCS / "made.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["made"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["made"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_tables_and_files_of_a_page_are_up_to_date(page, made):
    text = page.read_text()
    assert made.written(text) == text, "run python docs/made.py"


def test_an_old_table_is_written_again_and_the_site_typesets_the_new_one(made):
    new = made.written("before\n\n<!-- made: notation -->\n\nafter\n")
    assert "| β | `Classification.pattern_norm` | norm of every pattern | mamba, icl |\n" in new
    assert made.written(new.replace("norm of every pattern", "size")) == new
    site = made.filled(new.replace("norm of every pattern", "size"), {})
    assert "norm of every pattern" in site
    assert "<math" in site
    assert "| β |" not in site
    assert site.endswith("\n\nafter\n")


def test_a_changed_example_is_written_again_and_the_site_shows_it_once(made):
    file = "../examples/09_a_model_of_your_own.py"
    text = (DOCS / file).read_text().rstrip()
    new = made.written(f"before\n\n<!-- file: {file} -->\n\nafter\n")
    assert new == f"before\n\n<!-- file: {file} -->\n\n```py\n{text}\n```\n\n<!-- end -->\n\nafter\n"
    assert made.written(new.replace("import", "export")) == new
    assert made.filled(new.replace("import", "export"), {}) == f"before\n\n```py\n{text}\n```\n\nafter\n"


def test_what_markdown_would_take_for_more_is_escaped(made):
    table = made.Table(("a", "b"), [("|x| < 2*", ("see `a|b`", made.Strong("holds")))])
    assert table.markdown().splitlines()[2] == r"| \|x\| \< 2\* | see `a\|b`<br>**holds** |"


def test_an_unknown_table_is_refused(made):
    with pytest.raises(IclabError, match=r"made must be one of navigation, claims, .*, got 'clams'"):
        made.filled("<!-- made: clams -->\n", {})
