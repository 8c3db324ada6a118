"""The report: its text, and how it behaves in a real browser."""

from __future__ import annotations

import base64
import dataclasses
import re

import pytest
from browser import opened
from judged import CLAIMS_JUDGED, FINISHED
from markupsafe import Markup

from iclab.lab.claims import PartResult
from iclab.notation import NOTATION
from iclab.papers.readings import READINGS
from iclab.papers.references import SOURCES
from iclab.report.opening import opening_lines, who_says
from iclab.report.page import Page, number, thumbnail
from iclab.report.summary import SYMBOLS, columns, label, of_paper, overall, totals_by_group


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(Page("quick", 3).render(FINISHED, 54))
    return file


def words(html):
    """What a reader sees outside pictures, formulas and code, in one line."""
    hidden = r"<(style|svg|math|code|pre)\b.*?</\1>"
    return " ".join(Markup(re.sub(hidden, "", html, flags=re.DOTALL)).striptags().split())


def test_the_page_says_everything(path):
    text = path.read_text()
    assert text.count("<svg xmlns") == 2 * len(FINISHED)
    assert text.count('<svg class="thumbnail"') == len(CLAIMS_JUDGED)
    for item in FINISHED:
        assert f'id="{item.entry.id}"' in text
        assert f"iclab reproduce {item.entry.path or item.entry.id} --scale quick --seed 3" in text
    for source in SOURCES.values():
        assert source.name in text
        for reference in source.references:
            assert reference.title in text
            assert reference.link in text
    for reading in READINGS:
        assert reading.place in text
    for needed in ("5 of 54 entries", "few seeds, short training", "Premises: 1 of 2 not met", "Premises: all 2 met",
                   "This is version 2 of the rule", "1 rule was changed later",
                   "In brackets: by the rules as first written.",
                   "replaced because it asked for too much of",
                   "Settings were chosen among 14 of", "on 2 other seeds", "2026-11-18", "bound not tight",
                   "met up to", "97.5&nbsp;%"):
        assert needed in text, needed


def test_totals_by_the_rules_as_first_written():
    now, first = totals_by_group(CLAIMS_JUDGED), totals_by_group(CLAIMS_JUDGED, first=True)
    assert now["theorem"]["holds"] == first["theorem"]["holds"] + 1  # one rule that failed was replaced
    assert first["theorem"]["fails"] == now["theorem"]["fails"] + 1
    assert first["ours"] == now["ours"]


def test_the_sentences_follow_from_the_verdicts():
    assert overall(CLAIMS_JUDGED) == (
        "Inside their premises, 1 of 3 theorem parts holds, 1 fails and 1 is inconclusive; 1 more could not be tested, "
        "because a premise is not met at the judged settings.")
    mamba = [claim for claim in CLAIMS_JUDGED if claim.id.startswith("mamba.")]
    assert of_paper(mamba) == ("1 of 2 theorem parts holds, 1 fails; figure 2 fails; ours: the whole region is "
                               "inconclusive.")
    assert of_paper([claim for claim in CLAIMS_JUDGED if claim.id == "cot.icl"]) == (
        "None of 2 theorem parts hold, 1 is inconclusive, 1 is outside its premises; remark 5 holds.")
    assert of_paper([]) == "None of its claims has been judged yet."
    robust = mamba[0]
    assert overall([dataclasses.replace(robust, parts=robust.parts[:1])]) == (
        "Inside its premises, the one theorem part tested holds.")
    assert overall([dataclasses.replace(robust, parts=robust.parts[1:])]) == (
        "None of the claims judged here is a theorem's.")
    twice = [dataclasses.replace(robust, parts=robust.parts[:1] * 2)]
    assert overall(twice) == "Inside their premises, all 2 theorem parts hold."
    assert of_paper(twice) == "All 2 theorem parts hold."


