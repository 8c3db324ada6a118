"""The rules on training, on queries and keys, and on new patterns in the icl paper: each passes sound results and fails
on a suitable broken model."""

from __future__ import annotations

import numpy as np
import pytest
from every_entry import verdicts

from iclab import train_many
from iclab.lab.estimates import Difference
from iclab.lab.powers import Scaling
from iclab.papers.icl import alpha, directions, iterations, norms, ood, start, sums
from iclab.papers.icl.mechanism import PLACES, along, inside
from iclab.papers.icl.settings import one_layer_run
from iclab.papers.mamba.trained import untrained
from iclab.probes import model_errors
from iclab.theory.icl import ITERATIONS, first_steps

SEEDS = list(range(8))


@pytest.fixture(scope="module")
def models():
    """Eight seeds of the one-layer Transformer, trained briefly."""
    return train_many([one_layer_run(0.6, 600).seeded(seed) for seed in SEEDS], probe=inside)


def worst(checks):
    """The worst verdict of a part's checks."""
    return next(verdict for verdict in ("fails", "inconclusive", "holds") if verdict in verdicts(checks))


def test_a_sufficient_number_of_iterations():
    axes, usual = iterations.SIZES["full"].axes, iterations.USUAL
    theory = iterations.THEORY | {"M1": 1.2, iterations.FIXED: 1.2, "m": 0.0}

    def judged(change):
        counts = {axis: np.tile(change(np.array(values) / usual[axis], theory[axis]), (8, 1))
                  for axis, values in axes.items()}
        scaling = Scaling(axes, counts, usual)
        return {axis: worst(part.checks(scaling)) for axis, part in iterations.PARTS.items()}

    assert set(judged(lambda x, power: x**power).values()) == {"holds"}
    steeper, flatter = judged(lambda x, power: x ** (power - 0.5)), judged(lambda x, power: x ** (power + 0.5))
    assert {axis for axis, verdict in steeper.items() if verdict == "fails"} == {"eta", "beta'", "delta"}
    assert {axis for axis, verdict in flatter.items() if verdict == "fails"} == {
        "eta", "beta", iterations.FIXED, "m", "M1"}
    assert set(judged(lambda x, power: x * np.nan).values()) == {"fails"}


def test_runs_along_the_axes(models):
    assert 50 < iterations.iterations(models[0]) < 600
    wider = iterations.a_run("M1", 12)
    assert (wider.prompts.irrelevant_patterns, wider.model.neurons) == (18, 400)
    assert iterations.a_run(iterations.FIXED, 12).model.neurons == 100


def test_powers_of_alpha():
    size = alpha.SIZES["full"]
    steps, lengths = 100 * np.array(size.fractions) ** (-2 / 3), np.array(size.lengths)
    # A loss that is 0.1 at 4 / alpha examples.
    losses = np.stack([0.4 / fraction / lengths for fraction in size.short])

    def judged(T, loss, at_small_start=1.0):
        counts = {(setting, alpha.TARGET): np.tile(T ** (at_small_start if setting[0] < 0.1 else 1.0), (12, 1))
                  for setting in alpha.STARTS}
        results = alpha.Measured(size, counts, np.tile(loss, (8, 1, 1)), np.zeros((8, *loss.shape)))
        return [worst(part.checks(results)) for part in alpha.ENTRY.parts]

    assert judged(steps, losses) == ["holds"] * 5
    assert judged(steps, losses, at_small_start=1.3) == ["holds"] * 4 + ["fails"]
    assert judged(steps, losses, at_small_start=2.0) == ["fails", "holds", "holds", "holds", "fails"]
    assert judged(np.full_like(steps, 100.0), np.tile(0.4 / lengths, (5, 1))) == ["holds"] + ["fails"] * 4
    assert judged(np.full_like(steps, np.nan), np.ones_like(losses)) == ["fails"] * 5
    assert alpha.a_run(0.6, 8, 10, (0.2, 1.0)).model.init_scale == 0.2


