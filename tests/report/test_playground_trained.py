"""The playground as `iclab play` makes it, its models really trained: what its words promise is what happens."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from browser import opened
from exhibited import compare_chain, compare_gated, compare_softmax
from test_playground_regression import ESTIMATORS
from visitor import go

from iclab import clamp, intervene, measure_error, replace
from iclab.cli import main
from iclab.lab.laboratory import Lab
from iclab.papers.beyond.regression_outliers import PROMPTS
from iclab.papers.cot.settings import default_test
from iclab.papers.icl.settings import in_domain, out_of_domain
from iclab.papers.mamba.settings import attacked_prompts
from iclab.probes import model_errors
from iclab.probes.chains import chain_errors
from iclab.probes.pruning import prune
from iclab.prompts.transitions import circulant, one_rival
from iclab.report.playground.exhibits import GATED_STEPS, RATES, exhibits, kept
from iclab.sweeps.store import Store

pytestmark = pytest.mark.slow
MANY = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("play")
    assert main(["play", "--no-open", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def models(folder):
    trained = kept(Lab(Store(folder / "store")))
    assert trained is not None
    assert all(model.status == "trained" for model in trained)
    return dict(zip([exhibit.name for exhibit in exhibits()], trained, strict=True))


@pytest.fixture(scope="module")
def page(browser, folder):
    with opened(browser, folder / "playground.html") as opened_page:
        yield opened_page
        assert opened_page.complaints == []


def errors(page, link, count):
    """Follow a link; error rates by name over so many random prompts of the page."""
    go(page, link)
    page.wait_for_function("""count => { const shown = [...document.querySelectorAll('[data-error]')];
        return shown.length > 0 && shown.every(one => Number(one.dataset.prompts) >= count); }""", arg=count)
    return page.evaluate("""() => Object.fromEntries([...document.querySelectorAll('[data-error]')].map(
        one => [one.dataset.error, Number(one.dataset.mean)]))""")


def alike(actual, expected, count, other):
    """Two rates over so many prompts each differ by no more than four standard deviations."""
    mean = (actual * count + expected * other) / (count + other)
    deviation = np.sqrt(mean * (1 - mean) * (1 / count + 1 / other))
    assert abs(actual - expected) <= 4 * deviation + 2 / count, (actual, expected, deviation)


def test_the_page_is_small_and_found_again(folder, models):
    text = (folder / "playground.html").read_text()
    assert len(text.encode()) < 1_500_000
    runs = re.findall(r'"run":"([0-9a-f]{24})"', text)
    assert set(runs) <= Store(folder / "store").trained_ids()
    assert main(["play", "--no-open", "--out", str(folder)]) == 0
    data = [json.loads(re.search(r'id="exhibits">(.*?)</script>', part, re.DOTALL)[1])
            for part in (text, (folder / "playground.html").read_text())]
    assert data[0] == data[1]


def test_outputs_scores_and_gates_equal_python(page, models):
    for number, name in enumerate(RATES):
        for step in (GATED_STEPS[-1], GATED_STEPS[1], 0):
            compare_gated(page, number, models[name], step, MANY)
    compare_gated(page, 0, models["mamba"], GATED_STEPS[-1], MANY, precise=False)
    for number, name in enumerate(("softmax_usual", "softmax_small")):
        compare_softmax(page, number, models[name], exhibits()[7 + number].steps[-1], MANY)
    compare_chain(page, models["chain"], exhibits()[-1].steps[-1], MANY)


ATTACKS = {
    "#poison?fraction=0.6": attacked_prompts("flip", 0.6),
    "#poison?fraction=0.8": attacked_prompts("flip", 0.8),
    "#poison?fraction=0.7&rule=target&scale=1&placement=close": attacked_prompts("target", 0.7, 1.0, placement="close"),
    "#poison?fraction=0.8&rule=random&scale=1": attacked_prompts("random", 0.8, 1.0),
}


def test_errors_over_random_prompts_are_pythons(page, models):
    expected = model_errors([models[name] for name in RATES], list(ATTACKS.values()), count=4000,
                            seeds=[0] * len(RATES))
    for link, rates in zip(ATTACKS, expected.T, strict=True):
        page_errors = errors(page, link, 4000)
        for name, rate in zip(RATES, rates, strict=True):
            alike(page_errors[name], float(rate), 4000, 4000)


@pytest.mark.parametrize(("link", "name", "test", "cut"), [
    ("#softmax", "softmax_small", out_of_domain(0.6), None),
    ("#softmax?sum=0", "softmax_small", out_of_domain(0.6, 0.0), None),
    ("#softmax?domain=inside&decisive=0.3&start=usual", "softmax_usual",
     in_domain(0.3, irrelevant_scale=5.0), None),
    ("#softmax?pruned=0.75", "softmax_small", out_of_domain(0.6), ("large", 0.75)),
], ids=["outside", "sum", "inside", "pruned"])
def test_errors_of_the_softmax_transformer_are_pythons(page, models, link, name, test, cut):
    model = models[name] if cut is None else prune(models[name], cut[1], cut[0])
    expected = model_errors([model], [test], count=4000, seeds=[0])[0, 0]
    alike(errors(page, link, 4000)["softmax"], float(expected), 4000, 4000)


@pytest.mark.parametrize(("link", "value", "where"), [
    ("#poison?hold=examples", 1.0, "examples"), ("#poison?hold=poisoned&gate=0", 0.0, "poisoned"),
    ("#poison?hold=clean&gate=0.3", 0.3, "clean")])
def test_errors_with_gates_held_are_those_of_pythons_clamp(page, models, link, value, where):
    held = [intervene(models[name], clamp("gates", value, where=where)) for name in RATES]
    expected = model_errors(held, [attacked_prompts("flip", 0.6)], count=2000, seeds=[0] * len(RATES))[:, 0]
    page_errors = errors(page, link, 2000)
    for name, rate in zip(RATES, expected, strict=True):
        alike(page_errors[name], float(rate), 2000, 2000)


@pytest.mark.parametrize(("link", "changes"), [
    ("#regression", {}), ("#regression?fraction=0.6&rule=flip&scale=1&length=30",
                          {"outlier_fraction": 0.6, "label_rule": "flip", "outlier_scale": 1.0, "prompt_length": 30}),
    ("#regression?size=6&placement=close&scale=0.5",
     {"outlier_label": 6.0, "placement": "close", "outlier_scale": 0.5})])
def test_squared_errors_are_pythons(page, models, link, changes):
    test = replace(PROMPTS, **changes)
    page_errors = errors(page, link, 2000)
    for name, model in [(name, models[name]) for name in ("regression_mamba", "regression_linear")] + [
            (name, make(test)) for name, make in zip(("ridge", "huber", "step", "ridge_clean"), ESTIMATORS,
                                                     strict=True)]:
        expected = measure_error(model, test, count=20_000).error
        assert page_errors[name] == pytest.approx(expected, rel=0.2), name


@pytest.mark.parametrize(("link", "right", "pile"), [("#thought?length=16", 0.71, 0.91),
                                                     ("#thought?length=16&right=0.6&pile=0.2", 0.6, 0.2)])
def test_errors_of_chains_are_pythons(page, models, link, right, pile):
    steps = circulant([one_rival(10, right, (1 - right) * pile)] * 3)
    test = default_test(transitions=steps, prompt_length=16)
    expected = chain_errors([models["chain"]], [test], [16], count=2000)
    page_errors = errors(page, link, 2000)
    for name, rate in (("cot", expected.cot_answer), ("icl", expected.icl), ("vote", expected.vote_steps[..., -1]),
                       ("vote_icl", expected.vote_icl)):
        alike(page_errors[name], float(rate[0, 0, 0]), 2000, 2000)


def test_dragging_an_outlier_next_to_the_query_changes_mambas_answer(page):
    """The documented example: the preset "The gate opens", by mouse, as its words say."""
    page.locator("#tab-poison").click()
    page.get_by_role("button", name="The gate opens").click()
    answers = "() => iclab.readings.slice(0, 2).map(reading => reading.output * iclab.prompt.truth)"
    far = page.evaluate(answers)
    assert min(far) > 1
    start, end = (page.locator(".token").nth(i).bounding_box() for i in (0, 19))
    page.mouse.move(start["x"] + start["width"] / 2, start["y"] + 10)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + 10, steps=10)
    page.mouse.up()
    close = page.evaluate(answers)
    assert close[0] < -1
    assert close[1] == pytest.approx(far[1])
    assert "wrong" in page.locator("[data-model=mamba] .answer").inner_text()
    assert "right" in page.locator("[data-model=linear] .answer").inner_text()
    assert page.evaluate("iclab.readings[0].layers[0].gates[19]") > 0.5


def test_what_the_words_of_poison_say_is_so(page):
    def gates():
        return page.evaluate("""() => { const { gates } = iclab.readings[0].layers[0]; const sums = [0, 0];
            iclab.prompt.examples.forEach((example, i) => { sums[Number(example.outlier)] += gates[i]; });
            return sums[1] / (sums[0] + sums[1]); }""")

    def right():
        return page.evaluate("iclab.readings.slice(0, 2).map(reading => reading.output * iclab.prompt.truth > 0)")

    few = errors(page, "#poison?fraction=0.3", 1000)
    assert max(few.values()) < 0.1
    assert right() == [True, True]
    lies = errors(page, "#poison", 1000)
    assert lies["mamba"] < 0.01
    assert lies["linear"] > 0.7
    assert right() == [True, False]
    assert gates() < 0.05
    assert errors(page, "#poison?trained=0", 1000)["mamba"] > 0.4
    assert right() == [False, False]
    assert gates() > 0.3
    errors(page, "#poison?trained=4", 100)
    assert gates() < 0.15
    assert errors(page, "#poison?scale=1&direction=v3", 1000)["mamba"] > 0.1
    assert right() == [False, False]
    assert errors(page, "#poison?direction=v3", 1000)["mamba"] < 0.02
    far, close = (errors(page, f"#poison?scale=1&placement={place}", 1000)["mamba"] for place in ("far", "close"))
    assert far < 0.05 < 0.3 < close


def test_what_the_words_of_held_gates_say_is_so(page):
    opened_all = errors(page, "#poison?hold=examples", 1000)
    assert abs(opened_all["mamba"] - opened_all["linear"]) < 0.1
    assert right_and_wrong(page) == [False, False]
    assert errors(page, "#poison?hold=poisoned", 1000)["mamba"] > opened_all["mamba"] + 0.1
    assert max(errors(page, "#poison?hold=poisoned&gate=0", 1000).values()) < 0.02
    assert right_and_wrong(page) == [True, True]


def right_and_wrong(page):
    return page.evaluate("iclab.readings.slice(0, 2).map(reading => reading.output * iclab.prompt.truth > 0)")


def test_what_the_words_of_the_regression_say_is_so(page):
    def off():
        return page.evaluate("""(() => { const { prompt, readings } = iclab.numbers;
            return readings.map(({ output }) => Math.abs(output - prompt.query.clean)); })()""")

    def poison_arrives():
        return page.evaluate("""(() => { const { prompt, readings: [{ layers: [{ gates }] }] } = iclab.numbers;
            const sums = [0, 0]; prompt.examples.forEach(({ outlier }, i) => { sums[Number(outlier)] += gates[i]; });
            return sums[1] / (sums[0] + sums[1]); })()""")

    usual = errors(page, "#regression", 2000)
    assert off()[0] < 0.3 < 1 < off()[1]
    assert poison_arrives() < 0.02
    assert usual["ridge_clean"] < usual["regression_mamba"] < usual["regression_linear"] < usual["ridge"]
    turned = errors(page, "#regression?fraction=0.6&rule=flip", 2000)
    assert turned["regression_mamba"] < 0.6 < 1.09 < min(turned["regression_linear"], turned["ridge"])
    larger = errors(page, "#regression?size=9", 2000)
    assert larger["regression_mamba"] == pytest.approx(usual["regression_mamba"], rel=0.05)
    assert larger["regression_linear"] > 3 * usual["regression_linear"]
    clean = errors(page, "#regression?fraction=0", 2000)
    assert 2 * clean["ridge"] < clean["regression_linear"] < clean["regression_mamba"]
    assert errors(page, "#regression?scale=0.2", 2000)["regression_mamba"] > 1.5 * usual["regression_mamba"]
    assert poison_arrives() > 0.1
    assert errors(page, "#regression?trained=0", 2000)["regression_mamba"] > 2 * usual["regression_mamba"]
    gates = page.evaluate("[...iclab.numbers.readings[0].layers[0].gates].slice(0, 40)")
    assert sum(gates[-4:]) > 0.7 * sum(gates)


def test_order_parameters_move_as_the_words_say_and_as_predicted(page):
    curves = {curve["name"]: curve for curve in page.evaluate("iclab.exhibits.poison.order.curves")}
    score, outlier = curves["score, equal"], curves["w, outlier"]
    assert score["trained"][-1] > 1 > 0.1 > score["trained"][0]
    assert outlier["trained"][-1] < -1 < outlier["trained"][0]
    for curve in curves.values():
        np.testing.assert_allclose(curve["trained"], curve["predicted"], atol=0.25)


def test_what_the_words_of_the_chains_say_is_so(page):
    for link, cot, icl in (("#thought?right=1", 0.01, 0.01), ("#thought?right=0.7&pile=0.12", 0.1, 0.2)):
        page_errors = errors(page, link, 500)
        assert page_errors["cot"] < cot
        assert page_errors["icl"] < icl
    piled = errors(page, "#thought", 1000)
    assert piled["cot"] < 0.15
    assert piled["icl"] > 0.5
    shown = page.evaluate("""() => { const { steps, direct, voted, prompt } = iclab.thoughts;
        return [steps[2].answer, direct.answer, voted.direct].map(answer => answer === prompt.truth[3]); }""")
    assert shown == [True, False, False]
    few = [errors(page, f"#thought?right=1&matching=0.15&length=20&trained={at}", 500)["cot"] for at in (0, 7)]
    assert few[1] < 0.1 < 0.5 < few[0]


def test_what_the_words_of_the_softmax_transformer_say_is_so(page):
    def hinge():
        return float(page.locator("[data-hinge]").get_attribute("data-hinge"))

    usual = errors(page, "#softmax", 1000)["softmax"], hinge()
    assert usual[0] < 0.02
    assert errors(page, "#softmax?sum=0", 2000)["softmax"] > 0.05
    by_query = [float(text.split()[1]) for text in page.locator("[data-query]").all_inner_texts()]
    assert max(by_query[0], by_query[2]) < 3 < 15 < by_query[1]
    on_others = page.evaluate("""() => { const { prompt, attention } = iclab.mixed;
        return prompt.examples.reduce((sum, example, i) => sum + (example.pattern === 0 ? attention[i] : 0), 0); }""")
    assert on_others > 0.3
    assert errors(page, "#softmax?domain=inside", 1000)["softmax"] < 0.01
    assert errors(page, "#softmax?pruned=0.75&order=small", 1000)["softmax"] < 0.05
    assert hinge() > usual[1] + 0.1
    assert errors(page, "#softmax?pruned=0.75", 1000)["softmax"] > 0.2
    assert errors(page, "#softmax?pruned=0.1", 1000)["softmax"] < 0.02
    assert hinge() > usual[1] + 0.05
