"""The rules of the cot claims hold for trained models and fail for broken ones: untrained, keys without position code,
positions shuffled."""

from __future__ import annotations

from dataclasses import replace as with_fields
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from iclab import SpecError, compare_reasoning, replace
from iclab.lab.claims import judged, worst_verdict
from iclab.lab.entries import Size
from iclab.lab.estimates import power
from iclab.lab.judging import judge_part
from iclab.lab.laboratory import Lab
from iclab.papers.cot import condition1, dynamics, examples, icl, iterations, needs
from iclab.papers.cot.mechanism import along, inside
from iclab.papers.cot.settings import SIZES, a_run, covered_run, default_test
from iclab.papers.cot.trained import untrained
from iclab.prompts.transitions import quality, same_steps, weak_step
from iclab.sweeps.store import Store
from iclab.theory.cot import LOSS, iteration_terms, prediction, theorem2_conditions, theorem3_conditions
from iclab.training import train_many

STEPS, SEEDS = 200, 8
BROKEN = ("untrained", "positions shuffled")
"""Keys without positions attend to other steps, which `cot.dynamics` sees; their answers suffer too little to fail."""


def verdict(checks):
    return worst_verdict(judged(checks))


def failing(checks):
    return [check.name for check in judged(checks) if check.verdict == "fails"]


def part(entry, place):
    """The rule of a part."""
    return next(part for part in entry.parts if part.place == place).checks


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
    trained = train_many([one.seeded(seed) for one in (run, blind) for seed in range(SEEDS)], probe=inside)
    good, bad = trained[:SEEDS], trained[SEEDS:]
    return {"trained": good, "untrained": untrained(good), "without positions": bad,
            "positions shuffled": shuffled(good)}


@pytest.fixture
def lab(models, tmp_path, monkeypatch):
    """`lab(kind, prompts)`: a laboratory whose models are of this kind."""
    for module in (needs, icl, condition1):
        monkeypatch.setattr(module, "models", lambda lab: models[lab.kind])

    def of(kind, prompts=100, **axes):
        monkeypatch.setitem(SIZES, "tiny", Size(
            seeds=SEEDS, steps=STEPS, prompts=prompts, long_prompts=prompts, default_prompts=4 * prompts,
            short=(1, *examples.JUDGED), long=(1, condition1.FAR), faint=(0.4, 0.5, 0.6), faint_prompts=2 * prompts,
            axes=axes or {"alpha'": (0.4, 0.8), "tau": (0.3, 0.5)}))
        new_lab = Lab(Store(tmp_path / "store"), "tiny")
        new_lab.kind = kind
        return new_lab

    return of


def test_dynamics(models):
    def measured(kind, masses=None):
        rows = along(models[kind])
        last = rows[:, -1] if masses is None else masses
        return dynamics.Measured(last, ends := dynamics.stages(models[kind]), {0.8: last[:, :1]}, ends.early)

    good = measured("trained")
    assert [verdict(rule(good)) for rule in (dynamics.gathered, dynamics.gathered_everywhere, dynamics.free_of_alpha,
                                             dynamics.in_two_stages)] == ["holds"] * 4
    assert verdict(dynamics.apart(good.fast)) == "holds"
    assert "attention on other steps" in failing(dynamics.in_two_stages(measured("without positions")))
    look = jax.jit(lambda params: inside(models["trained"][0].run, params)["mass"].mean(axis=0))
    for kind in BROKEN:
        broken = measured(kind, np.stack([np.asarray(look(model.params)) for model in models[kind]]))
        assert failing(dynamics.gathered(broken)) == ["attention on the same step and pattern"]
        assert failing(dynamics.gathered_everywhere(broken)) == failing(dynamics.free_of_alpha(broken)) == [
            "attention on the same step and pattern, alpha' = 0.8, step 1"]
        assert {"attention on the same step and pattern", "attention on other steps"} <= set(
            failing(dynamics.in_two_stages(broken)))
    late = good.ends._replace(first=np.full(SEEDS, 50.0) + np.arange(SEEDS), second=np.full(SEEDS, 40.0))
    assert failing(dynamics.in_two_stages(good._replace(ends=late))) == [
        "end of the first stage over end of the second"]


