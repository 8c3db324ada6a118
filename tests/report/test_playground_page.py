"""Every control of the playground does what it says; links, keys, touch, looks. Its models have random weights."""

from __future__ import annotations

import json

import numpy as np
import pytest
from browser import opened
from exhibited import SOURCES, close
from visitor import OTHER, go, outputs, strip, tokens, turn

from iclab.probes.pruning import kept_neurons, neuron_norms
from iclab.report.playground.exhibits import CHAIN_STEPS, GATED_STEPS, SOFTMAX_STEPS

# --- poisoned prompts: every control does what it says ---------------------------------------------------------------

def test_the_fraction_poisons_more_and_keeps_the_others(page):
    go(page, "#poison?fraction=0.3")
    few = tokens(page)
    turn(page, "fraction", 0.8)
    many = tokens(page)
    poisoned = [{token[0] for token in some if token[1]} for some in (few, many)]
    assert poisoned[0] < poisoned[1]
    assert [token[0] for token in few] == [token[0] for token in many]
    count = sum(token[1] for token in many)
    assert page.locator("output").first.inner_text() == f"80\u00a0%, here {count} of 20"


def test_the_rule_decides_what_poison_says(page):
    said = {}
    for rule in ("flip", "target", "random"):
        go(page, "#poison?seed=5&fraction=0.9")
        turn(page, "rule", rule)
        said[rule] = [token[2] for token in tokens(page) if token[1]]
        if rule == "flip":
            assert all(lies == poisoned for _, poisoned, _, lies in tokens(page))
    assert set(said["target"]) == {"+"}
    assert set(said["flip"]) == set(said["random"]) == set(OTHER)
    assert said["flip"] != said["random"]


def test_scale_and_direction_change_what_the_models_read(page):
    def poison():
        return page.evaluate("""() => { const at = iclab.prompt.examples.findIndex(example => example.outlier);
            return [...iclab.columns.values.slice(20 * at + 16, 20 * at + 19)]; }""")

    go(page, "#poison?direction=v1")
    first, seen = np.array(poison()), [outputs(page)]
    turn(page, "scale", 1)
    np.testing.assert_allclose(np.array(poison()), first / 3, atol=1e-9)
    seen.append(outputs(page))
    for direction in ("v2", "v3", "training", "against", "own"):
        turn(page, "direction", direction)
        assert np.linalg.norm(poison()) == pytest.approx(2.0)
        seen.append(outputs(page))
        if direction == "against":
            np.testing.assert_allclose(poison(), -first / 3, atol=1e-9)
    turn(page, "first", -1)
    turn(page, "second", 0)
    turn(page, "third", 0)
    np.testing.assert_allclose(poison(), [-2, 0, 0], atol=1e-9)
    seen.append(outputs(page))
    assert len({json.dumps(some) for some in seen}) == len(seen)


def test_placement_moves_poison_and_length_adds_examples(page):
    go(page, "#poison?fraction=0.4")
    turn(page, "placement", "far")
    marks = [token[1] for token in tokens(page)]
    assert marks == sorted(marks, reverse=True)
    assert 0 < sum(marks) < len(marks)
    turn(page, "placement", "close")
    assert [token[1] for token in tokens(page)] == marks[::-1]
    turn(page, "length", 30)
    assert len(tokens(page)) == 30
    assert page.locator("[data-model='mamba'] .strip.gate").get_attribute("viewBox") == "0 0 30 1"


def test_the_training_slider_shows_earlier_weights(page):
    go(page, "#poison")
    before = strip(page, "mamba", "gate")
    turn(page, "trained", 0)
    assert np.abs(np.array(before) - np.array(strip(page, "mamba", "gate"))).max() > 0.01
    assert page.locator(".training output").inner_text() == "0 of 1,000"
    page.get_by_role("button", name="Play training").click()
    page.wait_for_function("() => document.querySelector('.training output').textContent.startsWith('8 of')")
    page.get_by_role("button", name="Pause").click()