def test_totals_tell_bounds_from_theorems():
    totals = totals_by_group(CLAIMS_JUDGED)
    assert totals["theorem"] == {"holds": 1, "fails": 1, "inconclusive": 1, "outside": 1}
    assert totals["bound"] == {"not tight": 1}
    assert columns(totals) == list(SYMBOLS)
    assert columns(totals_by_group([])) == ["holds", "fails", "inconclusive", "outside"]


def test_a_badge_names_the_kind_once():
    assert label(PartResult("theorem", "proposition 4.1", "", [], [])) == "proposition 4.1"
    assert label(PartResult("remark", "remark 5", "", [], [])) == "remark 5"
    assert label(PartResult("ours", "the whole region", "", [], [])) == "ours: the whole region"


@pytest.mark.parametrize(("value", "text"), [(0.123456, "0.123"), (12345.6, "12,300"), (-2.0, "-2"), (1e-7, "1.0e-07"),
                                             (float("nan"), "none"), (0, "0"), (999.4, "999")])
def test_numbers_have_three_significant_digits(value, text):
    assert number(value) == text


def test_what_is_ours_never_stands_under_the_papers_name(path):
    text = path.read_text()
    mine = text.split('id="mine.own"')[1].split("</article>")[0]
    assert "The paper says" not in mine
    assert "We ask" in mine
    assert "our statement, not the paper&#39;s" in mine
    papers, ours = (text.split(f'class="unconfirmed {whose}"')[1].split("</table>")[0] for whose in ("papers", "ours"))
    assert "the paper says" in papers
    assert "the paper says" not in ours
    assert "we asked whether" in ours
    assert "the whole region" not in papers
    assert "bound" not in papers + ours
    assert papers.count("<tr><td") == 4  # two fail, one is inconclusive, one outside
    assert ours.count("<tr><td") == 1


def test_a_figure_of_no_paper_is_ours():
    figure = next(item for item in FINISHED if item.entry.kind == "figure")
    assert who_says(figure, SOURCES) == "The paper says"
    for changed in ({"place": "ours, after theorem 2"}, {"id": "mine.figure"}):
        entry = dataclasses.replace(figure.entry, **changed)
        assert who_says(dataclasses.replace(figure, entry=entry), SOURCES) == "We ask"


def test_ten_lines_open_the_page():
    lines = {line.term: line for line in opening_lines(FINISHED, "quick", "--scale quick")}
    assert len(lines) == 10
    assert lines["In short"].text == overall(CLAIMS_JUDGED)
    assert lines["Holds"].text == "3 of 8 parts: 1 theorem part, 1 remark, 1 statement of ours."
    assert lines["Fails"].text == "2 of 6 parts: 1 theorem part, 1 figure or table; in"
    assert lines["Fails"].entries == {"mamba.robust": 1, "mamba.iterations": 1}
    assert lines["Fails, ours"].text == "None of 2 statements of ours."
    assert lines["Inconclusive"].listed
    assert "tight, also needed, and 1 not" in lines["Bounds"].text
    assert lines["Surprise"].text.startswith("Theorem 1 fails by the widest margin. It says, in our words: What")
    assert "8 s for 5 entries" in lines["Time"].text
    assert "iclab verify claims.json" in lines["Check it"].text
    named = opening_lines(FINISHED, "quick", "", "my results/claims.json")[-1].text
    assert "iclab verify 'my results/claims.json'" in named
    assert list(lines)[-3:] == ["Surprise", "Time", "Check it"]
    assert [line.term for line in opening_lines(FINISHED[:1], "tiny", "")] == ["Time", "Check it"]
    assert "verify" not in opening_lines(FINISHED, "tiny", "")[-1].text  # no reference ships for it
    held = [item for item in FINISHED if item.entry.id == "mine.own"]
    assert opening_lines(held, "full", "")[-3].text == "No statement of a paper fails."


