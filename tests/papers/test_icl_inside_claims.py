"""The rules about attention, neurons, pruning, width, tasks and classical learners: each fails on a broken model."""

from __future__ import annotations

import numpy as np
import pytest
from every_entry import verdicts

from iclab import train_many
from iclab.lab.estimates import Mean, Rate
from iclab.papers.icl import (
    attention,
    baselines,
    context,
    growing,
    matching,
    neurons,
    pruned,
    pruning,
    tasks,
    unseen,
    width,
)
from iclab.papers.icl.mechanism import NEURONS, PLACES, along, inside
from iclab.papers.icl.settings import NEW_SCALE, in_domain, one_layer_run, out_of_domain
from iclab.papers.mamba.trained import untrained
from iclab.probes import UNIT, model_errors
from iclab.probes.by_length import context_errors
from iclab.probes.pruning import ORDERS, neuron_norms

SEEDS = list(range(8))
PATTERNS = (4, 5, 6, 8, 10)


@pytest.fixture(scope="module")
def models():
    """Eight seeds of the one-layer Transformer, trained briefly."""
    return train_many([one_layer_run(0.6, 600).seeded(seed) for seed in SEEDS], probe=inside)


def part_verdicts(entry, measured):
    """The verdicts of each part's checks, by place."""
    return {part.place: verdicts(part.checks(measured)) for part in entry.parts}


def falling(exponent):
    """Numbers that are a power of M1."""
    return growing.Numbers(PATTERNS, np.tile(np.array(PATTERNS, float) ** exponent, (8, 1)))


def test_growing_runs_have_what_the_theorem_asks_for():
    size = growing.GROWING["full"]
    runs = {M1: growing.a_run(M1, size) for M1 in size.patterns}
    assert {M1: run.prompts.irrelevant_patterns for M1, run in runs.items()} == {M1: M1 for M1 in size.patterns}
    assert (runs[6].model.neurons, runs[6].training.steps) == (100, 1_000)
    assert runs[10].model.neurons == 278
    assert runs[5].training.steps < 1_000 < runs[8].training.steps < runs[10].training.steps
    assert list(growing.tests_of(5, size)) == ["in domain"]
    assert np.shape(growing.tests_of(10, size)["out of domain"].pattern_mixtures) == (3, 10)


def test_attention_gathers(models):
    shares = {name: along(models, f"attention/{name}") for name in PLACES}
    for record, exponent, verdict in ((-1, -1.5, "holds"), (0, 0.0, "fails")):
        now = {name: Mean(values[:, record], UNIT) for name, values in shares.items()}
        measured = attention.Measured(now, now["out of domain"], dict.fromkeys(PLACES, falling(exponent)))
        assert {verdict for part in part_verdicts(attention.ENTRY, measured).values() for verdict in part} == {verdict}
        assert all(verdicts(old.checks(measured)) == [verdict] for part in attention.ENTRY.parts
                   for old in part.earlier)


def test_missing_attention(models):
    tests = [make(0.6) for make in PLACES.values()]
    missing = attention.missing_attention(models[:2], tests, 500, SEEDS[:2])
    shares = [along(models[:2], f"attention/{name}")[:, -1] for name in PLACES]
    np.testing.assert_allclose(missing, 1 - np.stack(shares, axis=1), atol=0.04)
    assert attention.missing_attention([untrained(models[0])], tests[:1], 500, [0]).item() > 0.6


def test_large_neurons_turn(models):
    history = {name: along(models, name) for name in NEURONS}
    before = {name: values[:, 0] for name, values in history.items()}
    names = (neurons.INPUT, neurons.LABEL)
    for record, exponent, share, verdict in ((-1, -1.5, 0.4, "holds"), (0, 0.0, 0.0, "fails")):
        shares = growing.Numbers(PATTERNS, share + np.zeros((8, len(PATTERNS))))
        measured = neurons.Measured(before, {name: values[:, record] for name, values in history.items()},
                                    dict.fromkeys(names, shares),
                                    dict.fromkeys(names, shares._replace(values=2 * shares.values)),
                                    dict.fromkeys(names, falling(exponent)))
        assert {verdict for part in part_verdicts(neurons.ENTRY, measured).values() for verdict in part} == {verdict}
        assert all(set(verdicts(old.checks(measured))) == {verdict} for part in neurons.ENTRY.parts
                   for old in part.earlier)