def test_a_click_poisons_and_a_click_on_the_sign_flips(page):
    go(page, "#poison?fraction=0")
    first = page.locator(".token").nth(4)
    sign = tokens(page)[4][2]
    first.locator(".shape").click()
    other = OTHER[sign]
    assert tokens(page)[4] == [4, True, other, True]
    first.locator(".label").click()
    assert tokens(page)[4] == [4, True, sign, False]
    first.locator(".shape").click()
    assert tokens(page)[4] == [4, False, other, True]
    page.get_by_role("button", name="Undo my changes").click()
    assert tokens(page)[4] == [4, False, sign, False]
    kappa = page.evaluate("iclab.prompt.examples[4].kappa")
    page.get_by_role("button", name="Another prompt").click()
    assert page.evaluate("iclab.prompt.examples[4].kappa") != pytest.approx(kappa)


def test_a_change_taken_back_is_no_change(page):
    token, step = ".token:nth-child(4)", "[data-step='3.0']"
    for link, part in (("#poison?fraction=0.5", f"{token} .shape"), ("#poison", f"{token} .label"),
                       ("#thought?right=0.6&pile=0", step), ("#thought?right=1", step)):
        go(page, link)
        before = page.evaluate("JSON.stringify([iclab.prompt, iclab.thoughts.prompt])")
        for expected in ("false", "true"):
            page.locator(part).click()
            assert page.get_by_role("button", name="Undo my changes").get_attribute("aria-disabled") == expected
        assert page.evaluate("JSON.stringify([iclab.prompt, iclab.thoughts.prompt])") == before
        page.wait_for_function("link => location.hash === link", arg=link)


def test_a_screen_reader_may_click_and_a_right_click_does_nothing(page):
    go(page, "#poison?fraction=0")
    page.locator(".token").nth(2).click(button="right")
    assert not any(token[1] for token in tokens(page))
    page.evaluate("document.querySelectorAll('.token')[2].click()")
    assert [token[0] for token in tokens(page) if token[1]] == [2]


def test_the_row_can_always_be_reached_by_tab(page):
    go(page, "#poison")
    page.locator(".token").nth(19).focus()
    turn(page, "length", 8)
    assert page.locator(".token[tabindex='0']").count() == 1


def test_another_prompt_keeps_the_poison_only(page):
    go(page, "#poison?fraction=0&poisoned=05&flipped=2&moved=1234567890abcdefghij")
    page.get_by_role("button", name="Another prompt").click()
    page.wait_for_function("() => location.hash === '#poison?seed=11&fraction=0&poisoned=05'")
    go(page, "#thought?steps=0.1.1")
    page.get_by_role("button", name="Another prompt").click()
    page.wait_for_function("() => location.hash === '#thought?seed=4'")


def test_what_was_said_is_about_the_last_change(page):
    go(page, "#poison")
    page.locator(".token").nth(3).locator(".shape").click()
    assert "Example 4 of 20" in page.locator(".summary").text_content()
    turn(page, "scale", 2)
    assert "Example 4" not in page.locator(".summary").text_content()


def test_an_example_is_dragged_by_mouse(page):
    go(page, "#poison")
    before = outputs(page)
    start, end = (page.locator(".token").nth(i).bounding_box() for i in (2, 17))
    page.mouse.move(start["x"] + 8, start["y"] + 8)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + 8, steps=5)
    page.mouse.up()
    assert [token[0] for token in tokens(page)].index(2) == 17
    assert [token[1] for token in tokens(page) if token[0] == 2] == [True]  # a drag is not a click
    after = outputs(page)
    assert after[0] != pytest.approx(before[0], abs=1e-6)  # Mamba minds where an example stands
    assert after[1] == pytest.approx(before[1])  # the linear Transformer does not