def test_the_law_of_the_first_steps():
    base = start.a_run(start.USUAL, "m", 200)
    assert base.training.steps == int(start.LONG * first_steps(base))
    for axis, value, exponent in (("beta", 6.0, -2), ("alpha", 0.4, -1), ("M1", 24, 0.5), ("|q|", 2.0, -1)):
        ratio = first_steps(start.a_run(start.USUAL, axis, value)) / first_steps(base)
        np.testing.assert_allclose(ratio, (value / start.USUAL[axis]) ** exponent)
    # m_b / m is all of the start if neurons are few, delta^2 if they are many.
    for neurons, of_delta, of_neurons in ((10.0, -1, 1), (1e8, -2, 0.5)):
        here = first_steps(start.a_run(start.USUAL, "m", neurons))
        more = first_steps(start.a_run(start.USUAL, "m", 2 * neurons))
        larger = first_steps(start.a_run({**start.USUAL, "m": neurons}, "delta", 0.1))
        np.testing.assert_allclose([np.log2(more / here), np.log2(larger / here)], [of_neurons, of_delta], atol=0.02)


@pytest.mark.parametrize(("law", "expected"), [
    (first_steps, ["holds"] * 3), (lambda run: 1.0, ["fails"] * 3), (lambda run: np.nan, ["inconclusive"] * 3),
    (lambda run: ITERATIONS.order(run, None), ["fails", "holds", "fails"])])
def test_which_law_the_counts_follow(law, expected):
    size = start.SIZES["full"]
    groups = {"few neurons": (start.USUAL, size.axes), "many neurons": (start.WIDE, size.wide)}
    runs = {group: {axis: [start.a_run(usual, axis, value) for value in values] for axis, values in axes.items()}
            for group, (usual, axes) in groups.items()}
    noise = np.random.default_rng(0).normal(1, 0.01, (8, 1))
    scalings = {group: Scaling(axes, {axis: noise * [law(run) for run in runs[group][axis]] for axis in axes}, usual)
                for group, (usual, axes) in groups.items()}
    orders = [{group: {axis: [order(run) for run in of] for axis, of in axes.items()} for group, axes in runs.items()}
              for order in (first_steps, lambda run: ITERATIONS.order(run, None))]
    measured = start.Measured(scalings, *orders)
    assert [worst(part.checks(measured)) for part in start.ENTRY.parts] == expected


def measured_norms(whole, part, *, others, along_partners=-1.0, drift=0.0):
    """Measurements in which the parts along other patterns are `others(M1)`."""
    patterns = norms.SIZES["full"].patterns
    values = {norms.OWN: np.full(len(patterns), part[:, -1].mean()), norms.PARTNERS: np.full(4, along_partners)}
    noise = np.random.default_rng(0).normal(1, 0.001, (4, 1))
    parts = {(family, vector, quantity): noise * values.get(quantity, others(np.array(patterns, float)))
             for family in norms.FAMILIES for vector in norms.VECTORS for quantity in norms.QUANTITIES}
    parts |= {(norms.OUTSIDE, *key[1:]): array for key, array in list(parts.items())}
    sizes = {where: {M1: M1 for M1 in patterns} for where in (*norms.FAMILIES, norms.OUTSIDE)}
    longer = {vector: Difference(noise[:, 0] * (0.2 + drift), noise[:, 0] * 0.2) for vector in norms.VECTORS}
    return norms.Measured({("query", place): norms.estimates(whole, part) for place in PLACES}, sizes, parts, longer)


def test_parts_within_their_order(models):
    whole, part = along(models, "query norm/in domain"), along(models, "query along its pattern/in domain")
    assert (part <= whole).all()

    def judged(*args, **options):
        measured = measured_norms(*args, **options)
        return {part.place: worst(part.checks(measured)) for part in norms.PARTS}

    small = judged(part, part, others=lambda M1: 0.15 / M1)
    assert set(small.values()) == {"holds"}
    assert judged(whole, part, others=lambda M1: 0.15 / M1)[norms.GROWTH] == "holds"
    # Before training nothing has grown; with parts that stay as large as the token's own nothing is small.
    broken = judged(part[:, :1], part[:, :1], others=lambda M1: np.full_like(M1, 0.9), along_partners=0.0, drift=0.3)
    assert set(broken.values()) == {"fails"}


