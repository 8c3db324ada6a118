"""A page of the user's own models: it runs what Python trained, on prompts like theirs, or says why it cannot."""

from __future__ import annotations

import json
import re

import jax
import numpy as np
import pytest
from browser import opened
from exhibited import as_columns, ask, close, compare_thoughts, in_python, random_run
from test_playground_held import compare_held
from test_playground_regression import compare_estimators, compare_regressors
from visitor import go, outputs, strip, tokens, turn

import iclab
from iclab import (
    GPT2,
    Chain,
    ChainAttention,
    ChainEmbedding,
    Classification,
    GatedAttention,
    LabelEmbedding,
    Regression,
    Run,
    SoftmaxMLP,
    SpecError,
    Trained,
    Training,
    from_labelled,
    measure_error,
    replace,
    save_checkpoint,
)
from iclab.cli import main
from iclab.commands import play
from iclab.models.gates import MEMBERS
from iclab.probes.reasoning import reason
from iclab.prompts import chain_test
from iclab.report.playground import own

TURNED = Classification(dimension=16, relevant_patterns=5, irrelevant_patterns=4, outlier_patterns=2, prompt_length=12,
                        noise_norm=0.3, coefficient_high=1.5, decisive_fraction=0.8, outlier_fraction=0.4,
                        tasks="cyclic:2", rotation_seed=3)
CHAINS = Chain(dimension=12, patterns=6, reasoning_steps=2, prompt_length=5, noise_norm=0.2)
NUMBERS = Regression(dimension=7, prompt_length=12, noise=0.2, nonzero=2, pool=5, mirrored=True, outlier_patterns=1,
                     outlier_fraction=0.3)
SQUARED = Training(loss="squared")
MANY = 50


def gated(**fields):
    return Run(model=GatedAttention(**fields), prompts=TURNED)


RUNS = {
    "three layers": gated(layers=3),
    "gate per channel": gated(layers=3, gate_per_channel=True, embedding=LabelEmbedding(size=2, norm=1.5)),
    "softmax": Run(model=SoftmaxMLP(neurons=15, embedding=LabelEmbedding(size=3, norm=2.0)),
                   prompts=replace(TURNED, outlier_fraction=0.1)),
    "chain": Run(model=ChainAttention(embedding=ChainEmbedding(steps=2, norm=2.0), key_positions=False, init_scale=0.3),
                 prompts=CHAINS, training=SQUARED),
    "gated chain": Run(model=GatedAttention(layers=2, embedding=ChainEmbedding(steps=2)), prompts=CHAINS,
                       training=SQUARED),
    "regression": Run(model=GatedAttention(member="mamba2", layers=2, normalise=True), prompts=NUMBERS,
                      training=SQUARED),
    "softmax regression": Run(model=SoftmaxMLP(neurons=12, embedding=LabelEmbedding(norm=2.0)), prompts=NUMBERS,
                              training=SQUARED),
}
LABELLED = list(RUNS)[:3]


@pytest.fixture(scope="module")
def mine():
    return {name: random_run(run, seed) for seed, (name, run) in enumerate(RUNS.items())}