def test_an_example_is_dragged_by_touch(page, looks):
    looks(390, "light")
    go(page, "#poison")
    page.locator(".head").scroll_into_view_if_needed()
    start, end = (page.locator(".token").nth(i).bounding_box() for i in (2, 15))
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    steps = np.linspace(start["x"] + 5, end["x"] + 5, 8)
    for kind, x in (("touchStart", steps[0]), *(("touchMove", x) for x in steps[1:]), ("touchEnd", None)):
        points = [] if x is None else [{"x": float(x), "y": start["y"] + 8}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    session.detach()
    assert [token[0] for token in tokens(page)].index(2) == 15


def test_the_keyboard_does_all_of_it(page):
    go(page, "#poison?fraction=0")
    page.locator(".token").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.activeElement.dataset.id === '1'")
    page.keyboard.press("Enter")
    sign = tokens(page)[1][2]
    page.keyboard.press("f")
    assert tokens(page)[1][1:3] == [True, OTHER[sign]]
    page.keyboard.press("Shift+ArrowRight")
    page.wait_for_function("() => document.activeElement.dataset.id === '1'")
    assert [token[0] for token in tokens(page)][:3] == [0, 2, 1]
    assert "Example 3 of 20" in page.locator(".summary").inner_text()
    page.keyboard.press("End")
    page.wait_for_function("() => document.activeElement.dataset.id === '19'")
    before = tokens(page)
    for key, held in (("f", "ctrlKey"), ("p", "metaKey"), ("ArrowLeft", "altKey")):  # the browser's own
        page.evaluate("""([key, held]) => document.activeElement.dispatchEvent(
            new KeyboardEvent('keydown', { key, bubbles: true, [held]: true }))""", [key, held])
    assert tokens(page) == before
    page.keyboard.press("Shift+F")
    assert tokens(page) != before
    page.keyboard.press("Escape")
    assert page.locator(".token.selected").count() == 0
    page.locator("[data-field='fraction']").focus()
    page.keyboard.press("End")
    assert page.locator("output").first.inner_text().startswith("95\u00a0%")
    page.locator("#tab-poison").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.activeElement.id === 'tab-thought'")
    assert page.locator("#tab-thought").get_attribute("aria-selected") == "true"


def test_buttons_do_the_same_for_the_chosen_example(page):
    go(page, "#poison?fraction=0")
    page.locator(".token").nth(3).focus()
    page.get_by_role("button", name="Poison it").click()
    page.get_by_role("button", name="Flip its label").click()
    page.get_by_role("button", name="Nearer →").click()
    assert tokens(page)[4][:2] == [3, True]
    page.get_by_role("button", name="← Farther").click()
    page.get_by_role("button", name="Clean it").click()
    assert tokens(page)[3][:2] == [3, False]


def test_errors_are_counted_anew_after_a_change(page):
    go(page, "#poison?fraction=0.9&trained=0")
    error = "document.querySelector('[data-error=linear]').dataset"
    page.wait_for_function(f"() => {error}.prompts >= 400")
    high = float(page.evaluate(f"{error}.mean"))
    turn(page, "fraction", 0)
    page.wait_for_function(f"() => {error}.prompts >= 400 && Number({error}.mean) < {high} - 0.3")
    turn(page, "fraction", 0.95)
    floor = page.locator(".reference").first.evaluate("line => parseFloat(line.style.left)")
    assert floor == pytest.approx(100 * 0.95**20 / 2, abs=0.01)


# --- chains of thought -----------------------------------------------------------------------------------------------

def shares(page, arrows):
    """The attention that some arrows show."""
    return page.locator(f".chains {arrows}").evaluate_all("arrows => arrows.map(arrow => Number(arrow.dataset.share))")


def test_every_control_of_the_chains(page):
    def slips():
        return page.locator(".chains .slip").count()

    go(page, "#thought?right=1")
    assert slips() == 0
    turn(page, "right", 0.5)
    assert slips() > 20
    turn(page, "pile", 1)
    order = page.evaluate("iclab.thoughts.prompt.order")
    for example in page.evaluate("iclab.thoughts.prompt.examples"):
        for said, right in zip(example["tokens"][1:], example["right"], strict=True):
            assert (order.index(said) - order.index(right)) % 10 in (0, 1)
    turn(page, "length", 40)
    assert page.locator(".chains li:not(.own-steps)").count() == 40
    turn(page, "matching", 1)
    assert page.evaluate("iclab.thoughts.prompt.examples.every(example => example.matches)")
    shown = shares(page, "li:not(.own-steps) .arrow")
    turn(page, "trained", 2)
    again = shares(page, "li:not(.own-steps) .arrow")
    assert len(shown) == len(again) == 40 * 4
    assert np.abs(np.array(shown) - again).max() > 1e-4


def test_attention_and_answers_on_the_page_are_the_models(page):
    go(page, "#thought?right=0.9&length=12")
    for k in range(3):
        page.get_by_role("button", name=f"Step {k + 1}", exact=True).click()
        attention, direct = page.evaluate("""k => [iclab.thoughts.steps[k], iclab.thoughts.direct].map(
            step => [...step.attention])""", k)
        close(shares(page, "li:not(.own-steps) .step .arrow"), attention[:36])
        close(shares(page, ".own-steps .arrow")[:k], attention[36:])  # on its own earlier steps
        assert sum(attention) == pytest.approx(1.0)
        close(shares(page, ".direct .arrow"), direct[::3])
    said = page.evaluate("iclab.thoughts.steps.map(step => String.fromCharCode(65 + step.answer)).join('')")
    assert page.locator("[data-who=cot] td").first.inner_text().split("✓")[0].split("✗")[0].replace(
        "→", "").split()[1:] == list(said)


def test_a_click_breaks_a_step_and_what_follows_goes_on_from_there(page):
    go(page, "#thought?right=1")
    before = page.evaluate("iclab.thoughts.prompt.examples[2]")
    step = page.locator("[data-step='2.1']")
    step.click()
    after, order = page.evaluate("[iclab.thoughts.prompt.examples[2], iclab.thoughts.prompt.order]")
    assert after["tokens"][:2] == before["tokens"][:2]
    places = [order.index(pattern) for pattern in after["tokens"]]
    assert (places[2] - places[1]) % 10 == 3  # two places on, and one too far
    assert (places[3] - places[2]) % 10 == 3  # the third step is right, from there
    assert step.get_attribute("aria-pressed") == "true"
    step.click()
    assert page.evaluate("iclab.thoughts.prompt.examples[2]") == before


def test_the_vote_counts_matching_examples(page):
    go(page, "#thought?right=0.6&pile=0.5&length=30")
    prompt, voted = page.evaluate("[iclab.thoughts.prompt, iclab.thoughts.voted]")
    here, said = prompt["truth"][0], []
    for k in range(3):
        after = [example["tokens"][k + 1] for example in prompt["examples"] if example["tokens"][k] == here]
        here = min(range(10), key=lambda pattern: (-after.count(pattern), pattern))
        said.append(here)
    assert voted["chain"] == said
    ends = [example["tokens"][3] for example in prompt["examples"] if example["tokens"][0] == prompt["truth"][0]]
    assert voted["direct"] == min(range(10), key=lambda pattern: (-ends.count(pattern), pattern))


# --- the softmax Transformer -----------------------------------------------------------------------------------------

def test_mixing_moves_the_pattern_and_its_sum(page):
    go(page, "#softmax?length=8&query=first")
    seen = []
    for total in (-1.28, 0, 0.8):
        turn(page, "sum", total)
        width, values = page.evaluate("[iclab.mixed.columns.width, [...iclab.mixed.columns.values]]")
        query = np.array(values).reshape(-1, width)[-1][:6] / 3.0
        assert query.sum() == pytest.approx(total, abs=1e-6)
        assert np.linalg.norm(query) == pytest.approx(1.0, abs=2e-3)  # the slider's -1.28 is not quite -sqrt(1.64)
        seen.append(outputs(page)[0])
    assert len(set(seen)) == 3
    turn(page, "domain", "inside")
    assert page.locator("[data-field='sum']").count() == 0
    assert outputs(page)[0] not in seen
    go(page, "#softmax?length=8")
    for query, pattern in (("first", 0), ("second", 1), ("third", 2)):
        turn(page, "query", query)
        assert page.evaluate("iclab.mixed.prompt.query.pattern") == pattern


def test_pruning_takes_neurons_by_their_norms(page, models):
    go(page, "#softmax")
    norms = neuron_norms(models[8])
    for order in ("small", "large", "random"):
        turn(page, "order", order)
        turn(page, "pruned", 0.3)
        gone = page.locator(".neurons path.gone").get_attribute("d")
        assert gone.count("M") == 30
        kept = page.evaluate("[...iclab.mixed.kept]")
        assert sum(kept) == 70
        if order != "random":
            assert (np.array(kept) == kept_neurons(norms, 0.3, order)).all()
    turn(page, "pruned", 1)
    assert outputs(page)[0] == 0
    assert page.locator(".verdict .answer").inner_text().startswith("no answer ✗")
    page.wait_for_function("() => Number(document.querySelector('[data-error=softmax]').dataset.mean) === 1")
    assert float(page.locator("[data-hinge]").get_attribute("data-hinge")) == pytest.approx(1.0)


def test_other_controls_of_the_softmax_model(page):
    go(page, "#softmax")
    seen = [outputs(page)[0]]
    for field, value in (("start", "usual"), ("decisive", 0.3), ("irrelevantScale", 1), ("length", 9), ("trained", 1)):
        turn(page, field, value)
        seen.append(outputs(page)[0])
        if field == "length":
            assert page.locator(".attention .token").count() == 9
        if field == "decisive":
            same = page.evaluate("iclab.mixed.prompt.examples.filter(example => example.same).length")
            assert same < 12
    assert len(set(seen)) == len(seen)
    assert sum(page.evaluate("[...iclab.mixed.attention]")) == pytest.approx(1.0)
    page.wait_for_function("() => document.querySelectorAll('[data-curve] circle').length === 11 + 11")


# --- links, looks, manners -------------------------------------------------------------------------------------------

LINKS = ["#poison?seed=7&length=12&fraction=0.35&scale=1.5&direction=v2&rule=target&placement=far&trained=4",
         "#poison?fraction=0&poisoned=05&flipped=2&moved=1234567890abcdefghij",
         "#thought?seed=5&length=9&matching=0.5&right=0.8&pile=0.4&look=2&trained=3&steps=0.1.1_4.2.0",
         "#softmax?seed=3&decisive=0.4&sum=0.52&start=usual&pruned=0.25&order=random"]


@pytest.mark.parametrize("link", LINKS)
def test_a_link_brings_the_state_back(browser, path, page, link):
    read = "() => JSON.stringify([iclab.prompt, iclab.readings, iclab.thoughts, iclab.mixed])"
    usual = page.evaluate(read)
    go(page, link)
    here = page.evaluate(read)
    with opened(browser, f"{path}{link}") as other:
        assert other.evaluate(read) == here != usual
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
                                  "#softmax?sum=%E0%A4%A&order=3"])
