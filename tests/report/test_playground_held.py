"""Gates held by hand on the playground: the same as Python's clamp, by mouse, keys, buttons and links."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exhibited import as_columns, ask, close, in_python
from visitor import go, outputs, strip, turn

from iclab import clamp
from iclab.papers.mamba.settings import attacked_prompts
from iclab.report.playground.exhibits import GATED_STEPS, RATES, at_step

MEMBERS = list(RATES)


def third_if_clean(prompt):
    return (jnp.arange(len(prompt.y)) == 3) & ~prompt.truth.outlier


def held_by_hand(prompts):
    """What the page holds where Python clamps the poisoned examples at 0.35 and the clean third one at 0.8."""
    outlier = np.asarray(prompts.truth.outlier)
    held = np.where(outlier, 0.35, np.nan)
    held[~outlier[:, 3], 3] = 0.8
    return [[None if np.isnan(value) else value for value in row] for row in held]


def read_held(page, number, at, width, columns, held):
    """Outputs, and gates of every layer, of the page's models."""
    return ask(page, """(number, at, width, prompts, held) => prompts.map((values, i) => { const { output, layers } =
            iclab.read(iclab.models[number], at, { width, count: values.length / width,
                values: new Float64Array(values) }, new Float64Array(held[i].map(value => value ?? NaN)));
            return [output, layers.map(({ gates }) => [...gates])]; })""", number, at, width, columns, held)


def compare_held(page, number, model, params, at, prompts):
    """The page's model with gates held against Python's with interventions."""
    drawn = jax.tree.map(np.asarray, prompts.sample(number, 60))
    changed = clamp("gates", 0.35, where="poisoned")(clamp("gates", 0.8, where=third_if_clean)(model.run.model))
    expected, seen = in_python(changed, params, drawn)
    read = read_held(page, number, at, *as_columns(model.run, drawn), held_by_hand(drawn))
    close([one[0] for one in read], expected)
    close([one[1] for one in read], seen.gates)
    free, _ = in_python(model.run.model, params, drawn)
    assert np.abs(free - expected).max() > 0.01


@pytest.mark.parametrize("member", [*(pytest.param(name, marks=pytest.mark.slow) for name in MEMBERS[1:-1]),
                                    MEMBERS[0], MEMBERS[-1]])
def test_held_gates_are_clamped_ones(page, models, member):
    number = MEMBERS.index(member)
    compare_held(page, number, models[number], at_step(models[number], GATED_STEPS[-1]), len(GATED_STEPS) - 1,
                 attacked_prompts("flip", 0.5))


def held(page):
    """What the gates of the columns are held at; None where one is free, nothing if all are."""
    return page.evaluate("[...(iclab.held ?? [])].map(value => Number.isNaN(value) ? null : value)")


def test_many_gates_in_one_move(page):
    go(page, "#poison?fraction=0.5")
    poisoned = page.evaluate("iclab.prompt.examples.map(example => example.outlier)")
    before = outputs(page)
    assert held(page) == []
    for hold, meant in (("poisoned", poisoned), ("clean", [not one for one in poisoned]), ("examples", [True] * 20)):
        turn(page, "hold", hold)
        turn(page, "gate", 0.3)
        assert held(page) == [*(0.3 if one else None for one in meant), None]
        assert f'clamp("gates", 0.3, where="{hold}")' in page.locator(".controls").inner_text()
    votes = page.evaluate("""iclab.readings[1].layers[0].scores.reduce((sum, score, i) =>
        sum + 0.3 * score * (iclab.prompt.examples[i]?.label ?? 0), 0)""")
    close(outputs(page)[1], votes)
    assert outputs(page)[1] == pytest.approx(0.3 * before[1])  # its own gates are all 1
    turn(page, "hold", "none")
    assert outputs(page) == pytest.approx(before)


def test_the_error_over_random_prompts_follows(page):
    def error(link):
        go(page, link)
        page.wait_for_function("() => document.querySelector('[data-error=linear]').dataset.prompts >= 200")
        return float(page.locator("[data-error=linear]").get_attribute("data-mean"))

    assert error("#poison?hold=examples&gate=0") == 1  # nothing arrives: no answer, which is wrong
    assert error("#poison?hold=examples&gate=0.5") < 1
    assert error("#poison?length=4&held=00102030") < 1  # held by hand, in this prompt alone
    assert outputs(page)[1] == 0


def test_a_gate_bar_is_dragged(page):
    go(page, "#poison?fraction=0.5")
    bars = page.locator("[data-model=linear] .strip.gate")
    bars.scroll_into_view_if_needed()
    box = bars.bounding_box()
    x = box["x"] + 6.5 * box["width"] / 20
    page.mouse.move(x, box["y"] + 2)
    page.mouse.down()
    page.mouse.up()
    assert held(page) == []  # a click chooses the example
    assert page.locator(".token.selected").get_attribute("data-id") == "6"
    page.wait_for_timeout(100)  # its numbers appear and move the bars
    box = bars.bounding_box()
    page.mouse.move(x, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(x, box["y"] + 0.75 * box["height"], steps=4)
    page.mouse.up()
    assert held(page)[6] == pytest.approx(0.25)
    assert held(page).count(None) == 20
    close(np.array(strip(page, "linear", "gate"))[6], 0.25, 100)
    assert page.locator("[data-model=linear] .lid").count() == 1
    page.mouse.move(x, box["y"])  # it was let go
    assert held(page)[6] == pytest.approx(0.25)


def test_keys_and_buttons_hold_the_gate_of_an_example(page):
    go(page, "#poison?fraction=0.5")
    token = page.locator(".token").nth(2)
    token.focus()
    page.keyboard.press("ArrowDown")
    assert held(page)[2] == 0
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    assert held(page)[2] == pytest.approx(0.15)
    assert "gate is held at 0.15" in page.locator(".summary").text_content()
    assert "gate held at 0.15" in token.get_attribute("aria-label")
    page.wait_for_function("() => location.hash === '#poison?fraction=0.5&held=23'")
    page.keyboard.press("g")
    assert held(page) == []
    page.get_by_role("button", name="Hold its gate open").click()
    assert held(page)[2] == 1
    page.locator("[data-hold]").fill("0.6")
    assert held(page)[2] == pytest.approx(0.6)
    page.get_by_role("button", name="Another prompt").click()
    assert held(page) == []  # it was of the other prompt
    page.locator(".token").nth(2).focus()
    page.get_by_role("button", name="Shut it", exact=True).click()
    page.get_by_role("button", name="Let it go").click()
    assert held(page) == []
