"""Order parameters on the playground: the curves are those of the weights, and the mark follows the slider."""

from __future__ import annotations

import numpy as np
import pytest
from browser import opened
from visitor import go, turn

from iclab import population_dynamics, replace
from iclab.report.playground.exhibits import GATED_STEPS, at_step, exhibits
from iclab.report.playground.order_curves import order_curves, order_of, predicted_order
from iclab.report.playground.page import render
from iclab.training.order import pattern_weights


def test_curves_are_read_off_the_weights(models):
    exhibit, mamba = exhibits()[0], models[0]
    data = order_curves(exhibit, mamba, {})
    assert set(GATED_STEPS) <= set(data["steps"])
    for place, step in enumerate(data["steps"]):
        weights = pattern_weights(at_step(mamba, step), exhibit.run.prompts)
        scores = weights.scores[:6, :6]
        expected = {"score, equal": np.diag(scores).mean(), "score, pairs": scores[~np.eye(6, dtype=bool)].mean(),
                    "w, outlier": weights.w[16:19].mean()}
        shown = {curve["name"]: curve["trained"][place] for curve in data["curves"]}
        for name, value in expected.items():
            assert shown[name] == pytest.approx(value, abs=6e-4)
    assert data["curves"][0]["predicted"] == []


@pytest.mark.slow
def test_the_prediction_is_the_population_dynamics_with_its_start():
    run = exhibits()[0].run
    short = replace(run, training=replace(run.training, steps=8))
    found = predicted_order(short)
    expected = population_dynamics(short, order=order_of)
    assert found["score, equal"][0] == pytest.approx(run.model.init_scale**2)
    assert found["w, outlier"][0] == 0
    for name, values in expected.order.items():
        np.testing.assert_allclose(found[name][1:], values)
    assert len(found["score, equal"]) == 3


def test_the_mark_follows_the_training_slider(page, models):
    weights = [order_of(pattern_weights(at_step(models[0], step), models[0].run.prompts)) for step in GATED_STEPS]
    for at in (8, 3):
        go(page, "#poison")
        turn(page, "trained", at)
        for name in ("score, equal", "w, outlier"):
            shown = page.locator(f"[data-order='{name}']").inner_text().replace("\u2212", "-")
            assert float(shown) == pytest.approx(float(weights[at][name]), abs=0.006)
    assert page.locator(".order polyline.second[points='']").count() == 5  # this page has no prediction
    assert "Dashed" not in page.locator(".order").inner_text()


def test_a_prediction_is_drawn(browser, models, tmp_path):
    records = models[0].run.training.steps // models[0].run.training.record_every
    line = np.linspace(0.0, 1.0, records + 1).tolist()
    names = order_of(pattern_weights(at_step(models[0], 0), models[0].run.prompts))
    (tmp_path / "page.html").write_text(render(models, predicted=dict.fromkeys(names, line)))
    with opened(browser, tmp_path / "page.html") as page:
        points = page.locator(".order polyline.second").first.get_attribute("points").split()
        heights = [float(point.split(",")[1]) for point in points]
        assert len(points) == len(GATED_STEPS)
        assert heights == sorted(heights, reverse=True)
        assert "Dashed" in page.locator(".order").inner_text()
        assert page.complaints == []
