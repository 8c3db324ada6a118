"""The page of the full run that ships with the package: how long it is, and what it says about whom."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from browser import opened
from shipped import shipped_outcomes

from iclab.lab.verify import shipped_reference
from iclab.report.opening import opening_lines
from iclab.report.page import Page

SCREENS = ((1280, 900, 4000), (390, 844, 7000))
"""Width and height of a screen, and the most that the page may be tall there."""


@pytest.fixture(scope="module")
def outcomes():
    return shipped_outcomes("full")


@pytest.fixture(scope="module")
def path(outcomes, tmp_path_factory):
    file = tmp_path_factory.mktemp("shipped") / "report.html"
    file.write_text(Page("full").render(outcomes, len(outcomes)))
    return file


@pytest.mark.parametrize(("width", "height", "tallest"), SCREENS)
def test_it_opens_short(browser, path, outcomes, width, height, tallest):
    with opened(browser, path, width=width, height=height) as page:
        assert page.evaluate("document.documentElement.scrollHeight") <= tallest
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("dl.opening").bounding_box()["y"] < height / 2
        assert 1 < page.locator(".opening > div").count() <= 10
        rows = page.evaluate("""() => [...document.querySelectorAll('details.entry > summary')].map(row => [
            row.querySelector('code').innerText, row.querySelector('h3').innerText,
            row.querySelectorAll('.badge').length, row.checkVisibility()])""")
        shown = {code: (title, badges, visible) for code, title, badges, visible in rows}
        for item in outcomes:
            title, badges, visible = shown[item.entry.id]
            assert visible
            assert title
            assert badges == (len({part.verdict for part in item.outcome.claim.parts}) if item.outcome.claim else 0)


@pytest.mark.parametrize(("width", "height", "tallest"), SCREENS)
def test_an_address_with_an_entry_opens_it(browser, path, width, height, tallest):
    with opened(browser, f"{path}#mamba.robust", width=width, height=height) as page:
        article = page.locator("[id='mamba.robust']")
        article.wait_for(state="visible")
        assert 0 <= article.bounding_box()["y"] < height / 2
        assert page.evaluate("[...document.querySelectorAll('details.entry[open]')].length") == 1
        assert page.complaints == []


def test_no_statement_of_ours_stands_where_the_paper_speaks(outcomes, path):
    """Every part that is listed as not confirmed stands in the table of its own kind."""
    tables = dict(re.findall(r'<table class="unconfirmed (\w+)">(.*?)</table>', path.read_text(), re.DOTALL))
    expected = Counter("ours" if part.kind == "ours" else "papers" for item in outcomes if item.outcome.claim
                       for part in item.outcome.claim.parts
                       if not part.tight and part.verdict in ("fails", "inconclusive", "outside"))
    assert {whose: table.count("<tr><td") for whose, table in tables.items()} == expected
    assert "the paper says" in tables["papers"]
    assert "the paper says" not in tables["ours"]


def test_the_ten_lines_count_what_the_reference_says(outcomes):
    verdicts = Counter(part["verdict"] for claim in shipped_reference("full")["claims"] for part in claim["parts"]
                       if not part["tight"])
    lines = {line.term: line.text for line in opening_lines(outcomes, "full", "")}
    assert lines["Holds"].startswith(f"{verdicts['holds']} of {verdicts.total()} parts:")
    assert lines["Inconclusive"].startswith(f"{verdicts['inconclusive']} of {verdicts.total()} parts:")
    assert sum(int(lines[term].split()[0]) for term in ("Fails", "Fails, ours")) == verdicts["fails"]
