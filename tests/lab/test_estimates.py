"""Estimates against synthetic experiments whose truth is known: intervals cover it, and a true part rarely fails."""

from __future__ import annotations

import re

import numpy as np
import pytest

from iclab.lab.claims import Check, between, judged, worst, worst_verdict
from iclab.lab.estimates import Difference, Mean, Power, Rate, Share, power, powers, spread
from iclab.lab.verify import REFERENCES, shipped_reference

EXPERIMENTS = 1_000
SEEDS = (4, 6, 8)
X = np.array([2.0, 3.0, 5.0, 8.0, 12.0])


def means(rng, seeds):
    return Mean(rng.normal(0.3, 0.1, seeds)), 0.3


def rates(rng, seeds):
    """Seeds differ, and each is measured on finitely many prompts."""
    return Rate(rng.binomial(1_000, rng.beta(20, 380, seeds)) / 1_000, 1_000, above=0.01), 0.05 - 0.01


def rare_errors(rng, seeds):
    """About one error per seed: their spread alone would say too little."""
    return Rate(rng.binomial(2_000, 0.0005, seeds) / 2_000, 2_000), 0.0005


def differences(rng, seeds):
    """Two models on the same prompts, whose luck they share."""
    luck = rng.normal(0, 0.2, seeds)
    return Difference(0.5 + luck + rng.normal(0, 0.02, seeds), 0.4 + luck + rng.normal(0, 0.02, seeds)), 0.1


def shares(rng, seeds):
    return Share(rng.random(seeds) < 0.7), 0.7


def exponents(rng, seeds):
    """Every seed has its own level and slope, and every point its own noise."""
    slopes = rng.normal(-1.0, 0.1, seeds)[:, None]
    logs = rng.normal(2, 0.3, seeds)[:, None] + slopes * np.log(X) + rng.normal(0, 0.1, (seeds, len(X)))
    return power(X, np.exp(logs)), -1.0


KINDS = (means, rates, rare_errors, differences, shares, exponents)


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover_the_truth(kind, seeds):
    rng = np.random.default_rng(seeds)
    covered = 0
    for _ in range(EXPERIMENTS):
        estimate, truth = kind(rng, seeds)
        low, high = estimate.interval()
        covered += low <= truth <= high
    assert covered / EXPERIMENTS >= 0.94


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("checks", [1, 5])
def test_a_true_part_rarely_fails(kind, checks):
    """Thresholds are the truth itself, the hardest case."""
    rng = np.random.default_rng(checks)
    failed = 0
    for _ in range(EXPERIMENTS):
        drawn = [kind(rng, 4) for _ in range(checks)]
        failed += worst_verdict(judged(Check("", estimate, ("<=", ">=")[i % 2], truth)
                                       for i, (estimate, truth) in enumerate(drawn))) == "fails"
    assert failed / EXPERIMENTS <= 0.05


def test_the_worst_of_many_true_estimates_rarely_fails():
    rng = np.random.default_rng(0)
    failed = 0
    for _ in range(EXPERIMENTS):
        estimates = [(str(i), Mean(rng.normal(0.0, 1.0, 4))) for i in range(12)]
        failed += judged([worst("worst ({})", estimates, "<=", 0.0)])[0].verdict == "fails"
    assert failed / EXPERIMENTS <= 0.05


def test_a_false_part_is_found_out():
    """Not only wide intervals: with a distance of five deviations nearly every experiment decides."""
    rng = np.random.default_rng(0)
    verdicts = [worst_verdict(judged([Check("", Mean(rng.normal(1.0, 0.1, 6)), "<=", 0.5)])) for _ in range(200)]
    assert verdicts.count("fails") > 190