def test_the_set_of_large_neurons(models):
    for name in (neurons.INPUT, neurons.LABEL):
        assert neurons.share_in_set(models[0], name) > 0.4
        assert neurons.share_in_set(untrained(models[0]), name) == 0
        assert neurons.median_missing(models[0], name) < 0.05
        assert neurons.median_missing(untrained(models[0]), name) > 0.5


def measured_pruning(some, rates=(0.0, 0.15, 0.5), exponents=(-0.6, 0.1)):
    """What pruning these models costs, with rows that are powers of M1."""
    error, hinge = (pruned.Values(rates, values)
                    for values in pruned.pruned_values(some, SEEDS, 500, rates))
    small, median = map(falling, exponents)
    between = growing.Numbers(PATTERNS, np.full((8, len(PATTERNS)), 0.01 if exponents[0] < 0 else 0.4))
    few = map(Mean, pruned.losses_without_small(some, SEEDS, 500).T)
    return pruned.Pruned(error, hinge, pruned.Large(pruned.losses_without_large(some, SEEDS, 500)),
                         dict(zip(PLACES, few, strict=True)),
                         {pruned.SMALL_ROW: small, pruned.LARGEST_SMALL: small, pruned.MEDIAN_ROW: median,
                          pruned.BETWEEN: between})


def test_the_theorem_about_pruning(models):
    rules = (pruning.rows_apart, lambda measured: pruning.rows_move(measured, pruned.SMALL_ROW),
             pruning.all_small(pruning.ACCURACY), pruning.hinge_loss, pruning.linear_in_share, pruning.of_context)

    def judged(measured):
        gap = verdicts(pruning.nothing_between(measured))
        assert gap == ["holds" if measured.rows[pruned.BETWEEN].values.max() < 0.05 else "fails"]
        return [verdicts(rule(measured)) for rule in rules]

    assert judged(measured_pruning(models)) == [["holds"] * 2] * 6
    # In an untrained model all neurons are alike, and its loss is 1 with and without them.
    broken = judged(measured_pruning([untrained(model) for model in models], exponents=(0.1, -0.5)))
    assert [part[-1] for part in broken] == ["fails"] * 6
    assert broken[:3] == [["fails"] * 2] * 3
    assert broken[4][0] == "fails"


def test_large_neurons_are_pruned_at_random(models):
    norms = neuron_norms(models[0])
    gone = [np.flatnonzero(neuron_norms(pruned.without_large(models[0], share, 0)) == 0) for share in (0.1, 0.5)]
    assert [len(which) for which in gone] == [10, 50]
    assert set(gone[0]) < set(gone[1])
    assert norms[gone[1]].min() >= np.median(norms)


def test_figures_about_pruning():
    rates, noise = pruned.RATES, np.random.default_rng(0).normal(0, 1e-5, (3, len(pruned.RATES), 8, 3))

    def judged(small, random, decisive):
        curves = {"small": small, "random": random, "large": random + 0.2}
        values = np.stack([np.stack([np.tile(curves[order] * scale, (8, 1)).T for scale in decisive], axis=-1)
                           for order in ORDERS])
        measured = pruned.Values(rates, values + noise)
        rules = (lambda: pruning.shape(measured, "error", 0.005, 0.01, 0.0),
                 lambda: pruning.flat_then_rising(0.0, ">")(pruned.Pruned(measured, measured, None, {}, {})),
                 lambda: pruning.improves(pruned.Pruned(measured, measured, None, {}, {}), [(0.6, 0.8), (0.6, 1.0)]))
        return [verdicts(rule()) for rule in rules]

    at = np.array(rates)
    rising, above = np.maximum(at - 0.15, 0) / 2, at / 2 + 0.01
    assert judged(rising, above, (1.0, 0.5, 0.2)) == [["holds"] * 3, ["holds"] * 2, ["holds"] * 2]
    # Smallest first costs at once, no less than random, and decisive examples make it worse.
    assert judged(above, rising, (0.2, 0.5, 1.0)) == [["fails", "holds", "fails"], ["fails", "holds"],
                                                                ["fails"] * 2]
    assert judged(0 * at, above, (1.0, 1.0, 1.0))[:2] [0] == ["holds", "fails", "holds"]
    assert judged(0.2 - rising / 5, above, (1.0, 1.0, 1.0))[1] == ["holds", "fails"]