def test_stages_side_by_side_are_not_two_stages():
    """Patterns are told apart from the beginning: the first rule passes, the new one does not."""
    steps = np.arange(5.0, 405.0, 5.0)
    kinds = [np.stack([1 - other - elsewhere, other, 0 * steps, elsewhere], axis=1) for other, elsewhere in (
        (0.3 * np.exp(-steps / (60 + seed)), 0.6 * np.exp(-steps / 20)) for seed in range(SEEDS))]
    models = [SimpleNamespace(probes={"mass": rows[:, None]}, steps=steps) for rows in kinds]
    ends = dynamics.stages(models)
    measured = dynamics.Measured(np.stack([rows[-1] for rows in kinds]), ends, {}, ends.early)
    assert failing(dynamics.apart(measured.fast)) == ["part of the rise of the pattern's share made in the first stage"]
    assert verdict(dynamics.ends_in_order(measured)) == "holds"
    assert failing(dynamics.in_two_stages(measured)) == [
        "other steps halve, over same step with another pattern begins to fall"]


def test_attention_elsewhere_must_not_grow_as_fewer_examples_match():
    """Longer training lowers it everywhere and passes no other exponent."""
    fractions, spread = (0.2, 0.4, 0.8), 1 + 0.01 * np.arange(SEEDS)[:, None]

    def measured(exponent, least):
        elsewhere = {fraction: least * spread * np.ones(3) * (fraction / 0.8)**exponent for fraction in fractions}
        return dynamics.Measured(np.zeros((SEEDS, 4)), None, {f: 1 - values for f, values in elsewhere.items()}, None)

    assert verdict(dynamics.free_of_alpha(measured(0.0, 0.03))) == "holds"
    for least in (0.05, 0.001):
        (name,) = failing(dynamics.free_of_alpha(measured(-1.0, least)))
        assert name.startswith("exponent of alpha'")
    assert "fails" in [verdict(dynamics.gathered_everywhere(measured(-1.0, 0.05)))]


@pytest.mark.slow
def test_examples(lab):
    def measured(kind, prompts):
        kind_lab = lab(kind, prompts)
        return examples.Measured(needs.measure(kind_lab, "cot"), needs.at_small_rho(kind_lab, "cot"),
                                 needs.at_default(kind_lab, examples.JUDGED), 4 * prompts)

    good = measured("trained", 500)
    for rule in examples.ENTRY.parts:
        assert verdict(rule.checks(good)) == "holds" or rule.place.startswith("small rho"), rule.place
    blind = needs.at_default(lab("without positions", 100), (4, 8))
    assert (blind.cot - blind.vote).mean() > 0.01
    for kind in BROKEN:
        broken = measured(kind, 100)
        assert any("ideal vote" in name for name in failing(examples.like_the_vote(broken))), kind
        for place in ("theorem 2", "figure 2", "small rho, the model"):
            assert any("share of seeds" in name for name in failing(part(examples.ENTRY, place)(broken))), kind


@pytest.mark.slow
def test_icl(lab, monkeypatch):
    monkeypatch.setattr(icl, "FRACTIONS", (0.1, 0.8))
    monkeypatch.setattr(icl, "EXAMPLES", 32)
    good = lab("trained", 400, **{"alpha'": (0.6, 0.8), "tau": (0.4, 0.5)})
    measured = icl.Measured(needs.measure(good, "icl"), needs.at_small_rho(good, "icl"), icl.few_matching(good), 400)
    assert list(measured.needs.x) == ["alpha'", "tau_o"]
    assert measured.faint.name == "rho_o"
    for rule in icl.ENTRY.parts:
        reached = verdict(rule.checks(measured))
        near = rule.place == "theorem 3 (b)" and reached == "inconclusive"  # the values of tau_o lie near each other
        assert reached == "holds" or near or rule.place.startswith("small rho_o"), rule.place
    few = {**measured.few, "trained": measured.few["untrained"]}
    assert any("untrained" in name for name in failing(icl.training_helps(measured._replace(few=few))))