def test_intervals_grow_with_the_checks_of_a_part_but_not_with_two_about_one_number():
    estimate = Mean([0.1, 0.2, 0.3, 0.2])
    alone = judged([Check("a", estimate, "<=", 1.0)])[0]
    twice = judged(between("a", estimate, 0.0, 1.0))[0]
    beside = judged([Check("a", estimate, "<=", 1.0), Check("b", Mean([1.0, 2.0]), ">=", 0.0)])[0]
    assert (alone.low, alone.high) == (twice.low, twice.high)
    assert alone.level == 0.95
    assert beside.level == 0.975
    assert beside.high > alone.high


def test_no_error_at_all_still_has_an_interval():
    assert Rate(np.zeros(4), 1_000).interval()[1] == pytest.approx(0.00096, rel=0.01)
    assert Difference(np.zeros(4), np.zeros(4), 1_000).interval() == pytest.approx((-0.00096, 0.00096), rel=0.01)


def test_test_noise_is_told_apart_from_seed_noise():
    rng = np.random.default_rng(1)
    same = Rate(rng.binomial(500, 0.2, 2_000) / 500, 500).detail
    assert same["test_noise"] == pytest.approx(np.sqrt(0.16 / 500), rel=0.02)
    assert same["seed_noise"] < 0.3 * same["test_noise"]
    p = np.clip(rng.normal(0.2, 0.05, 2_000), 0, 1)
    assert Rate(rng.binomial(500, p) / 500, 500).detail["seed_noise"] == pytest.approx(0.05, rel=0.1)


def test_one_regression_gives_the_exponents_of_all_settings():
    a, b = np.array([1.0, 2, 4, 8, 4, 4, 4]), np.array([3.0, 3, 3, 3, 6, 9, 12])
    counts = np.stack([level * a**-1.5 * b**0.5 for level in (1.0, 2.0, 5.0)])
    fitted = powers({"a": a, "b": b}, counts)
    assert fitted["a"].value == pytest.approx(-1.5)
    assert fitted["b"].value == pytest.approx(0.5)
    assert fitted["a"].detail["curvature"] == pytest.approx(0.0, abs=1e-9)
    bent = power(X, np.exp(0.3 * np.log(X)[None] ** 2 + np.zeros((3, 1))))
    assert bent.detail["curvature"] == pytest.approx(0.3)


def test_a_missing_count_leaves_the_exponent_open():
    counts = np.ones((3, 5))
    counts[1, 2] = np.nan
    assert judged([Check("", power(X, counts), "<=", 1.0)])[0].verdict == "inconclusive"
    assert judged([Check("", Power(np.array([1.0])), "<=", 2.0)])[0].verdict == "inconclusive"  # one seed


def test_starts_and_data_are_told_apart():
    rng = np.random.default_rng(2)
    starts, data = rng.normal(0, 3.0, (200, 1)), rng.normal(0, 1.0, (1, 200))
    parts = spread(starts + data + rng.normal(0, 0.2, (200, 200)))
    assert parts.starts == pytest.approx(3.0, rel=0.15)
    assert parts.data == pytest.approx(1.0, rel=0.15)
    assert parts.rest == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize("scale", REFERENCES)
def test_no_interval_of_an_error_rate_leaves_the_unit_interval(scale):
    """Of every rule, the earlier ones too, in the runs that ship. What is above a floor may lie below it."""
    parts = [part for claim in shipped_reference(scale)["claims"] for part in claim["parts"]]
    checks = [check for part in parts for rule in (part, *part["earlier_rules"]) for check in rule["checks"]]
    rates = [check for check in checks if check["kind"] in ("rate", "share") and "excess" not in check["name"]]
    shares = [check for check in checks if check["kind"] == "mean"
              and re.match(r"(the |largest |least )?(share of|attention on|1 - attention)", check["name"])]
    assert len(rates) > 100
    assert len(shares) > 10
    for check in rates + shares:
        low, high = check["interval"]
        assert low is None or 0 <= low <= high <= 1, check
    called_means = [check["name"] for check in checks if check["kind"] == "mean"
                    and re.match(r"(the |largest |least )?error ", check["name"])]
    assert called_means == []  # an error rate is a Rate, which knows its range and its prompts
