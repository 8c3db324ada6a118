"""The rules on what changes as the problem grows: each passes sound results and fails on untrained models."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from every_entry import verdicts
from untrained import UntrainedLab

from iclab.lab.claims import judged, worst_verdict
from iclab.lab.entries import Size
from iclab.lab.judging import run_entry
from iclab.papers.scaling import batch, irrelevant, length, patterns, softmax, start, width
from iclab.papers.scaling.limits import HEADER, Along, Limit, fit, tabulated
from iclab.sweeps.store import Store

SEEDS, X = 8, (6.0, 9.0, 13.0, 20.0, 40.0)
NOISE = 1 + 0.01 * np.random.default_rng(0).standard_normal((SEEDS, len(X)))
FEW = {
    "scaling.patterns": Size(seeds=4, steps=60, prompts=500, few=(4, 5, 6, 7), many=(4, 5, 6, 7), mamba=(6, 8, 10, 12),
                             steps_per_pattern=10, products=(6, 7, 8, 9), width=20, product_steps=10, room=0),
    "scaling.irrelevant": Size(seeds=4, steps=60, prompts=500, mamba_steps=10, irrelevant=(6, 8, 10, 12), room=0),
    "scaling.width": Size(seeds=4, steps=60, prompts=500, widths=(20, 30, 40, 60)),
    "scaling.batch": Size(seeds=4, steps=10, prompts=500, batches=(32, 64, 128, 256)),
    "scaling.length": Size(seeds=4, steps=60, prompts=500, mamba_steps=10, chain_steps=10, lengths=(10, 14, 20, 28),
                           chain_lengths=(4, 8, 12, 16)),
}


def along(law, what="error"):
    """A number that follows a law of its axis, with a little noise."""
    return Along(what, "M1", X, law(np.array(X)) * NOISE)


def of_part(entry, place, numbers):
    """The verdict of a part."""
    part = next(part for part in entry.parts if part.place == place)
    assert verdicts(part.checks(numbers)), place
    return worst_verdict(judged(part.checks(numbers)))


@pytest.mark.parametrize(("law", "tends"), [
    (lambda x: 2 / x, "0"), (lambda x: 0.3 * x**-0.5, "0"), (lambda x: 0.1 + 3 / x**2, "0.1"),
    (lambda x: 1 - 2 / x, "1"), (lambda x: 0.01 * x, "grows"), (lambda x: 0.02 + 0.001 * x**2, "grows")])
def test_where_a_number_tends(law, tends):
    number = along(law)
    assert number.tends.split(" [")[0] == pytest.approx(tends) or float(number.tends.split(" [")[0]) == pytest.approx(
        float(tends), rel=0.1)


def test_a_number_that_falls_ever_faster_does_not_tend_to_its_start():
    assert along(lambda x: 0.03 - 0.0005 * x).tends in ("0", "not known: too slow")


def test_a_number_without_a_trend_says_so():
    assert along(lambda x: 0.2 + 0 * x).tends.startswith("no trend, near 0.2")


def test_a_limit_needs_four_points_and_finite_numbers():
    assert np.isnan(fit(X[:3], np.ones(3)).constant)
    missing = Along("iterations", "m", X, np.where(np.arange(5) == 2, np.nan, NOISE))
    assert missing.tends == "not known"


def test_the_fit_finds_what_made_the_numbers():
    x = np.array(X)
    found = fit(X, 0.05 + 2 * x**-1.5)
    assert found.constant == pytest.approx(0.05, rel=1e-3)
    assert found.power == pytest.approx(1.5, rel=1e-2)
    np.testing.assert_allclose(found.at(x), 0.05 + 2 * x**-1.5, rtol=1e-3)


def test_no_error_of_all_prompts_counts_as_one():
    number = Along("error", "l", X, np.where(np.array(X) > 10, 0.0, 0.1) + np.zeros((SEEDS, 1)), 1 / 1000)
    assert number.raised.min() == 1 / 1000
    assert number.last.value == 0
    assert number.tends == "0"


def test_intervals_stay_where_the_number_can_lie():
    errors = np.outer(np.array([0.0, 0.0, 0.01]), np.ones(len(X)))
    plain, rate, share = (Along("error", "l", X, errors, **told) for told in
                          ({}, {"prompts": 200}, {"within": (0.0, 1.0)}))
    assert plain.last.interval()[0] < 0  # what is not known to be a rate has Student's interval
    for number in (rate, share):
        for estimate in number.estimates:
            assert estimate.interval()[0] == 0
    none = Along("error", "l", X, 0 * errors, prompts=200)
    assert none.ends(0.001).estimate.interval()[1] > 0.003  # 600 prompts show no more
    floors = (0.2, 0.1, 0.05, 0.02, 0.01)
    excess = Along("excess", "l", X, errors - floors, prompts=200, above=floors)
    assert [estimate.interval()[0] for estimate in excess.estimates] == pytest.approx(-np.array(floors))


def test_a_limit_stays_where_the_number_can_lie():
    pseudo = np.array([-0.5, 0.0, 1.5])
    assert Limit(0.3, pseudo).interval()[0] < 0
    assert Limit(0.3, pseudo, (0.0, 1.0)).interval() == (0.0, 1.0)
    assert np.isnan(Limit(np.nan, np.full(3, np.nan), (0.0, 1.0)).interval()).all()


def test_a_table_of_limits_has_its_header():
    table = tabulated("scaling.some", {"a place": along(lambda x: 1 / x)})
    assert table.header == HEADER
    assert table.rows[0][-1] == "a place"
    assert table.rows[0][2].endswith("at 6")


@pytest.mark.parametrize("entry", [patterns.ENTRY, irrelevant.ENTRY, width.ENTRY, batch.ENTRY, length.ENTRY],
                         ids=lambda entry: entry.id)
def test_no_rule_holds_on_untrained_models(entry, tmp_path):
    few = dataclasses.replace(entry, sizes={"tiny": FEW[entry.id]})
    outcome = run_entry(few, UntrainedLab(Store(tmp_path), "tiny"))
    assert {part.place: part.verdict for part in outcome.claim.parts if part.verdict in ("holds", "tight")} == {}


FALLING, RISING = (lambda x: 0.01 / x), (lambda x: 0.01 * x)
SOUND = {
    "scaling.patterns": {
        patterns.ALL: FALLING, patterns.SHIFT: FALLING, patterns.HINGE: FALLING, patterns.GATHERS: FALLING,
        patterns.RATE: FALLING, patterns.WIDE: FALLING, patterns.LABEL: FALLING, patterns.PATTERN: FALLING,
        patterns.LOSS: FALLING, patterns.PRODUCT: lambda x: 0.4 + 1 / x},
    "scaling.irrelevant": {
        irrelevant.LOSS: lambda x: 0.001 + 0 * x, irrelevant.ATTENTION: lambda x: 0.01 + 0 * x,
        irrelevant.NEURONS: FALLING, irrelevant.ATTACK: lambda x: 0.01 + 0 * x},
    "scaling.width": {
        width.LOSS: FALLING, width.ATTENTION: FALLING, width.PATTERN: FALLING, width.LABEL: FALLING,
        width.SMALL: lambda x: 0.2 + 0 * x, width.STEPS: lambda x: 10 * x**(2 / 3)},
    "scaling.length": {
        length.INSIDE: FALLING, length.BEYOND: FALLING, length.TOLERATED: lambda x: 0.8 + 0 * x, length.HALF: FALLING,
        length.LOSS: FALLING, length.CHAIN: FALLING},
}
BROKEN = {patterns.PRODUCT: lambda x: 0.01 * x**2, width.SMALL: lambda x: 0.001 + 0 * x,
          width.STEPS: lambda x: 10 + 0 * x}


@pytest.mark.parametrize("entry", [patterns.ENTRY, irrelevant.ENTRY, width.ENTRY, length.ENTRY],
                         ids=lambda entry: entry.id)
def test_every_rule_can_hold_and_can_fail(entry):
    sound = {place: along(law) for place, law in SOUND[entry.id].items()}
    broken = {place: along(BROKEN.get(place, RISING)) for place in sound}
    for part in entry.parts:
        assert of_part(entry, part.place, sound) == "holds", part.place
        assert of_part(entry, part.place, broken) in ("fails", "inconclusive"), part.place


def test_batches():
    def numbers(mamba, linear, shorter):
        return {place: Along(place, "B", X, law(np.array(X)) * NOISE)
                for place, law in zip(batch.LENGTHS, (mamba, linear, shorter), strict=True)}

    def verdicts_of(*laws):
        return [of_part(batch.ENTRY, part.place, numbers(*laws)) for part in batch.ENTRY.parts]

    assert verdicts_of(lambda x: 0.5 * x**-0.5, lambda x: 0.5 * x**-0.5, lambda x: 0.1 + 1 / x)[:3] == ["holds"] * 3
    assert verdicts_of(lambda x: 0.9 + 0 * x, lambda x: 0.9 + 0 * x, lambda x: 0.9 + 0 * x) == ["fails"] * 4
    floors = verdicts_of(lambda x: 1 / x, lambda x: 0.02 + 10 / x**4, lambda x: 0.1 + 1 / x**2)
    assert floors[2:] == ["fails", "holds"]  # a floor is no power, though the first sizes fall


def test_starts():
    logs = np.array([2.8, 3.9, 5.1, 6.2, 7.4])
    noise = 1 + 0.002 * np.random.default_rng(1).standard_normal((SEEDS, 5))

    def numbers(law, exponent, softmax):
        made = {f"{name}, logarithm": Along("iterations", "log(1 / delta)", logs, law(logs) * noise)
                for name in start.NAMES.values()}
        made |= {f"{start.NAMES[member]}, {axis}": Along("-exponent", "log(1 / delta)", logs, noise * exponent(
            -start.ITERATION_EXPONENTS[member][axis], logs)) for member, axes in start.AXES.items() for axis in axes}
        return made | {start.SOFTMAX: Along("iterations", "1 / delta", np.exp(logs), softmax(np.exp(logs)) * noise)}

    def verdicts_of(*laws):
        return {of_part(start.ENTRY, part.place, numbers(*laws)) for part in start.ENTRY.parts}

    assert verdicts_of(lambda x: 50 * x, lambda theory, x: theory + 1 / x, lambda x: x**(2 / 3)) == {"holds"}
    assert verdicts_of(lambda x: np.exp(0.67 * x), lambda theory, x: 2 * theory + 1 / x, lambda x: 10 + 0 * x) == {
        "fails"}


def test_steps_follow_the_law_of_the_theorem():
    usual, wide = softmax.a_run(), softmax.a_run(neurons=800)
    assert usual.training.steps == softmax.STEPS
    assert wide.training.steps == pytest.approx(4 * softmax.STEPS, rel=0.02)
    assert softmax.test_of(softmax.a_run(irrelevant_patterns=12)).dimension == 18
