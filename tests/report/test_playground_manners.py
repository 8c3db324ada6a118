"""The playground's manners: links, looks, presets, accessibility."""

from __future__ import annotations

import pytest
from browser import opened
from exhibited import SOURCES
from visitor import go, tokens, turn

from iclab.report.playground.exhibits import CHAIN_STEPS, GATED_STEPS, REGRESSION_STEPS, SOFTMAX_STEPS

LINKS = ["#poison?seed=7&length=12&fraction=0.35&scale=1.5&direction=v2&rule=target&placement=far&trained=4",
         "#poison?fraction=0&poisoned=05&flipped=2&moved=1234567890abcdefghij",
         "#thought?seed=5&length=9&matching=0.5&right=0.8&pile=0.4&look=2&trained=3&steps=0.1.1_4.2.0",
         "#poison?fraction=0.5&hold=clean&gate=0.35&held=0k5a",
         "#regression?seed=9&length=30&fraction=0.5&scale=1.5&size=4&rule=flip&placement=far&trained=3&poisoned=0&cleaned=1",
         "#softmax?seed=3&decisive=0.4&sum=0.52&start=usual&pruned=0.25&order=random"]


@pytest.mark.parametrize("link", LINKS)
def test_a_link_brings_the_state_back(browser, path, page, link):
    read = "() => JSON.stringify([iclab.prompt, iclab.readings, iclab.thoughts, iclab.mixed, iclab.numbers])"
    usual = page.evaluate(read)
    go(page, link)
    state = page.evaluate(read)
    with opened(browser, f"{path}{link}") as other:
        assert other.evaluate(read) == state != usual
        other.wait_for_timeout(250)
        assert other.evaluate("location.hash") == link
        assert other.complaints == []


def test_the_link_follows_the_visitor(page):
    go(page, "#poison")
    turn(page, "fraction", 0.25)
    page.locator(".token").nth(1).locator(".label").click()
    page.wait_for_function("() => location.hash === '#poison?fraction=0.25&flipped=1'")
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_function("() => document.querySelector('.actions [role=status]').textContent.includes('link')")
    turn(page, "fraction", 0.3)
    page.wait_for_function("() => document.querySelector('.actions [role=status]').textContent === ''")


@pytest.mark.parametrize("link", ["#poison?fraction=7&scale=x&direction=up&length=-3&poisoned=zz~&moved=",
                                  "#nothing?a=1", "#thought?right=&pile=NaN&steps=99.9.9_a&length=1e9",
                                  "#poison?held=0~z9zz&hold=all&gate=-3", "#regression?poisoned=zz&length=2&size=x",
                                  "#softmax?sum=%E0%A4%A&order=3"])
def test_a_wrong_link_is_corrected(page, link):
    go(page, link)
    assert page.locator("h1").inner_text() == "iclab playground"
    assert page.evaluate("iclab.readings.every(reading => Number.isFinite(reading.output))")
    assert page.evaluate("iclab.prompt.examples.length >= 4")


