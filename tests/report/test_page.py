"""The report: its text, and how it behaves in a real browser."""

from __future__ import annotations

import base64
import dataclasses
import re

import numpy as np
import pytest
from browser import opened

from iclab.figures.heat import heat_figure
from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Outcome, Table
from iclab.lab.outcomes import Finished
from iclab.notation import NOTATION
from iclab.papers.readings import READINGS
from iclab.papers.references import SOURCES
from iclab.report.page import Page
from iclab.theory import Condition, Constant

NASTY = "</pre></script><script>alert('owned')</script><img src=x onerror=alert(1)>"


def a_plot(name, panels=3):
    x = (0.0, 0.3, 0.6, 0.9)
    rows = np.array([[0.01, 0.02, 0.3, 0.8], [0.0, 0.03, 0.35, 0.82]])
    return error_figure(name, f"Error of {name} {NASTY}", f"A caption. {NASTY}",
                        [Panel(f"panel {i} {NASTY}", x, [Curve("mamba", rows), Curve("linear", 1 - rows)],
                               floor=[0.001] * 4) for i in range(panels)], "outlier fraction")


def a_map(name):
    values = np.linspace(0, 1, 12).reshape(2, 2, 3)
    return heat_figure(f"{name}.map", "A map", "Colours are an image inside the picture.", (1, 2, 3), (1, 2), values,
                       values[0], "x", "y")


def an_entry(name, verdict=None, constants=()):
    measured = {"holds": 0.001, "fails": 0.5, "inconclusive": 0.01}
    claim = None
    if verdict is not None:
        value = measured[verdict]
        claim = Claim(id=name, statement=f"What {name} states. {NASTY}", place="li2025mamba, theorem 2", settings={},
                      checks=[Check(f"error at 0.6 {NASTY}", value, "<=", 0.01, value - 0.0005, value + 0.0005)],
                      runs=[],
                      conditions=[Condition("Theorem 2 (c): outlier fraction", "< 0.6", "0.7", False)], seeds=[0, 1],
                      scale="quick", notes=["A note."])
    outcome = Outcome(shown="Errors.", paper="They are small.", measured=f"They are. {NASTY}",
                      plots=[a_plot(name), a_map(name)],
                      tables=[Table(name, "Exponents", ("in", "measured"), [(NASTY, "-2.0")])], claim=claim,
                      settings={"label_rule": NASTY}, seeds=[0, 1], constants=list(constants))
    return Finished(Entry(name, "claim" if claim else "figure", f"Title of {name}", "li2025mamba, figure 2", None),
                    outcome, 1.5)


FINISHED = [an_entry("mamba.fig2"), an_entry("mamba.robust", "holds"),
            an_entry("mamba.iterations", "fails", [Constant("mamba.T", 2.5, 2.0, 3.0, 4, 2, "quick")]),
            an_entry("cot.icl", "inconclusive"),
            dataclasses.replace(an_entry("mine.own", "holds"), entry=Entry("mine.own", "claim", "Mine", "ours", None,
                                                                           path="folder/mine.py"))]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(Page("quick", 3).render(FINISHED, 54))
    return file


def test_the_page_says_everything(path):
    text = path.read_text()
    assert text.count("<svg") == 2 * len(FINISHED)
    for item in FINISHED:
        assert f'id="{item.entry.id}"' in text
        assert f"iclab reproduce {item.entry.path or item.entry.id} --scale quick --seed 3" in text
    for source in (SOURCES["mamba"], SOURCES["cot"]):
        assert source.name in text
    assert SOURCES["icl"].subject not in text  # nothing of it was run
    assert text.count('class="disagreement"') == 2
    for symbol in NOTATION:
        assert symbol.meaning in text.replace("&#39;", "'")
    for reading in READINGS:
        assert reading.place in text
    assert "2 hold<" in text
    assert "1 fail<" in text
    assert "iterations T_M = c" in text
    assert "5 of 54 entries" in text


def test_nothing_of_a_spec_is_executable_and_nothing_comes_from_the_network(path):
    text = path.read_text()
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text
    links = [link for link in re.findall(r'(?:href|src)="([^"]*)"', text) if not link.startswith(("#", "data:"))]
    assert links == []


def test_an_entry_is_written_once_and_the_page_grows():
    page = Page("quick")
    first = page.render(FINISHED[:1])
    assert "mamba.robust" not in first.split("Where a paper")[0]
    changed = [dataclasses.replace(FINISHED[0], seconds=99.0), *FINISHED[1:]]
    assert "99.0 s" not in page.render(changed)  # its part was rendered before


def test_in_a_browser(browser, path):
    with opened(browser, path) as page:
        figures = page.locator(".picture svg")
        assert figures.count() == 2 * len(FINISHED)
        for i in range(figures.count()):
            box = figures.nth(i).bounding_box()
            assert box["width"] > 200
            assert box["height"] > 100
        for link in page.locator("a[href^='#']").all():
            target = link.get_attribute("href")[1:]
            assert page.locator(f"[id='{target}']").count() == 1, target
        data = page.locator("a[download='mamba.fig2.csv']").first.get_attribute("href").split(",")[1]
        assert base64.b64decode(data).decode().startswith("panel,model,x,mean")
        assert page.evaluate("document.scripts.length") == 0
        assert page.evaluate("""() => { const ids = [...document.querySelectorAll('[id]')].map(part => part.id);
            return ids.length - new Set(ids).size; }""") == 0
        assert page.complaints == []


def test_on_a_phone_nothing_scrolls_sideways(browser, path):
    with opened(browser, path, width=390, height=844) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator("thead").first.is_hidden()
        assert page.complaints == []


def test_dark_and_light_are_both_readable(browser, path):
    for scheme, dark in (("light", False), ("dark", True)):
        with opened(browser, path, scheme=scheme) as page:
            ink, paper = page.evaluate("""() => { const style = getComputedStyle(document.body);
                const light = text => { const [r, g, b] = text.match(/[0-9.]+/g).map(v => v / 255)
                    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                    return .2126 * r + .7152 * g + .0722 * b; };
                return [light(style.color), light(style.backgroundColor)]; }""")
            assert (paper < 0.2) == dark
            assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) > 7  # contrast, WCAG AAA


def test_in_print_it_is_whole(browser, path):
    with opened(browser, path, scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="dark")
        cut = page.evaluate("""() => [...document.querySelectorAll('.picture, .wide')]
            .filter(box => getComputedStyle(box).overflowX !== 'visible').length""")
        assert cut == 0
        assert page.locator("details").first.is_hidden()
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        pdf = page.pdf(format="A4")
        assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") >= 4