def test_a_verdict_is_a_symbol_and_a_word(path):
    badges = re.findall(r'<span class="badge ([\w-]+)"><span aria-hidden="true">(.)</span> (.*?)</span>',
                        path.read_text())
    assert len(badges) > 20
    for verdict, symbol, rest in badges:
        assert SYMBOLS[verdict.replace("-", " ")] == symbol
        assert verdict.replace("-", " ") in Markup(rest).striptags()


def test_no_symbol_of_the_notation_is_left_raw(path):
    text = re.sub(r"\(\w\)", "", words(path.read_text()))  # (d) of a theorem is no symbol
    for symbol in {name for entry in NOTATION for name in re.split(", ", entry.symbol)}:
        assert not re.search(rf"(?<![\w.'-]){re.escape(symbol)}(?![\w'])", text), symbol
    assert not re.search(r"\^|[<>]=|\w_\w", text.replace("x86_64", ""))


def test_labels_of_pictures_are_typeset(path):
    labels = re.findall(r"<text\b.*?</text>", path.read_text(), re.DOTALL)
    assert any("κ" in text for text in labels)
    assert not any("kappa" in text for text in labels)


def test_nothing_of_a_spec_is_executable_and_nothing_comes_from_the_network(path):
    text = path.read_text()
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text
    links = {link for link in re.findall(r'(?:href|src)="([^"]*)"', text) if not link.startswith(("#", "data:"))}
    assert links == {reference.link for source in SOURCES.values() for reference in source.references if reference.link}
    assert not re.search(r'(?:src|<link)[^>]*="https?:', text)


def test_an_entry_is_written_once_and_the_page_grows():
    page = Page("quick")
    first = page.render(FINISHED[:1])
    assert 'id="mamba.robust"' not in first
    assert 'id="claims"' not in first
    changed = [dataclasses.replace(FINISHED[0], seconds=99.0), *FINISHED[1:]]
    assert "99.0 s" not in page.render(changed)  # its part was rendered before


def test_an_entry_run_alone_is_open_without_the_papers_of_others():
    alone, among = (Page("quick").render(FINISHED[:1], 54, opened=opened) for opened in (FINISHED[0].entry.id, None))
    assert alone.count('<details class="entry" open>') == 1
    assert alone.count('<section class="paper"') == 1
    assert '<details class="entry">' in among
    assert among.count('<section class="paper"') == len(SOURCES)


def test_a_plot_of_another_program_has_no_thumbnail():
    assert thumbnail(dataclasses.replace(FINISHED[0].outcome.plots[0], svg="<svg/>")) == ""


def test_in_a_browser(browser, path):
    with opened(browser, path) as page:
        page.evaluate("document.querySelectorAll('details.section').forEach(part => part.open = true)")
        thumbnails = page.locator(".thumbnail use")
        for i in range(thumbnails.count()):
            assert thumbnails.nth(i).bounding_box()["width"] > 50  # drawn although its original is folded away
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
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
        assert page.evaluate("document.querySelector('math').namespaceURI").endswith("MathML")
        assert page.complaints == []


def test_a_link_opens_the_entry_that_it_leads_to(browser, path):
    with opened(browser, path) as page:
        article = page.locator("[id='mamba.robust']")
        assert not article.is_visible()
        page.locator(".opening a[href='#mamba.robust'] code").click()
        article.wait_for(state="visible")
        assert page.evaluate("document.querySelectorAll('details.entry[open]').length") == 1
        page.locator("nav a[href='#disagreements']").click()
        page.locator("#disagreements .unconfirmed.papers").wait_for(state="visible")


def test_on_a_phone_nothing_scrolls_sideways(browser, path):
    with opened(browser, path, width=390, height=844) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator(".claims thead").is_hidden()
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
        assert page.locator("pre").first.is_hidden()
        assert page.locator("details.section > summary").first.is_visible()
        assert page.locator(".picture svg").first.is_visible()  # although its entry is folded on the screen
        assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        pdf = page.pdf(format="A4")
        assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") >= 4