@pytest.mark.parametrize("tab", ["poison", "regression", "thought", "softmax"])
def test_on_a_phone_and_in_the_dark(page, looks, tab):
    go(page, f"#{tab}{'?hold=examples' * (tab == 'poison')}")
    for width, scheme in ((390, "light"), (390, "dark"), (1280, "dark")):
        looks(width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("""() => [...document.querySelectorAll('input, select')].filter(control =>
            control.labels.length !== 1 || control.getBoundingClientRect().width < 100).length""") == 0
        assert page.evaluate("""() => { const ids = [...document.querySelectorAll('[id]')].map(part => part.id);
            return ids.length - new Set(ids).size; }""") == 0


@pytest.mark.parametrize(("scheme", "rules"), [("light", "{}"), ("dark", "{ runOnly: ['color-contrast'] }")])
def test_accessible_by_the_rules_of_axe(page, looks, scheme, rules):
    program = SOURCES / "node_modules" / "axe-core" / "axe.min.js"
    if not program.exists():
        pytest.skip("axe-core is not installed (npm ci in playground/)")
    looks(1280, scheme)
    page.evaluate(program.read_text())
    for tab in ("poison", "regression", "thought", "softmax"):
        go(page, f"#{tab}")
        if tab == "poison":
            page.locator(".token").nth(2).focus()
            page.keyboard.press("ArrowUp")  # the slider of its gate appears
        assert page.evaluate(f"""axe.run({rules}).then(({{ violations }}) =>
            violations.map(({{ id, nodes }}) => [id, nodes[0].html]))""") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_and_signs_stand_out(page, looks, scheme):
    """Contrast of the single characters, which axe leaves out: 4.5 or more (WCAG AA)."""
    looks(1280, scheme)
    for tab in ("poison", "thought"):
        go(page, f"#{tab}")
        faint = page.evaluate("""() => { const canvas = document.createElement('canvas').getContext('2d',
                { willReadFrequently: true });
            const over = (below, colour) => { canvas.fillStyle = below; canvas.fillRect(0, 0, 1, 1);
                canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
                return `rgb(${[...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3)})`; };
            const ground = part => part === null ? 'white' : over(ground(part.parentElement),
                getComputedStyle(part).backgroundColor);
            const light = colour => { const [r, g, b] = colour.match(/[0-9.]+/g).map(v => v / 255)
                .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                return .2126 * r + .7152 * g + .0722 * b; };
            return [...document.querySelectorAll('.pattern, .label')].map(part => { const below = ground(part);
                const [a, b] = [below, over(below, getComputedStyle(part).color)].map(light);
                return [part.className, (Math.max(a, b) + .05) / (Math.min(a, b) + .05)]; }).filter(
                    ([, found]) => found < 4.5); }""")
        assert faint == []


def test_presets_say_what_to_look_for(page):
    for tab, count in (("poison", 7), ("regression", 6), ("thought", 4), ("softmax", 5)):
        page.locator(f"#tab-{tab}").click()
        buttons = page.locator(".presets button")
        assert buttons.count() == count
        looks = set()
        for i in range(count):
            buttons.nth(i).click()
            assert buttons.nth(i).get_attribute("aria-pressed") == "true"
            looks.add(page.locator(".look").inner_text())
        assert len(looks) == count
        turn(page, "length", 13)
        assert page.locator(".presets [aria-pressed=true]").count() == 0
        assert "You went on from" in page.locator(".look").inner_text()


def test_undo_goes_back_to_the_preset(page):
    from playwright.sync_api import expect  # waits: on a busy machine the page redraws late

    page.get_by_role("button", name="The gate opens").click()
    undo = page.get_by_role("button", name="Undo my changes")
    expect(undo).to_have_attribute("aria-disabled", "true")
    page.locator(".token").nth(5).locator(".shape").click()
    expect(undo).to_have_attribute("aria-disabled", "false")
    undo.click()
    expect(undo).to_have_attribute("aria-disabled", "true")
    assert [token[0] for token in tokens(page) if token[1]] == [0]


def test_a_preset_leaves_other_tabs_alone(page):
    go(page, "#thought?right=1")
    page.locator("[data-step='1.1']").click()
    page.locator("#tab-poison").click()
    page.get_by_role("button", name="A few lies").click()
    page.locator("#tab-thought").click()
    assert page.locator("[data-step='1.1']").get_attribute("aria-pressed") == "true"


def test_sliders_reach_every_step_of_training(page):
    for tab, steps in (("poison", GATED_STEPS), ("regression", REGRESSION_STEPS), ("thought", CHAIN_STEPS),
                       ("softmax", SOFTMAX_STEPS)):
        go(page, f"#{tab}")
        assert page.locator("[data-field='trained']").get_attribute("max") == str(len(steps) - 1)
        assert page.locator(".training output").inner_text() == f"{steps[-1]:,} of {steps[-1]:,}"