@pytest.mark.slow
def test_condition1(lab):
    good = condition1.measure(lab("trained", 600))
    for rule in condition1.ENTRY.parts:
        assert verdict(rule.checks(good)) == ("fails" if rule.place.endswith("as the vote") else "holds"), rule.place
    direct = condition1.errs_for_good(good._replace(most=good.most._replace(icl=np.zeros_like(good.most.icl))))
    assert verdict(direct) == "fails"
    for kind in BROKEN:
        broken = condition1.measure(lab(kind))
        for rule in (condition1.chains_succeed, condition1.figure):
            assert any("CoT" in name for name in failing(rule(broken))), kind


def test_a_setting_outside_the_premises_says_nothing_about_the_theorem(models):
    """The step size is 10; theorem 1 takes one below 1, as the judged run has."""
    last = along(models["trained"])[:, -1]
    ends = dynamics.stages(models["trained"])
    measured = dynamics.Measured(last, ends, {0.8: last[:, :1]}, ends.early)
    proposition = dynamics.ENTRY.parts[0]
    for scale in ("quick", "full"):
        judged_run = covered_run(SIZES[scale].steps)
        inside_premises = judge_part("cot", proposition, measured, [(judged_run, default_test(prompt_length=512))])
        assert inside_premises.verdict == "holds"
    result = judge_part("cot", proposition, measured, [(models["trained"][0].run, default_test(prompt_length=20))])
    assert result.verdict == "outside"
    assert "Theorem 1: step size eta" in [premise.name for premise in result.premises if not premise.met]


def test_the_first_rule_on_needed_examples_still_judges():
    """A law steeper than -2.35 outgrows the order, and stays below it with the constant 1."""
    x = np.array([0.2, 0.4, 0.8])

    def measured(exponent):
        counts = np.outer(1 + 0.01 * np.arange(SEEDS), x**exponent)
        return SimpleNamespace(needs=SimpleNamespace(
            counts={"rho": counts}, shares={"rho": counts * x**2 / 100}, exponents={"rho": power(x, counts)},
            x={"rho": list(x)}))

    theorem = examples.ENTRY.parts[0]
    first, second = theorem.earlier
    assert verdict(theorem.checks(measured(-2.0))) == "holds"
    (name,) = failing(theorem.checks(measured(-2.6)))
    assert name.startswith("least rho: exponent of examples needed")
    assert failing(first.checks(measured(-2.6))) == ["exponent of rho"]
    assert verdict(second.checks(measured(-2.6))) == "holds"


def test_the_law_at_small_rho():
    """A square passes; a steeper law, or models that never reach the error, do not."""
    x = [0.05, 0.07, 0.1]
    spread = 1 + 0.01 * np.arange(SEEDS)[:, None]
    square, steep = (spread * np.array(x) ** exponent for exponent in (-2.0, -2.7))
    faint = needs.Faint("rho", x, [9_000, 9_000, 9_000], {"the model": steep, "the ideal vote": square})
    assert verdict(needs.follows_the_law(faint, "the ideal vote")) == "holds"
    assert failing(needs.follows_the_law(faint, "the model")) == ["exponent of rho"]
    assert "-2.7" in faint.words
    counts = {**faint.counts, "the model": np.full((SEEDS, 3), np.nan)}
    never = needs.follows_the_law(faint._replace(longest=[1600, 816, 400], counts=counts), "the model")
    assert any("share of seeds" in name for name in failing(never))
    assert f"{SEEDS} of {SEEDS} seeds" in faint._replace(counts=counts).words


def test_the_text_for_settings_that_never_reach_the_target():
    assert "in no seed more than 0.60 of the theorem's order" in needs.constant_of({"tau": np.array([[0.5, 0.6]])})
    assert "1 of 2 settings and seeds never reach" in needs.constant_of({"tau": np.array([[np.nan, 0.6]])})