def test_width_and_batch():
    measured = width.axes(width.SIZES["full"])
    points = [*measured.neurons, *measured.batches, *measured.few, *measured.small]
    assert {point[2] for point in width.with_batches(measured)} == {11, 16, 32, 64, 128, 192}
    assert {point[1] for point in width.with_neurons(measured)} == {66, 100, 160}

    def judged(loss_of):
        jitter = 1 + 0.01 * np.arange(8)
        losses = {point: loss_of(point) * jitter for point in points}
        return [set(verdicts(part.checks(measured._replace(losses=losses)))) for part in width.ENTRY.parts]

    # A model that needs nothing of what the theorem asks for, an untrained one, and one ruled by the noise of batches.
    assert judged(lambda point: 0.001) == [{"holds"}, {"holds"}, {"fails"}, {"fails"}, {"holds"}]
    assert judged(lambda point: 1.0) == [{"fails"}, {"fails"}, {"holds"}, {"holds"}, {"holds"}]
    noisy = judged(lambda point: 0.5 * width.accuracy_of(point))
    assert noisy[1] == {"holds"}
    assert noisy[4] == {"fails"}


def test_classical_learners(models):
    judged = (2, 2, 30, 2)

    def of_parts(errors):
        measured = errors, baselines.counts(judged)
        return {part.place: verdicts(part.checks(measured))[0] for part in baselines.ENTRY.parts}

    errors = baselines.fit(models, SEEDS, (20,), judged, 2, 1000)
    assert of_parts(errors)["figure 4 (B), out of domain"] != "fails"
    hard = baselines.setting("out of domain", 0.6, 20)
    errors[hard][baselines.PAIRED] = model_errors([untrained(model) for model in models], [out_of_domain(0.6)],
                                                  count=1000, seeds=SEEDS)[:, 0]
    assert of_parts(errors)["figure 4 (B), out of domain"] != "holds"

    def everywhere(ours, others):
        return {name: {baselines.PAIRED: np.full(8, ours), **{learner: np.full(8, others)
                                                              for learner in baselines.baselines()}} for name in errors}

    many = baselines.counts((1000,) * 4)
    for ours, others, verdict in ((0.0, 0.2, "holds"), (0.1, 0.1, "fails")):
        measured = everywhere(ours, others), many
        assert verdicts(baselines.clear("out of domain", 0.6)(measured)) == [verdict]
        assert verdicts(baselines.slight("in domain", 0.8)(measured)) == [{"holds": "fails", "fails": "holds"}[verdict]]


def test_coverage_is_what_counts():
    sets = tasks.task_sets((6, 8))
    for (M1, name), chosen in sets.items():
        assert len(set(chosen)) == int(name.split()[0].rstrip(","))
        assert tasks.covers(chosen, M1) == (name in tasks.enough(M1))
        assert not set(tasks.test_of(M1, chosen).tasks) & set(chosen)

    def judged(error_of):
        errors = {key: error_of(tasks.covers(chosen, key[0])) for key, chosen in sets.items()}
        measured = tasks.Measured({key: Rate(np.full(4, error), 1000) for key, error in errors.items()},
                                  {key: Mean(np.full(4, 2 * error)) for key, error in errors.items()})
        return [set(verdicts(part.checks(dict.fromkeys(tasks.NORMS, measured)))) for part in tasks.ENTRY.parts]

    assert judged(lambda covered: 0.0 if covered else 0.2) == [{"holds"}] * 5
    nothing_learnt, everything_learnt = judged(lambda covered: 0.5), judged(lambda covered: 0.0)
    assert nothing_learnt == [{"fails"}, *[{"fails", "holds"}] * 2, *[{"holds"}] * 2]
    assert everything_learnt == [{"holds"}, *[{"fails", "holds"}] * 2, *[{"fails"}] * 2]
    assert tasks.a_run(8, sets[8, "8 cyclic"], 10).prompts.irrelevant_patterns == 22


