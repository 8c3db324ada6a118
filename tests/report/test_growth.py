"""The section on what changes as the problem grows: its rows are those of the entries, each with its verdict."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from browser import opened
from judged import FINISHED, NASTY

from iclab.lab.entries import Table
from iclab.papers.references import OURS
from iclab.papers.scaling.limits import HEADER, Along, tabulated
from iclab.report.growth import of_entries
from iclab.report.page import Page

ROWS = [("M1", f"error of Mamba {NASTY}", "0.04 at 6", "0.008 at 40", "-0.9 [-1, -0.8]", "0", "figure 2"),
        ("M1", "attention on the query's pattern", "0.02 at 6", "0.04 at 40", "0.3 [0.2, 0.4]", "grows",
         "no such part")]


@pytest.fixture(scope="module")
def finished():
    """The finished entries, one of which has a table of limits."""
    robust = next(item for item in FINISHED if item.entry.id == "mamba.robust")
    outcome = dataclasses.replace(robust.outcome, tables=[*robust.outcome.tables,
                                                          Table("mamba.robust.limits", "Limits", HEADER, ROWS)])
    return [dataclasses.replace(item, outcome=outcome) if item is robust else item for item in FINISHED]


@pytest.fixture(scope="module")
def path(tmp_path_factory, finished):
    file = tmp_path_factory.mktemp("growth") / "report.html"
    file.write_text(Page("full").render(finished, 60))
    return file


def test_rows_come_from_tables_of_limits_with_the_verdict_of_their_part(finished):
    (growth,) = of_entries(finished)
    assert growth.item.entry.id == "mamba.robust"
    first, second = growth.rows
    assert first[:6] == ROWS[0][:6]
    assert [part.verdict for part in first.parts] == ["fails"]
    assert second.parts == []


def test_a_number_that_two_parts_judge_has_one_row():
    number = Along("error", "M1", (6.0, 8.0, 10.0, 12.0), np.ones((4, 4)) * np.arange(1, 5)[:, None])
    table = tabulated("scaling.some", {"its size": number, "its rate": number})
    assert [row[-1] for row in table.rows] == ["its size; its rate"]


def test_the_section_is_on_the_page_only_if_there_is_such_a_table(path):
    section = path.read_text().split('id="growth"')[1].split("</details>")[0]
    for words in ("0.04 at 6", "-0.9 [-1, -0.8]", "grows", 'href="#mamba.robust"', "fails", "What figure 2 says"):
        assert words in section, words
    assert "<script" not in section
    assert section.count('class="badge ') == 1
    assert 'class="thumbnail"' in section
    assert 'id="growth"' not in Page("full").render(FINISHED, 60)


def test_what_is_ours_has_a_name_and_a_subject():
    for key, ours in OURS.items():
        assert ours.key == key
        assert not ours.references
        assert ours.subject.startswith("Not a paper")


def test_it_fits_a_phone_and_a_screen(browser, path):
    for width in (390, 1280):
        with opened(browser, path, width=width, height=844) as page:
            page.locator("nav a[href='#growth']").click()
            page.locator("#growth").wait_for(state="visible")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator(".growth tbody tr").count() == 3
            assert page.complaints == []
