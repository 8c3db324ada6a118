"""The rules of the cot claims hold for trained models and fail for broken ones: untrained, keys without position code,
positions shuffled."""

from __future__ import annotations

from dataclasses import replace as with_fields

import jax
import numpy as np
import pytest

from iclab import SpecError, compare_reasoning, replace
from iclab.lab.claims import WORST_FIRST
from iclab.lab.entries import Lab, Size
from iclab.papers.cot import condition1, dynamics, examples, icl, iterations
from iclab.papers.cot.mechanism import along, inside
from iclab.papers.cot.settings import a_run, default_test
from iclab.papers.cot.trained import untrained
from iclab.prompts.transitions import quality, same_steps, weak_step
from iclab.sweeps.store import Store
from iclab.theory.cot import prediction, theorem2_conditions, theorem3_conditions
from iclab.training import train_many

STEPS = 200
BROKEN = ("untrained", "positions shuffled")
"""Keys without positions attend to other steps, which `cot.dynamics` sees; their answers suffer too little to fail."""


def worst(checks):
    return next(verdict for verdict in WORST_FIRST if verdict in [check.verdict for check in checks])


def failing(checks):
    return [check.name for check in checks if check.verdict == "fails"]


def shuffled(models):
    """The same models, with the keys of each step carrying the position code of the next."""
    def turned(params):
        W = np.array(params.W)
        W[-3:] = np.roll(W[-3:], 1, axis=0)
        return params._replace(W=W)

    return [with_fields(model, params=turned(model.params)) for model in models]


@pytest.fixture(scope="module")
def models():
    run = a_run(STEPS, record_every=5)
    blind = replace(run, model=replace(run.model, key_positions=False))
    trained = train_many([one.seeded(seed) for one in (run, blind) for seed in range(4)], probe=inside)
    good, bad = trained[:4], trained[4:]
    return {"trained": good, "untrained": untrained(good), "without positions": bad,
            "positions shuffled": shuffled(good)}


@pytest.fixture
def lab(models, tmp_path, monkeypatch):
    """`lab(kind)`: a laboratory whose models are of this kind."""
    monkeypatch.setitem(examples.AXES, "quick", {"alpha'": (0.4, 0.8), "tau": (0.3, 0.5)})
    for module in (examples, icl, condition1):
        monkeypatch.setattr(module, "models", lambda lab: models[lab.kind])
    monkeypatch.setattr(condition1, "LONG", (1, 256))
    short = (1, *examples.JUDGED)
    monkeypatch.setattr(examples, "LENGTHS", {"alpha'": short, "tau": short})
    monkeypatch.setattr(icl, "EXAMPLES", 32)
    for module in ("examples", "icl", "settings", "trained"):
        monkeypatch.setattr(f"iclab.papers.cot.{module}.SHORT", short)

    def of(kind, prompts=100):
        sizes = {"quick": Size(seeds=4, steps=STEPS, prompts=prompts)}
        monkeypatch.setattr("iclab.papers.cot.trained.SIZES", sizes)
        new_lab = Lab(Store(tmp_path / kind), "quick")
        new_lab.kind = kind
        return new_lab

    return of


def test_dynamics(models):
    def judged(kind, masses=None):
        rows = along(models[kind])
        return dynamics.checks(rows[:, -1] if masses is None else masses, dynamics.stages(models[kind]))

    assert worst(judged("trained")) == "holds"
    assert "attention on other steps" in failing(judged("without positions"))
    look = jax.jit(lambda params: inside(models["trained"][0].run, params)["mass"].mean(axis=0))
    for kind in BROKEN:
        masses = np.stack([np.asarray(look(model.params)) for model in models[kind]])
        assert {"attention on the same step and pattern", "attention on other steps"} <= set(
            failing(judged(kind, masses)))
    late = dynamics.Stages(np.full(4, 50.0) + np.arange(4), np.full(4, 40.0), np.zeros(4))
    assert failing(dynamics.checks(along(models["trained"])[:, -1], late)) == [
        "end of the first stage over end of the second"]


@pytest.mark.slow
def test_examples(lab):
    def judged(kind, prompts):
        kind_lab = lab(kind, prompts)
        return examples.checks(examples.measure(kind_lab), examples.at_default(kind_lab, examples.JUDGED))

    good = judged("trained", 500)
    assert worst(good) == "holds", [check for check in good if check.verdict != "holds"]
    blind = examples.at_default(lab("without positions", 100), (4, 8))
    assert (blind.cot - blind.vote).mean() > 0.01
    for kind in BROKEN:
        names = failing(judged(kind, 100))
        assert any("ideal vote" in name for name in names), kind
        assert any("share of settings" in name for name in names), kind


