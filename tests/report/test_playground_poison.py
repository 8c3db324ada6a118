"""Poisoned prompts on the playground: every control does what it says, by mouse, touch and keys."""

from __future__ import annotations

import json

import numpy as np
import pytest
from visitor import OTHER, go, outputs, strip, tokens, turn


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


def test_the_rule_decides_the_labels_of_poisoned_examples(page):
    labels = {}
    for rule in ("flip", "target", "random"):
        go(page, "#poison?seed=5&fraction=0.9")
        turn(page, "rule", rule)
        labels[rule] = [token[2] for token in tokens(page) if token[1]]
        if rule == "flip":
            assert all(lies == poisoned for _, poisoned, _, lies in tokens(page))
    assert set(labels["target"]) == {"+"}
    assert set(labels["flip"]) == set(labels["random"]) == set(OTHER)
    assert labels["flip"] != labels["random"]


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


def test_a_change_reversed_by_hand_is_no_change(page):
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


def test_the_summary_is_about_the_last_change(page):
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
    assert after[0] != pytest.approx(before[0], abs=1e-6)  # for Mamba the position of an example matters
    assert after[1] == pytest.approx(before[1])  # for the linear Transformer it does not


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
    for key, modifier in (("f", "ctrlKey"), ("p", "metaKey"), ("ArrowLeft", "altKey")):  # shortcuts of the browser
        page.evaluate("""([key, modifier]) => document.activeElement.dispatchEvent(
            new KeyboardEvent('keydown', { key, bubbles: true, [modifier]: true }))""", [key, modifier])
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
    page.wait_for_function("() => document.activeElement.id === 'tab-regression'")
    assert page.locator("#tab-regression").get_attribute("aria-selected") == "true"


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
