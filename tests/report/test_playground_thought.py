"""Chains of thought on the playground: every control does what it says."""

from __future__ import annotations

import numpy as np
import pytest
from exhibited import close
from visitor import go, turn


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
        for outcome, right in zip(example["tokens"][1:], example["right"], strict=True):
            assert (order.index(outcome) - order.index(right)) % 10 in (0, 1)
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
    answers = page.evaluate("iclab.thoughts.steps.map(step => String.fromCharCode(65 + step.answer)).join('')")
    assert page.locator("[data-who=cot] td").first.inner_text().split("✓")[0].split("✗")[0].replace(
        "→", "").split()[1:] == list(answers)


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


def test_the_ideal_vote_is_drawn_beside_both(page):
    go(page, "#thought?right=0.6&pile=0.8&length=12")
    page.wait_for_function("() => Number(document.querySelector('[data-error=vote]').dataset.prompts) === 2000")
    for model, vote in (("cot", "vote"), ("icl", "vote_icl")):
        line = page.locator(f"[data-error={model}] .reference").evaluate("line => parseFloat(line.style.left)")
        mean = float(page.locator(f"[data-error={vote}]").get_attribute("data-mean"))
        assert line == pytest.approx(100 * mean, abs=0.01)
        assert 0 < mean < 1


def test_the_vote_counts_matching_examples(page):
    go(page, "#thought?right=0.6&pile=0.5&length=30")
    prompt, voted = page.evaluate("[iclab.thoughts.prompt, iclab.thoughts.voted]")
    current, answers = prompt["truth"][0], []
    for k in range(3):
        after = [example["tokens"][k + 1] for example in prompt["examples"] if example["tokens"][k] == current]
        current = min(range(10), key=lambda pattern: (-after.count(pattern), pattern))
        answers.append(current)
    assert voted["chain"] == answers
    ends = [example["tokens"][3] for example in prompt["examples"] if example["tokens"][0] == prompt["truth"][0]]
    assert voted["direct"] == min(range(10), key=lambda pattern: (-ends.count(pattern), pattern))