def test_icl(lab, monkeypatch):
    monkeypatch.setattr(icl, "NAMES", {"alpha'": "alpha'", "tau": "tau_o"})
    monkeypatch.setattr(icl, "FRACTIONS", (0.1, 0.8))
    monkeypatch.setitem(examples.AXES, "quick", {"alpha'": (0.6, 0.8), "tau": (0.4, 0.5)})
    good = lab("trained", 400)
    by_axis, few = examples.measure(good), icl.few_matching(good)
    assert worst(icl.checks(by_axis, few)) == "holds"
    assert any("untrained" in name for name in failing(icl.checks(by_axis, {**few, "trained": few["untrained"]})))


@pytest.mark.slow
def test_condition1(lab, monkeypatch):
    monkeypatch.setattr("iclab.papers.cot.trained.FEWER", 1.0)
    assert worst(condition1.checks(condition1.measure(lab("trained", 600)))) == "holds"
    for kind in BROKEN:
        assert any("CoT" in name for name in failing(condition1.checks(condition1.measure(lab(kind))))), kind


def test_the_text_for_settings_that_never_reach_the_target():
    assert "constant 0.60 is enough" in examples.enough({"tau": np.array([[0.5, 0.6]])})
    assert "1 of 2 settings and seeds never reached" in examples.enough({"tau": np.array([[np.nan, 0.6]])})


def test_columns_that_lead_back_get_less_attention(models):
    assert (condition1.weight_of_own(models["trained"]) < 0.9).all()
    np.testing.assert_allclose(condition1.weight_of_own(models["untrained"]), 1.0, atol=0.02)


def test_iterations(models):
    """The law passes; no dependence, or a loss that never falls, does not."""
    axes = iterations.AXES["full"]
    noise = 1 + 0.01 * np.random.default_rng(0).normal(size=(4, 1))
    powers = {"M": 1.0, "K": 0.3, "alpha": -1.0}
    counts = {axis: noise * np.array(axes[axis]) ** power for axis, power in powers.items()}
    lengths = noise / np.array(iterations.FRACTIONS["full"])
    assert worst(iterations.checks(counts, lengths, "full")) == "holds"
    for axis in axes:
        flat = {**counts, axis: noise * np.ones(len(axes[axis])) * (0.99 ** np.arange(len(axes[axis])))}
        assert any(f"exponent of {axis}" in name for name in failing(iterations.checks(flat, lengths, "full")))
    assert failing(iterations.checks(counts, noise * np.ones((4, 4)), "full")) == [
        "l_tr: exponent of alpha (theorem -1)"]
    assert all(model.loss[-1] < iterations.TARGET for model in models["trained"])
    stuck = [with_fields(model, loss=np.full_like(model.loss, model.loss[0])) for model in models["trained"]]
    never = {**counts, "M": np.array([[iterations.iterations_to(model, iterations.TARGET)] * 3 for model in stuck])}
    assert "share of runs whose loss falls to 0.05" in failing(iterations.checks(never, lengths, "full"))


def test_the_theorems_conditions_and_orders():
    run, test = a_run(10), default_test(prompt_length=20)
    conditions = {condition.name: condition for condition in theorem3_conditions(run, test)}
    assert [c.met for c in theorem2_conditions(run, test)] == [False, True, True, True]  # eta is 10, not below 1
    assert conditions["Condition 1: the most likely answer of an example is the right one"].met
    assert not theorem2_conditions(run, replace(test, prompt_length=21))[-1].met
    assert not theorem2_conditions(run, replace(test, noise_norm=0.8))[2].met
    orders, test_quality = prediction(test, 20), quality(test.transitions)
    assert orders.cot == pytest.approx((0.8 * 0.5 * 0.8) ** -2 * np.log(20))
    assert orders.icl == pytest.approx((0.8 * test_quality.tau_o * test_quality.rho_o) ** -2 * np.log(20))
    without = default_test(transitions=same_steps(0.4, 0.1, condition_one=False))
    assert prediction(without, 20).icl == np.inf
    assert prediction(without, 20).winner == "CoT"
    assert prediction(replace(test, transitions=None), 20).winner == "neither"


def test_compare_finds_the_winner_and_notes_what_the_theorems_ignore():
    """The first step is unreliable; the second maps its right outcome and the third likeliest to the same pattern, but
    not its rival, so the answer is more reliable than the step."""
    first = np.full((4, 4), 0.02)
    for i in range(4):
        first[i, (i + 1) % 4], first[i, (i + 2) % 4], first[i, (i + 3) % 4] = 0.40, 0.36, 0.22
    second = np.full((4, 4), 0.02)
    second[range(4), [2, 3, 2, 3]] = 0.94
    small = {"examples": 12, "prompts": 300, "models": 4, "training_steps": 150}
    comparison = compare_reasoning([first, second], **small)
    assert (comparison.prediction.winner, comparison.winner) == ("ICL", "ICL")
    assert comparison.icl.mean < comparison.cot_answer.mean
    # From patterns 0 and 2 the right answer is 3, from 1 and 3 it is 2: 3 stays, and 2 is reached from itself.
    assert any("training has no such step" in note for note in comparison.notes)
    with pytest.raises(SpecError, match="models must be at least 2"):
        compare_reasoning(weak_step(0.5, 0.8), models=1)
