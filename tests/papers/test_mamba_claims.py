"""The rules of the Mamba paper's claims: each passes sound results and fails on a suitable broken model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from every_entry import verdicts

from iclab import replace, train_many
from iclab.lab.powers import Scaling
from iclab.papers.mamba import (
    attention,
    context,
    eq3,
    family,
    gate,
    iterations,
    length,
    position,
    tasks,
    unseen,
    window,
)
from iclab.papers.mamba.deep import WATCHED_TEST, deep_run, mass_along
from iclab.papers.mamba.settings import attacked_prompts, one_layer_run
from iclab.papers.mamba.table1 import FRACTION, PLACEMENTS
from iclab.papers.mamba.trained import ungated, untrained
from iclab.probes import model_errors
from iclab.probes.inside import fit_decay, gate_profiles, score_masses
from iclab.sweeps.results import Results

SEEDS = [0, 1, 2, 3]


def test_equation_3_holds_and_fails_with_another_gate():
    differences = np.array([eq3.differences(seed) for seed in (0, 1)])
    assert verdicts(eq3.checks(differences)) == ["holds", "holds"]
    broken = np.array([[eq3.differences(seed, "mamba2_step")[0]] * 2 for seed in (0, 1)])
    assert "holds" not in verdicts(eq3.checks(broken))


def test_directions_have_their_sum_and_unit_length():
    for total in unseen.SUMS:
        rows = np.array(unseen.directions(total))
        np.testing.assert_allclose(rows.sum(axis=1), total, atol=1e-9)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)


def test_unseen_outliers(trained_mamba):
    sound = unseen.measure(trained_mamba, SEEDS, 1000)
    assert unseen.checks(sound)[0].verdict == "holds"
    positive, negative = sound.by_sum[0].mean(axis=0)[[-1, 0]]
    assert negative > 0.3 > 0.01 > positive
    for broken in (untrained, ungated):
        judged = unseen.checks(unseen.measure([broken(m) for m in trained_mamba], SEEDS, 1000))
        assert judged[0].verdict == "fails"


def test_tasks_outside_the_family(trained_mamba):
    sweep = tasks.sweep(SEEDS, 300, (4,))
    trials = sweep.trials()
    assert {trial.test.tasks for trial in trials} == {"unseen:4"}

    def judged(models):
        errors = model_errors(models, [trials[0].test], count=1000, seeds=SEEDS)[:, 0]
        rows = [{"status": "trained", "seed": seed, "error": error} for seed, error in zip(SEEDS, errors, strict=True)]
        return verdicts(tasks.checks(Results(sweep, trials, rows)))

    assert judged(trained_mamba) == ["holds"]
    def blind(model):  # every pattern looks like every other
        layer = model.params[0]
        return dataclasses.replace(model, params=(layer._replace(W_B=np.ones_like(layer.W_B)),))

    assert judged([blind(m) for m in trained_mamba]) == ["fails"]
    scores = tasks.pair_scores(trained_mamba[0], None, 0)
    assert scores["met"] < 0  # all pairs met
    assert np.isnan(scores["unmet"])


def test_the_tolerated_fraction(trained_mamba):
    sound = length.measure(trained_mamba, SEEDS, 1000)
    assert "fails" not in verdicts(length.checks({0.6: sound}))
    assert (length.tolerated(sound)[:, 1] >= 0.6).all()
    for broken in (untrained, ungated):
        wrong = length.measure([broken(m) for m in trained_mamba], SEEDS, 1000)
        assert verdicts(length.checks({0.6: wrong})) == ["fails"]
        assert (length.tolerated(wrong)[:, 1] < 0.6).all()


def test_the_context_needed(trained_mamba, trained_linear):
    def counts(member, models):
        return context.needed_examples(context.LENGTHS[member], context.measure(models, SEEDS, member, 1000), 0.05)

    sound = {"linear": counts("linear", trained_linear), "mamba": counts("mamba", trained_mamba)}
    assert "fails" not in verdicts(context.checks(sound))
    without_gate = sound | {"mamba": counts("mamba", [ungated(m) for m in trained_mamba])}
    assert "fails" in verdicts(context.checks(without_gate))
    beginner = sound | {"linear": counts("linear", [untrained(m) for m in trained_mamba])}
    assert "fails" in verdicts(context.checks(beginner))
    curve = np.array([0.5, 0.2, 0.01])
    assert 10 < context.needed_examples((5, 10, 20), curve, 0.05) < 20


def test_only_a_gate_on_the_example_itself_filters(trained_mamba, trained_linear):
    test = [attacked_prompts("flip", family.JUDGED)]
    mamba, linear = (model_errors(models, test, count=1000, seeds=SEEDS)[:, 0]
                     for models in (trained_mamba, trained_linear))
    sound = dict.fromkeys(family.MEMBERS["full"], linear) | dict.fromkeys(family.FILTERS, mamba)
    assert set(verdicts(family.checks(sound))) == {"holds"}
    for broken in (untrained, ungated):
        errors = model_errors([broken(m) for m in trained_mamba], test, count=1000, seeds=SEEDS)[:, 0]
        assert family.checks(sound | {"mamba": errors})[0].verdict == "fails"
    measured = family.measure(trained_mamba, SEEDS, 1000)
    at = family.FRACTIONS.index(family.JUDGED)
    np.testing.assert_allclose(measured[:, at, 0], mamba, atol=1e-6)
    assert (measured[:, at, 2] < 0.1 * measured[:, at, 1]).all()
    assert (measured[:, 0, 2] == 0).all()  # no poisoned example


@pytest.fixture(scope="module")
def deep():
    """Four seeds of the three-layer Mamba, trained briefly."""
    return train_many([deep_run("mamba", 300).seeded(seed) for seed in SEEDS], probe=mass_along)


def test_scores_gather_in_every_layer(deep):
    masses = attention.masses_along(deep)

    def judged(layer, masses):
        return verdicts(attention.in_layers((layer,))({"three layers": masses}))

    assert "fails" not in [verdict for layer in range(3) for verdict in judged(layer, masses)]
    assert judged(0, masses)[0] == "holds"
    nothing_learnt = attention.Masses(*(np.repeat(values[:, :1], 3, axis=1) for values in masses))
    assert [judged(layer, nothing_learnt)[2] for layer in range(3)] == ["fails"] * 3
    wrong_pattern = attention.Masses(masses.other, masses.same)  # labels shuffled: the wrong pattern is attended
    assert "fails" in [verdict for layer in range(3) for verdict in judged(layer, wrong_pattern)]


def test_scores_gather_in_one_layer(trained_mamba):
    def masses(*records):
        ends = [score_masses(models, WATCHED_TEST, count=1000, seeds=SEEDS) for models in records]
        return attention.Masses(*(np.stack(mass, axis=1) for mass in zip(*ends, strict=True)))

    beginners = [untrained(m) for m in trained_mamba]
    sound = masses(beginners, trained_mamba)
    corollary, remark = (part.checks for part in attention.ENTRY.parts[:2])
    assert verdicts(corollary({"one layer": sound})) == ["holds", "holds"]
    assert verdicts(remark({"one layer": sound})) == ["holds"]
    assert verdicts(remark({"one layer": masses(beginners, beginners)})) == ["fails"]
    wrong_pattern = attention.Masses(sound.other, sound.same)
    assert verdicts(corollary({"one layer": wrong_pattern})) == ["fails", "fails"]


def test_gates_filter_and_decay(trained_mamba):
    def judged(models):
        gates = gate_profiles(models, gate.TEST, count=1000, seeds=SEEDS)
        return verdicts(gate.Profile("one layer", gates.clean[:, 0], gates.poisoned[:, 0]).checks())

    assert judged(trained_mamba) == ["holds", "holds"]
    assert judged([ungated(m) for m in trained_mamba]) == ["fails", "fails"]
    assert judged([untrained(m) for m in trained_mamba])[0] == "fails"
    decay = fit_decay(0.4 * 0.8 ** np.arange(12))
    assert (decay.first, decay.ratio, decay.explained) == pytest.approx((0.4, 0.8, 1.0))
    np.testing.assert_allclose(decay.at(3), [0.4, 0.32, 0.256])


def test_positions_matter_only_with_a_gate(deep):
    tests = [attacked_prompts("flip", FRACTION, placement=place) for place in PLACEMENTS]

    def accuracies(models):
        return 1 - model_errors(models, tests, count=1000, seeds=SEEDS)

    def judged(mamba, linear):
        return verdicts(position.checks(mamba, linear))

    flat = np.full((4, 3), 0.785)
    sound = accuracies(deep)
    assert (sound[:, 1] > sound[:, 2]).all()
    assert "fails" not in judged(sound, flat)
    assert judged(sound, sound)[2] != "holds"  # a gate is not flat
    # An untrained model would not fail: its gate already decays with distance, which is all that the order needs.
    assert judged(accuracies([ungated(m) for m in deep]), flat)[1] != "holds"
    assert "fails" in judged(flat, flat)


def test_the_window_has_edges():
    axes = window.AXES["full"]
    usual = {axis: {model: np.tile([0.0 if value == window.USUAL[axis] else 0.2 for value in values], (4, 1))
                    for model, values in models.items()} for axis, models in axes.items()}
    usual["kappa_a"]["linear"][:] = 0.035
    usual["B"]["linear"][:] = 0.035
    assert set(verdicts(window.checks(window.Window(usual, axes)))) == {"holds"}
    nothing_learnt = {axis: {model: np.full_like(values, 0.5) for model, values in models.items()}
                      for axis, models in usual.items()}
    judged = verdicts(window.checks(window.Window(nothing_learnt, axes)))
    assert [judged[i] for i in (0, 1, 4)] == ["fails"] * 3
    assert window.a_run("linear", "B", 8, 10).training.batch_size == 8
    assert window.a_run("mamba", "l_tr", 40, 10).prompts.prompt_length == 40
    assert window.test_of("kappa_a", 0.1).outlier_scale == 0.1


def test_the_best_rate_is_that_of_the_least_loss_without_divergence():
    sweep = family.search(family.MEMBERS["full"], [0, 1], 10)
    trials = sweep.trials()
    rows = [{"status": "diverged" if trial.run.training.learning_rate > 0.3 else "trained", "seed": trial.seed,
             "loss": None if trial.run.training.learning_rate > 0.3 else abs(trial.run.training.learning_rate - 0.3)}
            for trial in trials]
    assert family.best_rates(Results(sweep, trials, rows)) == dict.fromkeys(family.MEMBERS["full"], 0.3)


def test_iterations_follow_a_law_or_do_not():
    def counts(member, change=lambda axis, power: power):
        rng, axes = np.random.default_rng(0), iterations.SIZES["full"].axes[member]
        return Scaling(axes, {axis: 300 * (np.array(values, float) / iterations.USUAL[axis]) ** change(
            axis, iterations.THEORY[member][axis]) * rng.uniform(0.95, 1.05, (5, len(values)))
            for axis, values in axes.items()}, iterations.USUAL)

    def judged(member, scaling):
        return verdicts(iterations.law_of(member)({member: scaling}))

    for member in iterations.RATES:
        assert set(judged(member, counts(member))) == {"holds"}
    gate_at_one = counts("mamba", lambda axis, power: -1.0 if axis == "l_tr" else power)
    assert "fails" in judged("mamba", gate_at_one)
    never = counts("mamba")
    never.counts["beta"][:, 0] = np.nan  # labels shuffled: the loss stays where it began
    assert "fails" in judged("mamba", never)


def test_a_model_that_learns_nothing_never_reaches_the_loss(tiny_run):
    from iclab import train

    def coin(clean, coin, x):
        return coin

    prompts = replace(tiny_run.prompts, outlier_fraction=0.99, label_rule=coin, outlier_scale=0.0)
    assert np.isnan(iterations.iterations(train(replace(tiny_run, prompts=prompts))))
    assert iterations.a_run("linear", 10, "M1", 8).prompts.relevant_patterns == 8
    assert iterations.a_run("mamba", 10, "1 - p_a", 0.4).prompts.outlier_fraction == pytest.approx(0.6)
    assert one_layer_run("mamba", 10).training.learning_rate == 1.0
