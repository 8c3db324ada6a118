"""The rules of the Mamba paper's claims: each passes sound results and fails on a suitable broken model."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from every_entry import verdicts

from iclab import replace, train_many
from iclab.lab.estimates import Rate
from iclab.lab.powers import Scaling
from iclab.lab.premises import premises_of
from iclab.models import forward
from iclab.papers.mamba import (
    attention,
    context,
    eq3,
    family,
    gate,
    iterations,
    length,
    position,
    shifts,
    single,
    table1,
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
from iclab.probes.watched import watched_prompts
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
    def errors_of(models):
        directions, sums = (unseen.by_factor(model_errors(models, tests, count=1000, seeds=SEEDS))
                            for tests in unseen.tests().values())
        at = [unseen.FACTORS.index(factor) for factor in unseen.DECIDING]
        return unseen.Errors(directions, sums, 1000, more=directions[..., at])

    sound = errors_of(trained_mamba)
    assert verdicts(unseen.larger(sound)) == ["holds"]
    positive, negative = sound.sums[:, :, unseen.FACTORS.index(3.0)].mean(axis=0)[[-1, 0]]
    assert negative > 0.3 > 0.01 > positive
    for broken in (untrained, ungated):
        wrong = errors_of([broken(m) for m in trained_mamba])
        assert verdicts(unseen.larger(wrong)) == ["fails"]
        for rule in (unseen.theorem, unseen.by_direction, unseen.of_the_paper):
            assert verdicts(rule(wrong)) == ["fails"]
        assert verdicts(unseen.finer(wrong)) == ["fails"]
        assert verdicts(unseen.corrected(wrong)) == ["fails"]


def test_the_product_decides_or_does_not(trained_mamba):
    rng = np.random.default_rng(0)
    products = np.outer(unseen.SUMS, unseen.FACTORS)

    def with_error(error):
        noisy = np.clip(error + rng.normal(0, 1e-4, (8, *products.shape)), 0, 1)
        return unseen.Errors(noisy[:, :3], noisy, 20_000)

    sound = with_error(0.5 * np.exp(-8 * np.maximum(products, 0)))
    assert verdicts(unseen.collapse(sound)) == verdicts(unseen.corrected(sound)) == ["holds"]
    scale_alone = with_error(0.5 * np.exp(-2 * np.array(unseen.FACTORS) * np.ones_like(products)))
    assert verdicts(unseen.collapse(scale_alone)) == verdicts(unseen.corrected(scale_alone)) == ["fails"]

    def one_sided(model):  # the gate sees one of three outlier directions
        layer, spec = model.params[0], model.run.prompts
        w = np.array(layer.gate.w)
        w[:, spec.relevant_patterns + spec.irrelevant_patterns + 1:-1] = 0
        return dataclasses.replace(model, params=(layer._replace(gate=layer.gate._replace(w=w)),))

    tests = unseen.tests()["sums"]
    errors = unseen.by_factor(model_errors([one_sided(m) for m in trained_mamba], tests, count=4000, seeds=SEEDS))
    assert "holds" not in verdicts(unseen.collapse(unseen.Errors(errors, errors, 4000)))


def test_the_product_needed_is_read_off_the_curve():
    errors = np.tile(unseen.FLOOR + 0.02 * (np.array(unseen.PRODUCTS) < 0.4), (8, 1))
    assert ((unseen.least_product(errors) > 0.3) & (unseen.least_product(errors) <= 0.4)).all()
    later = np.tile(unseen.FLOOR + 0.02 * (np.array(unseen.PRODUCTS) < 0.8), (8, 1))

    def judged(first, last):
        return verdicts(unseen.with_patterns(unseen.Errors(errors, errors, 4000, {"M1": {6: first, 40: last}})))

    assert judged(later, errors) == ["holds"]
    assert judged(errors, later) == ["fails"]
    for first, last, verdict in ((later, errors, "holds"), (errors, later, "fails")):
        along = unseen.Errors(errors, errors, 4000, {"T": {1000: first, 10_000: last}})
        assert verdicts(unseen.with_steps(along)) == [verdict]
    half = np.full((8, len(unseen.PRODUCTS)), 0.5)  # no gate
    assert verdicts(unseen.many_patterns(unseen.Errors(half, half, 4000, {"M1": {6: errors, 40: half}}))) == ["fails"]
    run = unseen.other_run("M1", 40, 10)
    assert unseen.product_tests(run)[0].dimension == run.prompts.dimension == 60


def a_family(models, M1=6, U=4):
    run = shifts.a_run(M1, U, 10)
    errors = model_errors(models, shifts.tests_of(run, U), count=1000, seeds=SEEDS)
    hinge = model_errors(models, [replace(run.prompts, tasks="all")], count=1000, seeds=SEEDS, measure="hinge")
    scores = np.stack([shifts.scores_by_shift(model) for model in models])
    attacked = model_errors(models, shifts.attacks(), count=1000, seeds=SEEDS)[:, [1, 1]]  # at three times
    return shifts.Family(M1, 1, errors[:, 2:], errors[:, 0], errors[:, 1], hinge[:, 0], scores, 1000,
                        np.stack([shifts.entries_by_shift(model) for model in models]), attacked)


def test_tasks_outside_the_family(trained_mamba):
    def judged(family):
        study = shifts.Study([family], {}, {})
        return [verdicts(rule(study)) for rule in (tasks.theorem1, tasks.theorem2, tasks.finer, tasks.every_task)]

    def at_three_times(family):
        (earlier,) = verdicts(tasks.with_outliers_earlier(shifts.Study([family], {}, {})))
        assert verdicts(tasks.with_outliers(shifts.Study([], {1_024: family}, {}))) == [earlier]
        return [earlier]

    def kept(family):
        study = shifts.Study([family], {}, {})
        return [verdicts(rule(study)) for rule in (tasks.entries_kept, tasks.scores_kept)]

    sound = a_family(trained_mamba)
    assert at_three_times(sound) == ["holds"]
    assert at_three_times(a_family([ungated(m) for m in trained_mamba])) == ["fails"]
    assert judged(sound) == [["holds"]] * 4
    assert (sound.scores < 0).all()  # all pairs met
    assert kept(sound) == [["fails"], ["holds"]]  # all entries are learnt, and negative
    assert kept(sound._replace(scores=-sound.scores)) == [["fails"], ["fails"]]
    assert kept(sound._replace(entries=0.01 * sound.entries)) == [["holds"], ["holds"]]
    for factor, verdict in ((1.0, "fails"), (0.01, "holds")):  # only W_B counts
        entries = sound.entries * np.array([factor, 1.0])[:, None]
        assert verdicts(tasks.entries_kept_at_first(shifts.Study([], {}, {}, {6: entries}))) == [verdict]
    run = tasks.short_run(6)
    assert run.training.steps < 2_000
    assert all(premise.met for premise in premises_of("mamba", ("Theorem 1",), [(run, run.prompts)], constant=0.5))

    def blind(model):  # every pattern looks like every other
        layer = model.params[0]
        return dataclasses.replace(model, params=(layer._replace(W_B=np.ones_like(layer.W_B)),))

    assert judged(a_family([blind(m) for m in trained_mamba])) == [["fails"]] * 4
    one_shift_wrong = sound._replace(shifts=sound.shifts + np.array([0.0, 0.2, 0.0]))
    assert judged(one_shift_wrong) == [["holds"]] * 3 + [["fails"]]


def flat_family(M1, value):
    rng, seeds = np.random.default_rng(M1), 8
    return shifts.Family(M1, 1, *(value * rng.uniform(0.98, 1.02, seeds),) * 4, np.zeros((seeds, 1)), 1000)


def test_the_mean_error_falls_with_the_number_of_patterns():
    def judged(exponent):
        study = shifts.Study([flat_family(M1, 0.4 * M1**exponent) for M1 in (6, 12, 20, 40)], {}, {})
        assert verdicts(tasks.falls(study)) == verdicts(tasks.hinge_falls(study))
        return verdicts(tasks.falls(study))

    assert judged(-1.0) == ["holds", "holds"]
    assert "fails" in judged(0.0)
    assert shifts.shift_tasks(3, 2) == ((0, 2), (1, 0), (2, 1))
    assert shifts.a_run(40, 1, 10).prompts.dimension == 60


def test_the_hinge_loss_falls_with_the_batch_or_for_some_start():
    def judged(exponent, least):
        batches = {B: flat_family(6, 2.0 * B**exponent) for B in (128, 512, 1024)}
        starts = {(T, delta): flat_family(6, least * delta) for T in (1000, 4000) for delta in (1.0, 2.0)}
        study = shifts.Study([], batches, starts)
        assert verdicts(tasks.every_error(study)) == verdicts(tasks.every_accuracy(study))
        return [verdicts(rule(study)) for rule in (tasks.every_accuracy, tasks.somewhere)]

    assert judged(-0.5, 0.2) == [["holds"], ["holds"]]
    assert judged(0.0, 0.05) == [["fails"], ["fails"]]
    assert "none of 4 settings" in tasks.region(shifts.Study([], {}, {
        (T, delta): flat_family(6, 0.2) for T in (1000, 4000) for delta in (0.1, 0.2)})).sentence


def test_the_tolerated_fraction(trained_mamba):
    sound = length.measure(trained_mamba, SEEDS, 1000)
    assert "fails" not in verdicts(length.theorem(length.Errors({0.6: sound}, 1000)))
    assert (length.tolerated(sound)[:, 1] >= 0.6).all()
    assert length.tested(0.6, 20, beyond=False) == 0.5
    assert length.tested(0.6, 20, beyond=True) == 0.6
    for broken in (untrained, ungated):
        wrong = length.measure([broken(m) for m in trained_mamba], SEEDS, 1000)
        assert verdicts(length.theorem(length.Errors({0.6: wrong}, 1000))) == ["fails"]
        assert verdicts(length.finer(length.Errors({0.6: wrong}, 1000))) == ["fails"]
        assert (length.tolerated(wrong)[:, 1] < 0.6).all()
        assert "fails" in verdicts(length.beyond(length.Errors({0.6: wrong}, 1000)).checks())
    assert "fails" in verdicts(length.tight(length.Errors({0.6: sound}, 1000)))


def test_the_excess_vanishes_as_lengths_grow_or_does_not():
    def judged(excess_at):
        rng, at = np.random.default_rng(0), length.GROWING_FRACTIONS
        floors = {l_tr: [length.information_floor(length.growing_test(l_tr, f)) for f in at] for l_tr in (20, 40, 160)}
        return verdicts(length.vanishes(length.Errors({}, 10_000, {
            l_tr: floor + excess_at(l_tr) * rng.uniform(0.9, 1.1, (8, len(at))) for l_tr, floor in floors.items()})))

    assert length.Errors({}, 1000, {10: np.full((4, len(length.GROWING_FRACTIONS)), 0.3)}).needed_length(
        0.4, 0.5) == pytest.approx([10.0] * 4)
    for error, verdict in ((0.05, "holds"), (0.3, "fails")):
        flat = length.Errors({}, 10_000, {160: np.full((8, len(length.GROWING_FRACTIONS)), error)})
        assert verdicts(length.long_prompts(flat)) == [verdict]
    assert judged(lambda l_tr: 1.0 / l_tr) == ["holds"] * 3
    assert judged(lambda l_tr: 0.1) == ["fails", "inconclusive", "fails"]
    assert judged(lambda l_tr: 0.002 * l_tr) == ["fails"] * 3
    assert length.enough_examples(0.5, 10)
    assert not length.enough_examples(0.9, 10)
    assert length.enough_examples(0.5, 20, 2.0)
    assert not length.enough_examples(0.75, 10, 2.0)


def test_fractions_close_to_one_and_a_finer_accuracy():
    rng = np.random.default_rng(0)
    for error, finer, rough in ((0.02, "holds", "holds"), (0.08, "fails", "holds"), (0.5, "fails", "fails")):
        grid = error * rng.uniform(0.95, 1.05, (8, len(length.FRACTIONS), len(length.LENGTHS)))
        near = dict.fromkeys(length.SCALES, grid[:, :len(length.NEAR_ONE), 0])
        errors = length.Errors({0.4: grid}, 10_000, None, grid, near)
        assert verdicts(length.finer_accuracy(errors)) == [finer]
        assert [verdicts(length.close_to_one(scale)(errors)) for scale in length.SCALES] == [[rough]] * 2
    run = length.near_one_run(3.0, 1_000)
    test = length.near_one_tests(3.0)[length.NEAR_ONE.index(length.JUDGED_NEAR_ONE)]
    premises = premises_of("mamba", ("Theorem 2",), [(run, test)], constant=0.5)
    assert all(premise.met for premise in premises)
    assert any("longest test prompts" in premise.name for premise in premises)
    assert test.outlier_fraction > length.ALL_FRACTIONS["p_a"]


def test_the_context_needed(trained_mamba, trained_linear):
    def counts(member, models):
        errors = context.measure(models, SEEDS, member, 1000)
        return {error: {member: context.needed_examples(context.LENGTHS[member], errors, error)}
                for error in (context.ACCURACY, context.FITTED)}

    def judged(member, counts):
        return [verdicts(rule(member)(counts)) for rule in (context.enough, context.needed, context.finer_error)]

    sound = {"linear": counts("linear", trained_linear), "mamba": counts("mamba", trained_mamba)}
    assert all("fails" not in verdict for member, of in sound.items() for verdict in judged(member, of))
    without_gate = judged("mamba", counts("mamba", [ungated(m) for m in trained_mamba]))
    assert "fails" in without_gate[0]
    assert "fails" in without_gate[2]
    beginner = judged("linear", counts("linear", [untrained(m) for m in trained_mamba]))
    assert "fails" in beginner[0]
    assert "fails" in beginner[2]
    curve = np.array([0.5, 0.2, 0.01])
    assert 10 < context.needed_examples((5, 10, 20), curve, 0.05) < 20


def test_the_powers_of_the_context_needed():
    def judged(power):
        rng = np.random.default_rng(0)
        counts = {error: {member: np.stack([
            (f if member == "linear" else 1.0) * ((0.5 if member == "linear" else 1.0) - f) ** power(member)
            * rng.uniform(0.98, 1.02, 8) for f in fractions], axis=1) for member, fractions in
            context.FRACTIONS.items()} for error in (context.ACCURACY, context.FITTED)}
        return [verdicts(rule) for rule in (
            *(context.enough(member)(counts) for member in context.NAMES),
            *(context.needed(member)(counts) for member in context.NAMES), context.closer(counts))]

    assert {verdict for rule in judged(context.EXPONENTS.get) for verdict in rule} == {"holds"}
    steeper = judged(lambda member: 2 * context.EXPONENTS[member])
    assert "fails" in steeper[0]
    assert "fails" in steeper[1]
    assert "fails" in steeper[-1]
    flat = judged(lambda member: 0.0)
    assert flat[2] == flat[3] == ["fails"]
    assert "fails" in flat[-1]


def test_only_a_gate_on_the_example_itself_filters(trained_mamba, trained_linear):
    def errors_of(models):
        tests = [attacked_prompts("flip", family.JUDGED)]
        return Rate(model_errors(models, tests, count=1000, seeds=SEEDS)[:, 0], 1000)

    mamba, linear = errors_of(trained_mamba), errors_of(trained_linear)
    sound = dict.fromkeys(family.MEMBERS, linear) | dict.fromkeys(family.FILTERS, mamba)
    assert set(verdicts(family.filters(sound)) + verdicts(family.others(sound))) == {"holds"}
    for broken in (untrained, ungated):
        errors = errors_of([broken(m) for m in trained_mamba])
        assert verdicts(family.filters(sound | {"mamba": errors}))[0] == "fails"
    assert verdicts(family.others(sound | {"retnet": mamba}))[1] == "fails"
    measured = family.measure(trained_mamba, SEEDS, 1000)
    at = family.FRACTIONS.index(family.JUDGED)
    np.testing.assert_allclose(measured[:, at, 0], mamba.rates, atol=1e-6)
    assert (measured[:, at, 2] < 0.1 * measured[:, at, 1]).all()
    assert (measured[:, 0, 2] == 0).all()  # no poisoned example


@pytest.fixture(scope="module")
def deep():
    """Four seeds of the three-layer Mamba, trained briefly."""
    return train_many([deep_run("mamba", 400).seeded(seed) for seed in SEEDS], probe=mass_along)


def test_scores_gather_in_every_layer(deep):
    masses = attention.masses_along(deep)

    def judged(layer, masses, rule=attention.in_layers):
        return verdicts(rule((layer,))({"three layers": masses}))

    assert "fails" not in [verdict for layer in range(3) for verdict in judged(layer, masses)]
    assert judged(0, masses)[0] == "holds"
    for layer in range(3):
        assert "fails" not in judged(layer, masses, attention.gap_opens)
    nothing_learnt = attention.Masses(*(np.repeat(values[:, :1], 3, axis=1) for values in masses))
    assert [judged(layer, nothing_learnt)[2] for layer in range(3)] == ["fails"] * 3
    assert "holds" not in judged(0, nothing_learnt, attention.gap_opens)[1:]
    wrong_pattern = attention.Masses(masses.other, masses.same)  # labels shuffled: the wrong pattern is attended
    assert "fails" in judged(0, wrong_pattern, attention.gap_opens)
    assert "fails" in [verdict for layer in range(3) for verdict in judged(layer, wrong_pattern)]


def test_scores_gather_in_one_layer(trained_mamba):
    def masses(*records):
        ends = [score_masses(models, WATCHED_TEST, count=1000, seeds=SEEDS) for models in records]
        return attention.Masses(*(np.stack(mass, axis=1) for mass in zip(*ends, strict=True)))

    beginners = [untrained(m) for m in trained_mamba]
    sound = masses(beginners, trained_mamba)
    corollary, absolute, remark = (part.checks for part in attention.ENTRY.parts[:3])
    small = {"one layer": sound._replace(other=0.001 * sound.same)}
    assert verdicts(corollary(small)) == verdicts(corollary({"one layer": sound})) == ["holds", "holds"]
    assert verdicts(absolute(small)) == ["holds"]
    assert verdicts(absolute({"one layer": sound._replace(other=-sound.same)})) == ["fails"]
    relative, by_absolute_value = (rule.checks for rule in attention.ENTRY.parts[0].earlier)
    assert verdicts(relative({"one layer": sound})) == verdicts(by_absolute_value(small)) == ["holds", "holds"]
    assert verdicts(remark({"one layer": sound})) == ["holds"]
    assert verdicts(remark({"one layer": masses(beginners, beginners)})) == ["fails"]
    assert verdicts(corollary({"one layer": masses(beginners, beginners)})) == ["fails", "holds"]
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


def test_gates_of_poisoned_examples_are_shut(trained_mamba):
    def judged(models):
        profile = gate.Profile("one layer", np.ones((4, 20)), np.ones((4, 20)),
                               open_gates=gate.open_gates(models, SEEDS, 1000))
        return [verdicts(gate.shut_out(scale)([profile])) for scale in gate.SCALES]

    assert judged(trained_mamba)[0] == ["holds"]
    assert judged([ungated(m) for m in trained_mamba]) == [["fails"], ["fails"]]
    assert judged([untrained(m) for m in trained_mamba])[1] == ["fails"]
    open_gate = gate.Profile("one layer", np.ones((4, 20)), np.ones((4, 20)))
    assert verdicts(gate.same_scale([dataclasses.replace(open_gate, same_scale=open_gate)])) == ["fails"]
    for leak, verdict in ((1.0, "fails"), (0.05, "holds")):
        leaky = gate.Profile("one layer", np.ones((4, 20)), np.full((4, 20), leak) + np.linspace(0, 0.01, 4)[:, None])
        assert verdicts(gate.small_sum([dataclasses.replace(open_gate, small_sum=leaky)])) == [verdict]
    flat = gate.Profile("one layer", 0.99 ** np.tile(np.arange(20), (4, 1)), np.ones((4, 20)))
    assert verdicts(gate.remark7([flat])) == ["holds", "fails"]


def test_gates_of_clean_examples_halve_at_most(trained_mamba):
    def judged(models):
        least = gate.least_scaled_gates(models, SEEDS, 1000)
        return verdicts(gate.local_bias([gate.Profile("one layer", least[:, None], least[:, None], least)]))

    assert judged(trained_mamba) == ["holds"]
    assert judged([untrained(m) for m in trained_mamba]) == ["fails"]
    layer = trained_mamba[0].params[0]
    no_step = dataclasses.replace(trained_mamba[0], params=(layer._replace(gate=layer.gate._replace(
        w=np.zeros_like(layer.gate.w))),))  # every step 1/2, that of poisoned examples too
    assert gate.least_scaled_gates([no_step], [0], 1000)[0] < 0.25


def test_one_layer_filters_before_the_output_or_all_do():
    def judged(*shares):
        layers = [gate.Profile("one layer", np.ones((8, 20)), np.full((8, 20), 0.1))]
        layers += [gate.Profile(f"layer {i + 1} of 3", np.ones((8, 20)), np.full((8, 20), share) + noise)
                   for i, share in enumerate(shares)]
        return [verdicts(rule(layers)) for rule in (gate.last_layer, gate.not_every_layer)]

    noise = np.linspace(-0.01, 0.01, 8)[:, None]
    assert judged(0.8, 0.5, 0.1) == [["holds", "holds"], ["holds"]]
    assert judged(0.1, 0.1, 0.1) == [["holds", "holds"], ["fails"]]
    assert judged(1.0, 1.0, 1.0) == [["fails", "fails"], ["holds"]]  # ungated


def test_one_prompt_shows_what_the_model_shows(deep):
    prompts = watched_prompts(gate.TEST, 200)
    prompt = jax.tree.map(lambda field: field[0], prompts)
    seen = jax.jit(lambda params: forward(deep[0].run.model, params, prompt)[1].gates)(deep[0].params)
    columns = np.c_[np.asarray(prompt.x), np.asarray(prompt.y)]
    np.testing.assert_allclose(single.stack_gates(deep[0], columns), seen, rtol=1e-3)
    one = single.one_prompt(deep[0], gate.TEST, 200)
    clean, poisoned = one.rows(0)
    np.testing.assert_array_equal(np.isnan(clean), ~np.isnan(poisoned))
    np.testing.assert_array_equal(np.isnan(clean[0]), np.asarray(prompt.truth.outlier)[-2::-1])


def test_positions_matter_only_with_a_gate(deep):
    tests = [attacked_prompts("flip", FRACTION, placement=place) for place in PLACEMENTS]

    def accuracies(models):
        return 1 - model_errors(models, tests, count=1000, seeds=SEEDS)

    def judged(mamba, linear):
        values = {"mamba": mamba[:, None], "linear": linear[:, None]}
        return verdicts(position.at_common(table1.Accuracies(values, (position.COMMON,), deep[0].run)))

    flat = np.full((4, 3), 0.785) + np.linspace(-0.002, 0.002, 4)[:, None]
    sound = accuracies(deep)
    assert (sound[:, 1] > sound[:, 2]).all()
    assert "fails" not in judged(sound, flat)
    assert judged(sound, flat + 0.2)[3] == "fails"  # no room
    assert judged(sound, sound)[2] != "holds"  # a gate is not flat
    # An untrained model would not fail: its gate already decays with distance, which is all that the order needs.
    assert judged(accuracies([ungated(m) for m in deep]), flat)[1] != "holds"
    assert "fails" in judged(flat, flat)
    steep = flat + np.array([0.0, -0.05, -0.1])
    for last, verdict in ((flat, "holds"), (steep, "fails")):
        values = {"causal": last[:, None]}
        assert verdicts(position.causal(table1.Accuracies(values, (position.COMMON,), deep[0].run)))[0] == verdict


def test_only_a_causal_stack_sees_positions():
    def largest_less_least(causal):
        models = train_many([deep_run("linear", 100, causal=causal).seeded(seed) for seed in SEEDS])
        tests = [attacked_prompts("flip", FRACTION, placement=place) for place in PLACEMENTS]
        accuracies = 1 - model_errors(models, tests, count=1000, seeds=SEEDS)
        return position.checks(accuracies, accuracies)[2]

    assert verdicts([largest_less_least(None)]) != ["fails"]
    assert verdicts([largest_less_least(True)]) == ["fails"]


def test_the_numbers_of_table_1():
    def judged(mamba, linear):
        values = {name: np.tile(row, (8, 1))[:, None] + np.linspace(-0.002, 0.002, 8)[:, None, None]
                  for name, row in (("mamba", mamba), ("linear", linear))}
        return set(verdicts(position.numbers(table1.Accuracies(values, (position.NEAREST,), deep_run("mamba", 1)))))

    near = np.array([0.99, 0.95, 0.72]), np.array([0.8, 0.8, 0.8])
    assert judged(*near) == {"holds"}
    assert "fails" in judged(near[0][::-1], near[1])
    assert "fails" in judged(near[0], near[1] - 0.25)  # half of the answers are wrong, as under flip


def test_the_rule_of_our_own_mislabels_four_of_five():
    poisoned = table1.judged_prompts(*position.NEAREST, "random").sample(0, 4000)
    same = poisoned.truth.pattern[:, :-1] == poisoned.truth.pattern[:, -1:]
    right = np.where(same, 1, -1) * np.asarray(poisoned.label)[:, None] == np.asarray(poisoned.y)[:, :-1]
    outlier = np.asarray(poisoned.truth.outlier)[:, :-1]
    assert right[~outlier].all()
    assert 0.19 < right[outlier].mean() < 0.21


def test_the_window_has_edges():
    axes = window.AXES[-1]

    def errors_with(error_at, scale=lambda eta: 0.5, long=0.5):
        values = {axis: {member: {value: np.full(4, error_at(axis, member, value)) for value in values}
                         for member, values in of.items()} for axis, of in axes.items()}
        rates = {(128.0, eta): np.full(4, scale(eta)) for eta in (1.0, 0.1)}
        return window.Errors(values, values, 4000, None, rates, np.full(4, long))

    def judged(errors):
        rules = (window.too_small, window.too_large, window.too_long, window.equal_error, window.theorem1,
                 window.well_inside, window.theorem3, window.no_lower_bound)
        return [verdicts(rule(errors))[0] for rule in rules]

    def earlier(errors):
        ends = [window.worse_at(errors, *end) for end in (("kappa_a", 0), ("kappa_a", -1), ("l_tr", -1))]
        return [verdicts(checks)[0] for checks in (*ends, window.batches(errors), window.theorem1_by_error(errors))]

    def at(axis, member, value):
        if member == "linear":
            return 0.035
        return 0.0 if value == window.USUAL.get(axis, 256) else 0.2 if value in (0.005, 128.0) else 0.09

    usual = errors_with(at)
    assert judged(usual) == ["holds"] * 8
    assert earlier(usual) == ["holds"] * 5
    drowned = usual._replace(more=np.full(24, 0.4))
    assert judged(drowned) == ["holds"] * 4 + ["fails"] + ["holds"] * 3
    harmless = errors_with(lambda *_: 0.035, lambda eta: 0.5 if eta == 1.0 else 0.0, long=0.0)
    assert judged(harmless)[:4] == ["fails"] * 4
    nothing_learnt = errors_with(lambda *_: 0.5)
    assert judged(nothing_learnt)[3:] == ["inconclusive", "fails", "fails", "fails", "holds"]
    assert earlier(nothing_learnt) == ["fails"] * 5
    needs_outliers = errors_with(lambda axis, member, value: 0.5 if value == 0.02 else 0.0)
    assert judged(needs_outliers)[-1] == "fails"
    assert window.a_run("linear", "B", 8, 10).training.batch_size == 8
    assert window.a_run("mamba", "l_tr", 40, 10).prompts.prompt_length == 40
    assert window.test_of("mamba", "kappa_a", 0.1).outlier_scale == 0.1
    specs = [(window.a_run("mamba", *point, 1000), window.test_of("mamba", *point)) for point in window.inside(axes)]
    premises = premises_of("mamba", ("Theorem 1",), specs, constant=0.5)
    assert all(premise.met for premise in premises)


def test_the_best_rate_is_that_of_the_least_loss_without_divergence():
    sweep = family.search(family.MEMBERS, (0.03, 0.1, 0.3, 1.0), [0, 1], 10)
    trials = sweep.trials()
    rows = [{"status": "diverged" if trial.run.training.learning_rate > 0.3 else "trained", "seed": trial.seed,
             "loss": None if trial.run.training.learning_rate > 0.3 else abs(trial.run.training.learning_rate - 0.3)}
            for trial in trials]
    assert family.best_rates(Results(sweep, trials, rows)) == dict.fromkeys(family.MEMBERS, 0.3)


def test_iterations_follow_a_law_or_do_not():
    def counts(member, change=lambda axis, power: power):
        rng, axes = np.random.default_rng(0), iterations.SIZES["full"].axes[member]
        return Scaling(axes, {axis: 300 * (np.array(values, float) / iterations.USUAL[axis]) ** change(
            axis, iterations.THEORY[member][axis]) * rng.uniform(0.95, 1.05, (16, len(values)))
            for axis, values in axes.items()}, iterations.USUAL)

    def judged(member, scaling):
        return verdicts(iterations.law_of(member)({member: scaling}))

    for member in iterations.MEMBERS:
        assert set(judged(member, counts(member))) == {"holds"}
        assert set(verdicts(iterations.enough(member)({member: counts(member)}))) == {"holds"}
    assert len(iterations.enough("mamba")({"mamba": counts("mamba")})) == 6
    both = {member: counts(member) for member in iterations.MEMBERS}
    assert verdicts(iterations.needed(both)) == ["holds"] * 10
    slower = counts("mamba", lambda axis, power: {"1 - p_a": -2.0, "M1": 2.0}.get(axis, power))
    assert verdicts(iterations.enough("mamba")({"mamba": slower})).count("fails") == 2
    faster = counts("mamba", lambda axis, power: 0.0)
    assert "fails" in verdicts(iterations.needed(both | {"mamba": faster}))
    gate_at_one = counts("mamba", lambda axis, power: -1.0 if axis == "l_tr" else power)
    assert "fails" in judged("mamba", gate_at_one)
    never = counts("mamba")
    never.counts["beta"][:, 0] = np.nan  # labels shuffled: the loss stays where it began
    assert "fails" in judged("mamba", never)


def test_the_ratio_of_iterations_grows_with_the_length_or_does_not():
    lengths = iterations.SIZES["full"].axes[iterations.HEADS[0]]["l_tr"]

    def judged(*exponents):
        rng = np.random.default_rng(0)
        return verdicts(iterations.head_to_head({
            name: Scaling({"l_tr": lengths}, {"l_tr": np.array(lengths, float) ** exponent * rng.uniform(
                0.95, 1.05, (16, len(lengths)))}, iterations.USUAL)
            for name, exponent in zip(iterations.HEADS, exponents, strict=True)}))

    assert judged(0.0, -1.0) == ["holds"] * 3
    assert "fails" in judged(-1.0, -1.0)  # gates at one: the two models are the same
    assert "fails" in judged(0.0, 0.0)


def test_a_model_that_learns_nothing_never_reaches_the_loss(tiny_run):
    from iclab import train

    def coin(clean, coin, x):
        return coin

    prompts = replace(tiny_run.prompts, outlier_fraction=0.99, label_rule=coin, outlier_scale=0.0)
    assert np.isnan(iterations.iterations(train(replace(tiny_run, prompts=prompts))))
    assert iterations.a_run("linear", 10, "M1", 8).prompts.relevant_patterns == 8
    assert iterations.a_run("mamba", 10, "1 - p_a", 0.4).prompts.outlier_fraction == pytest.approx(0.6)
    assert one_layer_run("mamba", 10).training.learning_rate == 1.0