@pytest.fixture(scope="module")
def file(mine, tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "own.html"
    iclab.playground(mine).save(path)
    return path


@pytest.fixture(scope="module")
def board(browser, file):
    with opened(browser, file) as page:
        yield page
        assert page.complaints == []


def data_of(page):
    return json.loads(re.search(r'id="exhibits">(.*?)</script>', page.html, re.DOTALL)[1])


def compare_labelled(page, number, trained, prompts=TURNED):
    """Output, and scores and gates of every layer, against Python's."""
    drawn = jax.tree.map(np.asarray, prompts.sample(number, MANY))
    expected, seen = in_python(trained.run.model, trained.params, drawn)
    read = ask(page, """(number, width, prompts) => prompts.map(values => {
            const { output, layers } = iclab.read(iclab.models[number], 0,
                { width, count: values.length / width, values: new Float64Array(values) });
            return [output, layers.map(layer => [...layer.scores]), layers.map(layer => [...(layer.gates ?? [])]),
                layers.flatMap(layer => [...layer.votes])]; })""", number, *as_columns(trained.run, drawn))
    found, scores, gates, votes = zip(*read, strict=True)
    close(found, expected)
    close(scores, seen.scores)
    if hasattr(seen, "gates"):
        close(gates, seen.gates)
    close(np.sum(votes, axis=1), found)
    assert np.std(expected) > 0.01


# --- agreement with Python -------------------------------------------------------------------------------------------

@pytest.mark.slow
def test_own_models_equal_python(board, mine):
    for number, name in enumerate(LABELLED):
        compare_labelled(board, number, mine[name])


@pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_own_gates_can_be_held_in_every_layer(board, mine, number):
    go(board, "#poison")
    name = LABELLED[number]
    compare_held(board, number, mine[name], mine[name].params, 0, TURNED)


def test_own_regression_models_equal_python(board, mine):
    go(board, "#regression")
    for number, name in enumerate(("regression", "softmax regression")):
        compare_regressors(board, number, mine[name], mine[name].params, 0, NUMBERS)
    compare_estimators(board, mine["regression"], NUMBERS)
    assert "5 tasks of either sign" in board.locator(".intro").inner_text()
    tasks = np.vstack([NUMBERS.pool_weights()])[:, :6]
    for seed in range(3):
        go(board, f"#regression?seed={seed}")
        examples = board.evaluate("iclab.numbers.prompt.examples")
        exact = tasks @ np.array([one["signal"] for one in examples]).T
        assert np.abs(exact - [one["exact"] for one in examples]).max(axis=1).min() < 1e-5


@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_own_chain_models_equal_python(board, mine, number):
    go(board, f"#thought?model={number}")
    trained, test = mine[list(RUNS)[2 + number]], replace(CHAINS, partly_solved=False)
    drawn = jax.tree.map(np.asarray, test.sample(1, MANY))
    expected, seen = in_python(trained.run.model, trained.params, drawn)
    weights = seen.scores[:, -1] * (seen.gates[:, -1] if number == 2 else 1.0)
    read = ask(board, """prompts => prompts.map(({ x, y, step, query }) => {
            const context = { count: step.length, x: new Float64Array(x), y: new Float64Array(y), step };
            const { steps: [first] } = iclab.thoughtsOn(
                { ...iclab.reasoner, layers: iclab.reasoner.weights[0] }, context, query);
            return [[...first.attention], [...first.output]]; })""",
               [{"x": x[:-1].ravel().tolist(), "y": y[:-1].ravel().tolist(), "step": step[:-1].tolist(),
                 "query": int(chain[0])}
                for x, y, step, chain in zip(drawn.x, drawn.y, drawn.step, drawn.truth.chain, strict=True)])
    close([one[0] for one in read], weights[:, :-1])
    close([one[1] for one in read], expected)


@pytest.mark.slow
def test_every_member_and_form_equals_python(browser, tmp_path):
    straight = Classification(dimension=12, relevant_patterns=4, irrelevant_patterns=3, outlier_patterns=2,
                              prompt_length=8, outlier_fraction=0.3)
    runs = [Run(model=GatedAttention(member=member, layers=layers, gate_per_channel=channels, form=form,
                                     retention=0.8, temperature=4.0, normalise=form == "sum"), prompts=straight)
            for member in MEMBERS for layers, channels, form in ((1, False, "sum"), (3, False, "recurrence"),
                                                                 (3, True, "chunked"), (2, True, "sum"))]
    runs.append(Run(model=GatedAttention(member="linear", layers=3, causal=False, normalise=True), prompts=straight))
    models = [random_run(run, seed, 0.05) for seed, run in enumerate(runs)]
    iclab.playground(models).save(tmp_path / "all.html")
    with opened(browser, tmp_path / "all.html") as page:
        for number, trained in enumerate(models):
            compare_labelled(page, number, trained, straight)
        assert page.complaints == []


@pytest.mark.slow
def test_own_chains_of_thought_equal_python(board, mine):
    test = chain_test(replace(CHAINS, dimension=12), patterns=6, pattern_mixtures=None, prompt_length=6)
    go(board, "#thought?model=1")
    chain = mine["chain"]
    compare_thoughts(board, chain.run.model, chain.params, 0, test, 100)
    go(board, "#thought?model=2")
    trained = mine["gated chain"]
    drawn = jax.tree.map(np.asarray, test.sample(3, 100))
    vectors = np.asarray(test.pattern_vectors())
    read = ask(board, """prompts => prompts.map(({ x, y, step, query }) => {
            const context = { count: step.length, x: new Float64Array(x), y: new Float64Array(y), step };
            const { steps, direct } = iclab.thoughtsOn(
                { ...iclab.reasoner, layers: iclab.reasoner.weights[0] }, context, query);
            return [...steps, direct].map(one => one.answer); })""",
               [{"x": x[:-1].ravel().tolist(), "y": y[:-1].ravel().tolist(), "step": step[:-1].tolist(),
                 "query": int(chain[0])}
                for x, y, step, chain in zip(drawn.x, drawn.y, drawn.step, drawn.truth.chain, strict=True)])
    answers = np.column_stack([reason(trained, drawn, vectors), reason(trained, drawn, vectors, direct=True)])
    assert (np.array(read) == answers).mean() > 0.99  # Python reasons in single precision, so a tie may break anew


@pytest.mark.slow
@pytest.mark.parametrize(("link", "changes"), [
    ("#poison", {}), ("#poison?fraction=0.7&rule=flip&scale=4&placement=far",
                      {"outlier_fraction": 0.7, "label_rule": "flip", "outlier_scale": 4.0, "placement": "far"}),
    ("#poison?tasks=unseen&decisive=0.5&irrelevantScale=2&length=6&rule=target",
     {"tasks": "unseen:2", "decisive_fraction": 0.5, "irrelevant_scale": 2.0, "prompt_length": 6,
      "label_rule": "target"})])
def test_errors_over_random_prompts_are_pythons_for_own_prompts(board, mine, link, changes):
    go(board, link)
    board.wait_for_function("""() => [...document.querySelectorAll('[data-error]')].every(
        one => Number(one.dataset.prompts) === 4000)""")
    for number, name in enumerate(LABELLED):
        found = float(board.locator(f"[data-error=m{number}]").get_attribute("data-mean"))
        expected = measure_error(mine[name], replace(TURNED, **changes), count=20_000).error
        assert abs(found - expected) < 4 * np.sqrt(0.25 * (1 / 4000 + 1 / 20_000)), (name, found, expected)


# --- what the page shows ---------------------------------------------------------------------------------------------

def test_a_prompt_of_the_page_has_the_users_structure(board):
    go(board, "#poison?fraction=0.5&rule=flip&scale=4&direction=v2&seed=3")
    prompt, values = board.evaluate("[iclab.prompt, [...iclab.columns.values]]")
    columns = np.array(values).reshape(13, 17)
    basis = np.concatenate([TURNED.patterns() / 3.0, TURNED.outliers()])
    pairs = set()
    for token, column in zip([*prompt["examples"], prompt["query"]], columns, strict=True):
        along = basis @ column[:16]
        assert 1.0 <= token["lambda"] <= 1.5
        expected = np.zeros(7)
        expected[token["pattern"]] = 3.0 * token["lambda"]
        if token["outlier"]:
            expected[6] = 4.0
            assert token["label"] == -token["clean"]
        assert np.linalg.norm(along - expected) <= 0.3 + 1e-6  # the noise
        assert column[16] == token["label"]
        pairs.add(token["pattern"])
    a, b = (prompt["query"]["pattern"], prompt["partner"])[::int(prompt["truth"])]
    assert (b - a) % 5 in (1, 2)  # cyclic:2
    assert len(pairs) > 2


def test_bars_and_answers_are_those_of_the_layer_and_the_models(board, mine):
    go(board, "#poison?seed=4&layer=2")
    readings, truth = board.evaluate("""[iclab.readings.map(({ output, layers }) => [output, layers.map(layer =>
        [...layer.votes])]), iclab.prompt.truth]""")
    close(outputs(board), [output for output, _ in readings])
    votes = np.abs(readings[0][1][1])
    np.testing.assert_allclose(strip(board, "m0", "vote"), votes / votes.max(), atol=4e-4)
    added = board.locator("[data-model=m0] [data-layers]").inner_text().replace("\u2212", "-").split()[2:]
    close([float(text) for text in added], np.round([truth * np.sum(layer) for layer in readings[0][1]], 2), 600)
    board.get_by_role("button", name="Layer 1").click()
    votes = np.abs(readings[0][1][0])
    np.testing.assert_allclose(strip(board, "m0", "vote"), votes / votes.max(), atol=4e-4)
    assert board.locator("[data-model=m2] .names").inner_text().split() == ["share", "vote"]


def test_the_page_begins_as_in_training_and_says_how_models_differ(board):
    go(board, "#poison")
    assert board.evaluate("location.hash") == "#poison"
    assert board.locator("[data-field=fraction]").input_value() == "0.4"
    assert board.locator("[data-field=rule]").input_value() == "random"
    assert len(tokens(board)) == 12
    assert "turned at random (seed 3)" in board.locator(".intro").inner_text()
    assert board.locator("[data-model=m1] .note").inner_text() \
        == "3 layers; a gate per channel; size 2; norm 1.5; trained with outlier_fraction 0.4"
    assert board.locator("[data-model=m2] .note").inner_text() == "trained with outlier_fraction 0.1"
    turn(board, "tasks", "unseen")
    prompt = board.evaluate("iclab.prompt")
    a, b = (prompt["query"]["pattern"], prompt["partner"])[::int(prompt["truth"])]
    assert (b - a) % 5 in (3, 4)


@pytest.mark.parametrize("tab", ["poison", "regression", "thought"])
def test_an_own_page_fits_a_phone_and_is_accessible(board, tab):
    go(board, f"#{tab}")
    for width in (390, 860, 1280):
        board.set_viewport_size({"width": width, "height": 844})
        assert board.evaluate("document.documentElement.scrollWidth") <= width
        assert board.evaluate("""() => [...document.querySelectorAll('input, select')].filter(control =>
            control.labels.length !== 1 || control.getBoundingClientRect().width < 100).length""") == 0
        names = board.locator(".row h3").evaluate_all("names => names.map(name => name.getBoundingClientRect())")
        assert all(name["width"] > 120 and name["height"] < 190 for name in names), names


def test_prompts_without_outliers_have_no_poison(browser, tmp_path):
    clean = replace(TURNED, outlier_patterns=0, outlier_fraction=0.0, irrelevant_patterns=0, prompt_length=3)
    iclab.playground(random_run(Run(prompts=clean), 0)).save(tmp_path / "clean.html")
    with opened(browser, tmp_path / "clean.html") as page:
        assert page.locator("[data-field=fraction], [data-field=irrelevantScale]").count() == 0
        assert page.locator("[role=tab]").count() == 0
        before = tokens(page)
        page.locator(".token .shape").first.click()
        after = tokens(page)
        assert len(after) == 3
        assert not any(token[1] and not token[3] for token in after)
        assert before[0][2] != after[0][2]
        assert page.complaints == []


def test_regression_without_outliers_has_no_poison(browser, tmp_path):
    run = Run(model=GatedAttention(member="linear", normalise=True), prompts=Regression(dimension=4), training=SQUARED)
    iclab.playground(random_run(run, 0)).save(tmp_path / "clean.html")
    with opened(browser, tmp_path / "clean.html") as page:
        assert page.locator("[data-field]").count() == 1
        assert page.locator("[data-output]").count() == 3
        before = page.evaluate("JSON.stringify(iclab.numbers)")
        page.locator(".measures .token").nth(2).click()
        assert page.evaluate("JSON.stringify(iclab.numbers)") == before
        assert "poison" not in page.locator("main").inner_text()
        assert page.complaints == []


def test_a_notebook_shows_the_page_in_a_frame(browser, mine, tmp_path):
    shown = iclab.playground(mine)._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><title>a notebook</title>{shown}")
    with opened(browser, tmp_path / "notebook.html") as page:
        frame = page.frame_locator("iframe")
        token = frame.locator(".token").nth(2)
        before = token.get_attribute("aria-pressed")
        token.locator(".shape").click()
        assert token.get_attribute("aria-pressed") != before
        assert frame.get_by_role("button", name="Copy link").count() == 0
        page.wait_for_timeout(250)  # when a page of its own would change its address
        assert page.locator("iframe").bounding_box()["height"] > 900
        assert page.complaints == []


# --- names, files, refusals ------------------------------------------------------------------------------------------

def test_models_without_names_are_named_by_what_tells_them_apart(mine):
    few, linear = (random_run(run, 0) for run in (replace(RUNS["three layers"], prompts=replace(
        TURNED, outlier_fraction=0.2)), gated(member="linear")))
    assert iclab.playground([mine["three layers"], few, linear, linear]).models == (
        "Mamba, 3 layers, outlier_fraction 0.4", "Mamba, 3 layers, outlier_fraction 0.2", "linear Transformer (1)",
        "linear Transformer (2)")
    page = iclab.playground(mine["chain"])
    assert page.models == ("ChainAttention",)
    assert "html" not in repr(page)
    assert "poison" not in data_of(page)


def test_colours_are_different(mine):
    data = data_of(iclab.playground([mine["three layers"]] * 5))
    assert len({model["colour"] for model in data["poison"]["models"]}) == 5


def test_a_rule_of_ones_own_is_named(mine):
    def spite(clean, coin, x):
        return -clean

    run = replace(RUNS["three layers"], prompts=replace(TURNED, label_rule=spite))
    assert data_of(iclab.playground(random_run(run, 0)))["poison"]["prompts"]["own"]["rule"] == "spite"


class Mine(GatedAttention):
    """A user's model."""


def unread(run):
    """A run whose weights nobody looks at."""
    return Trained(run, {}, None, np.array([1]), np.zeros(1))


@pytest.mark.parametrize(("models", "message"), [
    (lambda mine: [], "models must hold at least one trained model"),
    (lambda mine: "a", "models must be a trained model, a list of them, or a dict from names to them, got 'str'"),
    (lambda mine: [mine["softmax"], 3], "models must be a trained model, a list of them, or a dict from names to them"),
    (lambda mine: {1: mine["softmax"]}, "names of models must be words, got 1"),
    (lambda mine: {"g": unread(Run(model=GPT2()))},
     "model 'g' must be a GatedAttention, SoftmaxMLP or ChainAttention to run in the page, got GPT2"),
    (lambda mine: {"u": unread(Run(model=Mine()))}, "ChainAttention to run in the page, got Mine"),
    (lambda mine: unread(Run(prompts=from_labelled(np.eye(6), [0, 0, 1, 1, 2, 2]))),
     "must be trained on Classification, Regression or Chain to run in the page, got ArrayPrompts"),
    (lambda mine: {"a": mine["softmax"], "b": unread(Run(prompts=replace(TURNED, dimension=20)))},
     "models must have the same prompts.dimension to read one prompt, got 16 for 'a' and 20 for 'b'"),
    (lambda mine: {"a": random_run(gated(), 0, np.nan)}, "model 'a' must have finite weights"),
])
def test_what_the_page_cannot_show_is_refused_in_one_line(mine, models, message):
    with pytest.raises(SpecError, match=re.escape(message)) as error:
        iclab.playground(models(mine))
    assert "\n" not in str(error.value)


def test_a_page_that_would_be_too_large_is_refused(mine, monkeypatch):
    monkeypatch.setattr(own, "LARGEST_PAGE", 2**15)
    with pytest.raises(SpecError, match=r"fit into a page of 32 KiB, got .* of which 'gated chain' takes"):
        iclab.playground(mine)


def test_play_shows_checkpoints_under_the_names_of_their_files(mine, tmp_path, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(play.webbrowser, "open", lambda url: seen.append(url) or True)
    monkeypatch.chdir(tmp_path)
    for name in ("three layers", "softmax"):
        (tmp_path / name).mkdir()
        save_checkpoint(f"{name}/model.safetensors", mine[name])
    save_checkpoint("deep.safetensors", mine["three layers"])
    assert main(["play", "deep.safetensors", "softmax/model.safetensors"]) == 0
    assert seen == [(tmp_path / "results" / "my_models.html").as_uri()]
    text = (tmp_path / "results" / "my_models.html").read_text()
    assert '"name":"deep"' in text
    assert '"name":"model"' in text
    assert main(["play", "softmax/model.safetensors", "three layers/model.safetensors", "--no-open"]) == 0
    assert '"name":"three layers/model.safetensors"' in (tmp_path / "results" / "my_models.html").read_text()
    assert not (tmp_path / "results" / "store").exists()
    capsys.readouterr()
    for arguments, message in ((["none.safetensors"], "checkpoint must be an existing file, got 'none.safetensors'"),
                               (["deep.safetensors"] * 2, "checkpoints must be different files"),
                               (["deep.safetensors", "--seed", "1"], "seed must not be given with checkpoints, got 1"),
                               (["deep.safetensors", "--store", "s"], "store must not be given with checkpoints")):
        assert main(["play", *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