def test_a_wrong_link_is_put_right(page, link):
    go(page, link)
    assert page.locator("h1").inner_text() == "iclab playground"
    assert page.evaluate("iclab.readings.every(reading => Number.isFinite(reading.output))")
    assert page.evaluate("iclab.prompt.examples.length >= 4")


@pytest.mark.parametrize("tab", ["poison", "thought", "softmax"])
def test_on_a_phone_and_in_the_dark(page, looks, tab):
    go(page, f"#{tab}")
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
    for tab in ("poison", "thought", "softmax"):
        go(page, f"#{tab}")
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
    for tab, count in (("poison", 5), ("thought", 4), ("softmax", 5)):
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
    page.get_by_role("button", name="The gate opens").click()
    undo = page.get_by_role("button", name="Undo my changes")
    assert undo.get_attribute("aria-disabled") == "true"
    page.locator(".token").nth(5).locator(".shape").click()
    assert undo.get_attribute("aria-disabled") == "false"
    undo.click()
    assert [token[0] for token in tokens(page) if token[1]] == [0]


def test_a_preset_leaves_other_tabs_alone(page):
    go(page, "#thought?right=1")
    page.locator("[data-step='1.1']").click()
    page.locator("#tab-poison").click()
    page.get_by_role("button", name="A few lies").click()
    page.locator("#tab-thought").click()
    assert page.locator("[data-step='1.1']").get_attribute("aria-pressed") == "true"


def test_sliders_reach_every_step_of_training(page):
    for tab, steps in (("poison", GATED_STEPS), ("thought", CHAIN_STEPS), ("softmax", SOFTMAX_STEPS)):
        go(page, f"#{tab}")
        assert page.locator("[data-field='trained']").get_attribute("max") == str(len(steps) - 1)
        assert page.locator(".training output").inner_text() == f"{steps[-1]:,} of {steps[-1]:,}"