def test_prompts_that_the_theorems_are_about(models):
    tests = [in_domain(fraction, tasks="all", prompt_length=length)
             for fraction, length in ((0.2, 20), (0.4, 3), (1.0, 1))]
    assert [matching.least_matching(test) for test in tests] == [2, 1, 1]
    trained = matching.matched_losses(models, tests, 500, SEEDS)
    assert trained.max() < 0.1
    assert (trained[:, 0] < model_errors(models, tests[:1], count=500, seeds=SEEDS, measure="hinge")[:, 0]).all()
    start = matching.matched_losses([untrained(model) for model in models], tests, 500, SEEDS)
    np.testing.assert_allclose(start, 1, atol=0.1)


def test_unseen_tasks(models):
    def judged(some):
        tests = [in_domain(0.8), in_domain(0.8, irrelevant_scale=NEW_SCALE)]
        inside, large = (Rate(rates, 1000) for rates in model_errors(some, tests, count=1000, seeds=SEEDS).T)
        hinge = Mean(model_errors(some, tests[:1], count=1000, seeds=SEEDS, measure="hinge")[:, 0])
        matched = Mean(matching.matched_losses(some, [in_domain(0.8, tasks="all")], 500, SEEDS)[:, 0])
        measured = unseen.Measured({0.8: matched}, {"a task": hinge}, hinge, inside, large)
        rules = [*(part.checks for part in unseen.ENTRY.parts), unseen.FIRST_RULE.checks, unseen.SECOND_RULE.checks]
        return [verdict for rule in rules for verdict in verdicts(rule(measured))]

    assert judged(models) == ["holds"] * 5
    assert judged([untrained(model) for model in models]) == ["fails"] * 5


def test_fewer_decisive_examples_require_more_examples(models):
    grids = context.GRIDS["full"]
    fractions, lengths, _ = grids["softmax"]

    def judged(some, gpt2_errors):
        tests = [context.test_of("softmax", where, fraction, 5.0, max(lengths)) for where in context.WHERE
                 for fraction in fractions]
        by_place = np.split(context_errors(some, tests, lengths, count=500, seeds=SEEDS), 2, axis=1)
        errors = dict(zip(context.WHERE, by_place, strict=True))
        gpt2 = {where: gpt2_errors + np.zeros((4, 4, 4)) for where in context.WHERE}
        losses = {where: {fraction: Mean(matching.matched_losses(some, [context.short_test(where, fraction)], 500,
                                                                 SEEDS)[:, 0]) for fraction in (0.4, 1.0)}
                  for where in context.WHERE}
        measured = context.estimates(grids, errors, errors["out of domain"], gpt2, gpt2, losses)
        at_six = 0.01 + np.stack([np.asarray(loss.values) for loss in losses["out of domain"].values()], axis=1)
        measured["growing"] = {fraction: growing.Numbers((6, 10), at_six[:, [i, i]])
                               for i, fraction in enumerate(context.FEW_DECISIVE)}
        return {part.place: set(verdicts(part.checks(measured))) for part in context.ENTRY.parts}

    trained = judged(models, np.linspace(0.5, 0.0, 4)[None, :, None])
    assert trained[context.SUFFICIENT["in domain"]] == {"holds"}
    assert "fails" not in {verdict for place, part in trained.items() if "3.4" not in place for verdict in part}
    broken = judged([untrained(model) for model in models], 0.3)
    assert all("fails" in part for part in broken.values())
    assert broken[context.AT_SIX] == {"fails"}
