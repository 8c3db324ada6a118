"""Regression with outliers on the playground: models and estimators are Python's, every control does what it says."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from exhibited import as_columns, ask, close, in_python
from visitor import go, turn

from iclab import replace
from iclab.papers.beyond.regression_outliers import PROMPTS
from iclab.probes.regressors import clean_step_rate, descent_predictor, huber_predictor, ridge_predictor
from iclab.report.playground.exhibits import REGRESSION_STEPS, at_step, exhibits

MANY = 100
FIRST = next(i for i, exhibit in enumerate(exhibits()) if exhibit.name == "regression_mamba")
ESTIMATORS = (ridge_predictor, huber_predictor,
              lambda prompts: descent_predictor(clean_step_rate(prompts), sees="clean"),
              lambda prompts: ridge_predictor(prompts, sees="clean"))


def compare_regressors(page, number, trained, params, at, prompts):
    """The page's outputs and gates of a model of regression prompts against Python's."""
    drawn = jax.tree.map(np.asarray, prompts.sample(number, MANY))
    expected, seen = in_python(trained.run.model, params, drawn)
    read = ask(page, """(number, at, width, prompts) => prompts.map(values => { const { output, layers } =
            iclab.read(iclab.regressors[number], at, { width, count: values.length / width,
                values: new Float64Array(values) });
            return [output, layers.map(layer => [...layer.scores]),
                layers.map(layer => [...(layer.gates ?? [])])]; })""",
               number, at, *as_columns(trained.run, drawn))
    outputs, scores, gates = zip(*read, strict=True)
    close(outputs, expected)
    close(scores, seen.scores)
    if hasattr(seen, "gates"):
        close(gates, seen.gates)
    assert np.std(expected) > 0.01


def compare_estimators(page, trained, prompts):
    """The page's estimators against Python's."""
    drawn = jax.tree.map(np.asarray, prompts.sample(7, MANY))
    width, columns = as_columns(trained.run, drawn)
    now = {"length": prompts.prompt_length, "fraction": float(prompts.outlier_fraction)}
    found = ask(page, """(width, prompts, clean, now) => prompts.map((values, i) => iclab.estimators.map(one =>
            one.answer({ width, count: values.length / width, values: new Float64Array(values) },
                new Uint8Array(clean[i]), now)))""",
                width, columns, (~drawn.truth.outlier[:, :-1]).astype(int).tolist(), now)
    close(found, np.transpose([make(prompts)(drawn) for make in ESTIMATORS]))


def test_regression_models_equal_python(page, models):
    for number in (0, 1):
        for step in (REGRESSION_STEPS[-1], 0):
            trained = models[FIRST + number]
            compare_regressors(page, number, trained, at_step(trained, step), REGRESSION_STEPS.index(step),
                               replace(PROMPTS, label_rule="flip", outlier_scale=1.3, prompt_length=25))


@pytest.mark.parametrize("changes", [{"outlier_fraction": 0.0}, {"label_rule": "flip", "outlier_fraction": 0.9,
                                                                     "prompt_length": 12}])
def test_estimators_equal_python(page, models, changes):
    compare_estimators(page, models[FIRST], replace(PROMPTS, **changes))


def numbers(page):
    return page.evaluate("""(() => { const { prompt, poisoning, readings, estimates } = iclab.numbers;
        return { prompt, poisoning, answers: [...readings.map(({ output }) => output), ...estimates] }; })()""")


def test_a_prompt_of_the_page_is_a_regression_prompt(page):
    xs, labels, tasks = [], [], 0
    for seed in range(1, 9):
        go(page, f"#regression?seed={seed}&rule=flip&length=60")
        prompt = numbers(page)["prompt"]
        x = np.array([one["signal"] for one in prompt["examples"]])
        exact = np.array([one["exact"] for one in prompt["examples"]])
        w, *_ = np.linalg.lstsq(x, exact, rcond=None)
        np.testing.assert_allclose(x @ w, exact, atol=1e-9)
        assert prompt["query"]["exact"] == pytest.approx(np.array(prompt["query"]["signal"]) @ w)
        for one in prompt["examples"]:
            assert one["label"] == (-one["clean"] if one["outlier"] else one["clean"])
        xs.append(x)
        labels += [one["clean"] - one["exact"] for one in prompt["examples"]]
        tasks += np.sum(w**2)
    assert np.std(labels) == pytest.approx(PROMPTS.noise, rel=0.2)
    assert np.std(np.concatenate(xs)) == pytest.approx(1.0, rel=0.1)
    assert 0.3 < tasks / 8 < 2


def test_what_the_models_read_is_the_prompt(page, models):
    """Answers on the page are those of Python's models for the numbers that the page shows."""
    go(page, "#regression?scale=1.5&size=4&fraction=0.6&poisoned=02&cleaned=1")
    seen = numbers(page)
    examples = [*seen["prompt"]["examples"], seen["prompt"]["query"]]
    x = np.zeros((1, 41, 8))
    for i, one in enumerate(examples):
        x[0, i, :5], x[0, i, 5] = one["signal"], 1
        if one["outlier"]:
            x[0, i, 6 + one["direction"]] = 1.5
            assert abs(one["label"]) == 4
    y = np.array([[one["label"] for one in examples[:-1]] + [0.0]])
    assert [examples[i]["outlier"] for i in (0, 1, 2)] == [True, False, True]
    drawn = jax.tree.map(np.asarray, PROMPTS.sample(0, 1))
    output, _ = in_python(models[FIRST].run.model, models[FIRST].params, drawn._replace(x=x, y=y))
    close(seen["answers"][0], output[0])
    shown = page.locator("[data-output]").evaluate_all("all => all.map(one => Number(one.dataset.output))")
    assert shown == pytest.approx(seen["answers"])


def poisoned(page):
    return [one["id"] for one in numbers(page)["prompt"]["examples"] if one["outlier"]]


def test_clicks_and_keys_poison(page):
    go(page, "#regression?fraction=0")
    assert poisoned(page) == []
    before = numbers(page)["answers"]
    page.locator(".measures .token").nth(3).click()
    assert poisoned(page) == [3]
    assert numbers(page)["answers"][5] != before[5]  # ridge on the clean ones loses an example
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.activeElement.dataset.id === '4'")
    page.keyboard.press("Enter")
    assert poisoned(page) == [3, 4]
    assert "Example 5 of 40" in page.locator(".summary").text_content()
    page.wait_for_function("() => location.hash === '#regression?fraction=0&poisoned=34'")
    dot = page.locator("[data-scatter=regression_linear] g").nth(20)
    box = dot.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert len(poisoned(page)) == 3
    page.get_by_role("button", name="Undo my changes").click()
    assert poisoned(page) == []


def test_sliders_of_the_regression(page):
    go(page, "#regression")
    few = poisoned(page)
    turn(page, "fraction", 0.8)
    assert set(few) < set(poisoned(page))
    turn(page, "size", 6)
    assert {abs(one["label"]) for one in numbers(page)["prompt"]["examples"] if one["outlier"]} == {6}
    turn(page, "rule", "target")
    assert {one["label"] for one in numbers(page)["prompt"]["examples"] if one["outlier"]} == {1}
    turn(page, "placement", "close")
    marks = [one["outlier"] for one in numbers(page)["prompt"]["examples"]]
    assert marks == sorted(marks)
    turn(page, "length", 50)
    assert page.locator(".measures .token:not(.query)").count() == 50
    last = numbers(page)["answers"]
    turn(page, "trained", 0)
    assert numbers(page)["answers"][:2] != pytest.approx(last[:2], abs=1e-6)
    assert numbers(page)["answers"][2:] == last[2:]