def test_an_untrained_model_has_no_parts_along_others():
    run = directions.a_run(4, 1)
    ((query, key),) = norms.relative_parts([untrained(train_many([run])[0])], False)
    named = dict(zip(norms.QUANTITIES, query, strict=True))
    # At the start W_Q and W_K are multiples of the identity.
    assert named[norms.RELEVANT] == key[norms.QUANTITIES.index(norms.RELEVANT)] == 0
    assert 0.1 < named[norms.IRRELEVANT] < 0.5
    assert named[norms.REST] < 0.2
    assert named[norms.OWN] == pytest.approx(run.model.init_scale * run.prompts.pattern_norm)
    assert key[norms.QUANTITIES.index(norms.LABEL)] == 0


def test_new_patterns_among_others():
    x = np.eye(30)[[0, 5, 6, 29]]
    np.testing.assert_array_equal(directions.among(x, 6, 24), x)
    np.testing.assert_array_equal(directions.among(x, 8, 8), np.eye(16)[[0, 5, 8, 15]])


def test_training_takes_from_partners_what_it_gives():
    runs = [directions.a_run(6, 400, tasks) for tasks in norms.FAMILIES.values()]
    place = norms.QUANTITIES.index(norms.PARTNERS)
    values = norms.relative_parts(train_many([run.seeded(1000) for run in runs]), False)[..., place]
    assert (np.abs(values + 1) < 0.25).all()
    assert directions.a_run(12, 1000).model.neurons > 4 * directions.a_run(6, 1000).model.neurons


def test_the_coefficient_sum(models):
    at = ood.ALL["softmax"]

    def errors_of(some):
        tests = [ood.out_of_domain(0.6, total) for total in at]
        both = [model_errors(some, tests, count=1000, seeds=SEEDS, measure=measure) for measure in ("error", "hinge")]
        return ood.Errors(at, both[0], 1000, tests, both[1])

    assert worst(ood.small_beyond(errors_of(models))) == "holds"
    assert worst(ood.small_loss_beyond(errors_of([untrained(model) for model in models]))) == "fails"
    for sums_of in ood.ALL.values():
        falls = np.where(np.array(sums_of) < 1, 0.3, 0.0) + np.zeros((4, 1))
        cliff = ood.Errors(sums_of, falls, 1000, [], falls)
        smooth = cliff._replace(values=0 * falls)
        parts = ood.ENTRY.parts[:4]
        assert [worst(part.checks(dict.fromkeys(("softmax", "gpt2", "tame"), cliff))) for part in parts] == [
            "holds"] * 4
        assert [worst(part.checks(dict.fromkeys(("softmax", "gpt2", "tame"), smooth))) for part in parts] == [
            "holds", *["fails"] * 3]


def curves(passes, hinge):
    """Curves at every setting, whose error passes 0.01 at `passes(delta)`."""
    size, noise = sums.SIZES["full"], np.linspace(-0.01, 0.01, 6)[:, None]
    error = {delta: np.clip(0.01 + 0.1 * (passes(delta) + noise - np.array(sums.SUMS)), 0, 1) for delta in size.deltas}
    return {(norm, time, delta): sums.Curves(error[delta], hinge(np.array(sums.SUMS)) + 0.001 * noise)
            for norm in size.norms for time in size.times for delta in size.deltas}


def test_where_the_error_passes():
    found = curves(lambda delta: 0.5 - np.log10(delta / 0.13), lambda total: 0.5 - 0.3 * total)
    np.testing.assert_allclose(found[1.0, 6.0, 0.13].passes.mean(), 0.5, atol=0.01)
    assert worst(sums.moves(found)) == worst(sums.no_cliff(found)) == "holds"
    broken = curves(lambda delta: 1.0, lambda total: np.where(total < 1, 0.5, 0.1))
    assert worst(sums.moves(broken)) == worst(sums.no_cliff(broken)) == "fails"
    assert sums.region(found, 1.0).verdicts()[0][-1] == "holds"
    never = found[1.0, 6.0, 0.13]._replace(error=np.full((6, len(sums.SUMS)), 0.3))
    assert (never.passes == sums.SUMS[-1]).all()