def test_columns_that_lead_back_get_less_attention(models):
    assert (condition1.weight_of_own(models["trained"]) < 0.9).all()
    np.testing.assert_allclose(condition1.weight_of_own(models["untrained"]), 1.0, atol=0.02)


def test_iterations(models):
    """The order passes; no dependence, growth beyond it, or a loss that never falls, does not."""
    size, lab = iterations.SIZES["full"], SimpleNamespace(scale="full")
    noise = 1 + 0.01 * np.random.default_rng(0).normal(size=(SEEDS, 1))
    terms = {axis: np.array([iteration_terms(iterations.run_at(lab, axis, value), value if axis == "eps" else LOSS)
                             for value in values]) for axis, values in size.axes.items()}

    def measured(lengths=None, **changes):
        counts = {axis: noise * rows.sum(axis=1) for axis, rows in terms.items()}
        return iterations.Measured(counts | changes, size.axes, terms, size.fractions,
                                   noise / np.array(size.fractions) if lengths is None else lengths,
                                   noise / np.array(size.axes["alpha"]))

    good = measured()
    assert [verdict(part.checks(good)) for part in iterations.ENTRY.parts] == ["holds"] * 6
    long = good._replace(first_stage=noise * np.array(size.axes["alpha"]) ** -2.6)
    assert failing(iterations.first_stage_is_short(long)) == ["exponent of alpha in the end of the first stage"]
    assert good.constants == pytest.approx(np.ones(3), rel=0.05)
    for axis, values in size.axes.items():
        name = f"exponent of {axis}, beyond the law's"
        flat = {axis: noise * np.ones(len(values))}
        assert failing(iterations.iterations_are_needed(measured(**flat))) == [name]
        steep = {axis: noise * terms[axis].sum(axis=1) * np.array(values) ** (0.6 * iterations.GROWS[axis])}
        assert failing(iterations.iterations_suffice(measured(**steep))) == [name]
        assert verdict(iterations.iterations_are_needed(measured(**steep))) == "holds"
    falling = {"K": noise * np.array(size.axes["K"]) ** -0.1}
    assert failing(iterations.longer_chains_cost(measured(**falling))) == ["exponent of K"]
    assert failing(iterations.lengths_are_needed(measured(noise * np.ones((SEEDS, 5))))) == [
        "exponent of alpha in l_tr"]
    assert failing(iterations.lengths_suffice(measured(noise * np.array(size.fractions) ** -1.6))) == [
        "exponent of alpha in l_tr"]
    assert all(model.loss[-1] < LOSS for model in models["trained"])
    stuck = [with_fields(model, loss=np.full_like(model.loss, model.loss[0])) for model in models["trained"]]
    never = np.array([[iterations.iterations_to(model, LOSS)] * 5 for model in stuck])
    assert "share of seeds whose loss falls to epsilon in every setting" in failing(
        iterations.iterations_suffice(measured(M=never)))
    assert "share of seeds whose loss falls to 0.1 in every setting" in failing(
        iterations.lengths_suffice(measured(never)))


def test_the_first_rules_on_iterations_still_judge():
    """Against K^3 a T that grows like K^2.8 passes; the law's slope does not reach that far."""
    size, lab = iterations.SIZES["full"], SimpleNamespace(scale="full")
    noise = 1 + 0.01 * np.arange(SEEDS)[:, None]
    K = np.array(size.axes["K"], float)
    terms = {"K": np.array([iteration_terms(iterations.run_at(lab, "K", value), LOSS) for value in K])}
    steep = iterations.Measured({"K": noise * K**2.8}, {"K": size.axes["K"]}, terms, size.fractions,
                                noise / np.array(size.fractions), noise / np.array(size.axes["alpha"]))
    powers, sums = iterations.ENTRY.parts[0].earlier
    assert verdict(powers.checks(steep)) == "holds"
    assert verdict(sums.checks(steep)) == "holds"  # with a constant of its own for K^3 alone
    assert failing(iterations.iterations_suffice(steep)) == ["exponent of K, beyond the law's"]


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


@pytest.mark.slow
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
