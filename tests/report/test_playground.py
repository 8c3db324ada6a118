"""The playground in a real browser, its models with random weights; `test_playground_trained` has trained ones."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from browser import chromium, opened
from exhibited import close, compare_chain, compare_gated, compare_softmax, in_python, random_models

from iclab.cli import main
from iclab.commands import play, reproduce
from iclab.papers import outcomes
from iclab.papers.entries import Entry, Outcome
from iclab.papers.mamba.settings import training_prompts
from iclab.prompts import Prompt
from iclab.report.playground import page as playground_page
from iclab.report.playground.exhibits import (
    CHAIN_STEPS,
    GATED_STEPS,
    RATES,
    SOFTMAX_STEPS,
    at_step,
    exhibits,
    used_coordinates,
)
from iclab.report.playground.page import as_script, render

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "playground"
OTHER = {"+": "\u2212", "\u2212": "+"}
MANY = 200


@pytest.fixture(scope="module")
def models():
    return random_models()


@pytest.fixture(scope="module")
def path(models, tmp_path_factory):
    made = tmp_path_factory.mktemp("playground") / "playground.html"
    made.write_text(render(models))
    return made


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def one_page(browser, path):
    with opened(browser, path) as found:
        yield found


@pytest.fixture
def page(one_page):
    """The page, as it is without a link; nothing may have gone wrong in it when a test is over."""
    go(one_page, "#poison")
    yield one_page
    assert one_page.complaints == []


def go(page, link):
    """Follow a link within the page; by a detour, so that it is followed even if the address is this one already."""
    page.evaluate("""async link => { for (const stop of ['#nowhere', link]) await new Promise(done => {
        addEventListener('hashchange', () => requestAnimationFrame(done), { once: true });
        location.hash = stop; }); }""", link)


def turn(page, field, value):
    """Move a slider or choose from a list as a visitor does."""
    control = page.locator(f"[data-field='{field}']")
    if control.evaluate("control => control.tagName") == "SELECT":
        control.select_option(str(value))
    else:
        control.fill(str(value))


def tokens(page):
    """The examples on the page: id, poisoned, the sign that is shown, whether it is marked as a lie."""
    return page.evaluate("""() => [...document.querySelectorAll('.tokens .token:not(.query)')].map(token => [
        Number(token.dataset.id), token.getAttribute('aria-pressed') === 'true',
        token.querySelector('.label').textContent, token.querySelector('.label').matches('.lies')])""")


def outputs(page):
    return page.evaluate("[...document.querySelectorAll('[data-output]')].map(shown => Number(shown.dataset.output))")


def strip(page, model, name):
    """Heights of the bars of a strip, by column, as shares of the tallest."""
    return page.evaluate("""([model, name]) => { const heights = [];
        for (const path of document.querySelectorAll(`[data-model=${model}] .strip.${name} path:not(.axis)`))
            for (const [, place, height] of path.getAttribute('d').matchAll(/M(\\d+)\\.14 [\\d.]+h.72v([\\d.]+)/g))
                heights[place] = Number(height);
        const most = Math.max(...heights); return heights.map(height => height / most); }""", [model, name])


# --- what is in the file ---------------------------------------------------------------------------------------------

def test_the_program_in_the_package_was_built_from_these_sources():
    files = [path for path in (SOURCES / "src").rglob("*") if path.suffix in (".ts", ".tsx", ".css")]
    names = sorted([*(path.relative_to(SOURCES).as_posix() for path in files), "package-lock.json"])
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + b"\0" + (SOURCES / name).read_bytes() + b"\0")
    for built in ("app.js", "app.css"):
        first = playground_page.HERE.joinpath(built).read_text().splitlines()[0]
        assert digest.hexdigest() in first, f"{built} is old: run `npm run build` in playground/"


def test_one_small_file_that_asks_for_nothing(path):
    text = path.read_text()
    assert len(text.encode()) < 1_500_000
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(script) == 1
    assert base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode() in policy
    assert "default-src 'none'" in policy
    assert re.findall(r'(?:src|href)="', text.split("<script>")[0]) == []


def test_what_a_spec_says_cannot_leave_its_script_element():
    nasty = {"name": "</script><script>alert(1)</script>"}
    text = as_script(nasty)
    assert "<" not in text
    assert json.loads(text) == nasty


def test_the_weights_shown_are_those_of_each_step(models):
    mamba = models[0]
    for step in GATED_STEPS[1:]:
        record = list(mamba.steps).index(step)
        assert (mamba.probes["0/W_B"][record] == at_step(mamba, step)[0].W_B).all()
    assert not (at_step(mamba, 0)[0].W_B == at_step(mamba, 4)[0].W_B).all()
    assert float(at_step(mamba, 0)[0].W_B[0, 0]) == pytest.approx(mamba.run.model.init_scale)


def test_models_are_trained_as_the_paper_has_it():
    shown = {exhibit.name: exhibit.run for exhibit in exhibits()}
    for member, rate in RATES.items():
        assert shown[member].model.member == member
        assert shown[member].prompts == training_prompts()
        assert float(shown[member].training.learning_rate) == rate
    for exhibit in exhibits():
        assert all(step % exhibit.run.training.record_every == 0 for step in exhibit.steps)


# --- the models agree with Python ------------------------------------------------------------------------------------

def test_gated_models_equal_python(page, models):
    for number in range(len(RATES)):
        for step in (GATED_STEPS[-1], GATED_STEPS[3], 0):
            compare_gated(page, number, models[number], step, MANY)


def test_softmax_models_equal_python(page, models):
    for number in (0, 1):
        for step in (exhibits()[7 + number].steps[-1], 0):
            compare_softmax(page, number, models[7 + number], step, MANY)


def test_chains_of_thought_equal_python(page, models):
    compare_chain(page, models[-1], exhibits()[-1].steps[-1], MANY)


def test_python_reads_what_the_page_shows(page, models):
    """The page's own prompts, as it has them on screen, through Python's models."""
    for i, link in enumerate(("#poison", "#poison?seed=8&rule=target&scale=1.5&trained=3",
                              "#poison?seed=9&direction=against&fraction=0.3&poisoned=02&flipped=5",
                              "#poison?direction=own&first=1&second=-0.5&third=0.2&placement=close")):
        go(page, link)
        width, count, values = page.evaluate("[iclab.columns.width, iclab.columns.count, [...iclab.columns.values]]")
        columns = np.zeros((1, count, 32))
        columns[..., used_coordinates(models[0].run)] = np.array(values).reshape(count, width)
        shown = outputs(page)
        step = GATED_STEPS[3 if i == 1 else -1]
        for number in range(len(RATES)):
            model, params = models[number].run.model, at_step(models[number], step)
            prompt = Prompt(*(None,) * 9)._replace(x=columns[..., :30], y=columns[..., 30])
            output, seen = in_python(model, params, prompt)
            close(shown[number], output[0])
            gates = seen.gates[0, 0, :-1]
            np.testing.assert_allclose(strip(page, list(RATES)[number], "gate"), gates / gates.max(), atol=2e-4)
            scores = np.abs(seen.scores[0, 0, :-1])
            np.testing.assert_allclose(strip(page, list(RATES)[number], "score"), scores / scores.max(), atol=4e-4)


def test_a_prompt_of_the_page_is_what_the_paper_says(page):
    go(page, "#poison?fraction=0.5&scale=2&direction=v1")
    prompt, values = page.evaluate("[iclab.prompt, [...iclab.columns.values]]")
    columns = np.array(values).reshape(-1, 20)
    direction = np.array([0.7, 0.6, -0.4]) / np.linalg.norm([0.7, 0.6, -0.4])
    for token, column in zip([*prompt["examples"], prompt["query"]], columns, strict=True):
        expected = np.zeros(20)
        expected[token["pattern"]] = 3.0
        expected[6 + token["irrelevant"]] = 3.0 * token["kappa"]
        if token["outlier"]:
            expected[16:19] = 2 * 2.0 * direction
            assert token["label"] == -token["clean"]
        expected[19] = token["label"]
        np.testing.assert_allclose(column, expected, atol=1e-6)
    assert not prompt["query"]["outlier"]
    assert 4 <= sum(token["outlier"] for token in prompt["examples"]) <= 16


# --- poisoned prompts: every control does what it says ---------------------------------------------------------------

def test_the_fraction_poisons_more_and_keeps_the_others(page):
    go(page, "#poison?fraction=0.3")
    few = tokens(page)
    turn(page, "fraction", 0.8)
    many = tokens(page)
    poisoned = [{token[0] for token in some if token[1]} for some in (few, many)]
    assert poisoned[0] < poisoned[1]
    assert [token[0] for token in few] == [token[0] for token in many]
    assert page.locator("output").first.inner_text() == "80\u00a0%"


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
    assert page.locator("output").first.inner_text() == "95\u00a0%"
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
    from iclab.probes.pruning import kept_neurons, neuron_norms

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
    assert page.locator(".verdict .answer").inner_text().startswith("0 ✗")
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


@pytest.fixture
def looks(page):
    """Change the size of the window and the colours; afterwards all is as before."""
    def look(width, scheme):
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(color_scheme=scheme)

    yield look
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")


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


def test_every_model_can_be_traced(page, models):
    page.get_by_text("Where the weights come from").click()
    runs = page.locator("footer details details summary code").all_inner_texts()
    assert len(runs) == len(set(runs)) == len(models)
    assert all(re.fullmatch(r"[0-9a-f]{24}", run) for run in runs)


# --- the command -----------------------------------------------------------------------------------------------------

def test_play_writes_the_page_and_opens_it(models, tmp_path, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(play, "kept", lambda lab: models)
    monkeypatch.setattr(play.webbrowser, "open", lambda url: seen.append(url) or True)
    monkeypatch.chdir(tmp_path)
    assert main(["play"]) == 0
    assert seen == [(tmp_path / "results" / "playground.html").as_uri()]
    assert "playground: results/playground.html" in capsys.readouterr().out
    assert '"report":false' in (tmp_path / "results" / "playground.html").read_text()
    (tmp_path / "results" / "report.html").write_text("")
    assert main(["play", "--no-open"]) == 0
    assert len(seen) == 1
    assert '"report":true' in (tmp_path / "results" / "playground.html").read_text()


def test_play_says_so_where_there_is_no_browser(models, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(play, "kept", lambda lab: models)
    monkeypatch.setattr(play.webbrowser, "open", lambda url: False)
    assert main(["play", "--out", str(tmp_path)]) == 0
    assert "No browser could be opened" in capsys.readouterr().out


def test_reproduce_writes_it_beside_the_report(models, tmp_path, monkeypatch, capsys):
    entry = Entry("mine.own", "figure", "Mine", "ours", lambda lab: Outcome("a", "b", "c"), module=__name__)
    monkeypatch.setattr(reproduce, "chosen_entries", lambda ids: [entry])
    monkeypatch.setattr(reproduce, "all_entries", lambda: {"mine.own": entry})
    monkeypatch.setattr(outcomes, "_version", lambda entry: "1")
    asked = []
    monkeypatch.setattr(play, "trained", lambda lab: asked.append(lab.base_seed) or models)
    monkeypatch.setattr(reproduce, "kept", lambda lab: None)
    part, whole, found = (tmp_path / name for name in ("part", "whole", "found"))
    assert main(["reproduce", "mine.own", "--out", str(part)]) == 0
    assert not (part / "playground.html").exists()
    assert "playground.html" not in (part / "report.html").read_text()
    assert asked == []
    capsys.readouterr()
    assert main(["reproduce", "--out", str(whole), "--seed", "3"]) == 0
    assert asked == [3]
    assert f"playground: {whole / 'playground.html'}" in capsys.readouterr().out
    assert 'href="playground.html"' in (whole / "report.html").read_text()
    assert '"report":true' in (whole / "playground.html").read_text()
    monkeypatch.setattr(reproduce, "kept", lambda lab: models)
    assert main(["reproduce", "mine.own", "--out", str(found)]) == 0
    assert asked == [3]
    assert (found / "playground.html").exists()


@pytest.mark.parametrize(("arguments", "said"), [(["--seed", "-1"], "seed must be in [0, 1048576), got -1"),
                                                 (["--out", "/proc/none"], "out must be a folder"),
                                                 (["--port", "80"], "unrecognized arguments: --port 80")])
def test_play_refuses_nonsense(arguments, said, capsys):
    assert main(["play", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
