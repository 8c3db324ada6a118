"""The softmax Transformer on the playground: every control does what it says."""

from __future__ import annotations

import numpy as np
import pytest
from visitor import go, outputs, turn

from iclab.probes.pruning import kept_neurons, neuron_norms


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
        active = page.evaluate("[...iclab.mixed.kept]")
        assert sum(active) == 70
        if order != "random":
            assert (np.array(active) == kept_neurons(norms, 0.3, order)).all()
    turn(page, "pruned", 1)
    assert outputs(page)[0] == 0
    assert page.locator(".verdict .answer").inner_text().startswith("no answer ✗")
    page.wait_for_function("() => Number(document.querySelector('[data-error=softmax]').dataset.mean) === 1")
    assert float(page.locator("[data-hinge]").get_attribute("data-hinge")) == pytest.approx(1.0)


def test_the_floor_and_another_prompt(page):
    go(page, "#softmax?decisive=0.2&length=6")
    floor = page.locator(".verdict .reference").evaluate("line => parseFloat(line.style.left)")
    assert floor == pytest.approx(100 * 0.8**6 / 2, abs=0.01)
    before = page.evaluate("iclab.mixed.prompt.query.kappa")
    page.get_by_role("button", name="Another prompt").click()
    assert page.evaluate("iclab.mixed.prompt.query.kappa") != before


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
