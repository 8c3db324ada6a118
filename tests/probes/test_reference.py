"""The floor and the Bayes predictor against brute force."""

from __future__ import annotations

from itertools import product

import jax
import numpy as np
import pytest

from iclab import Classification, bayes_predictor, information_floor, measure_error, replace

SMALL = Classification(dimension=8, relevant_patterns=4, irrelevant_patterns=2, outlier_patterns=2, prompt_length=3,
                       decisive_fraction=0.6, outlier_fraction=0.4)


def enumerated(spec, prompt, knows_rule):
    """Log odds by enumeration of all tasks, example by example."""
    weight = {1: 0.0, -1: 0.0}
    truth = prompt.truth
    query, alpha, others = truth.pattern[-1], spec.decisive_fraction, spec.relevant_patterns - 2
    for a, b in product(range(spec.relevant_patterns), repeat=2):
        if a == b or query not in (a, b):
            continue
        chance = 1.0
        for pattern, y, outlier in zip(truth.pattern[:-1], prompt.y[:-1], truth.outlier[:-1], strict=True):
            if pattern in (a, b):
                clean = 1 if pattern == a else -1
                chance *= alpha / 2
                if not outlier:
                    chance *= clean == y
                elif knows_rule:
                    chance *= {"flip": -clean == y, "target": y == 1, "random": 0.5}[spec.label_rule]
                else:
                    chance *= 0.5
            else:
                label_chance = {"flip": 0.5, "target": float(y == 1), "random": 0.5}[spec.label_rule]
                chance *= (1 - alpha) / others * (label_chance if outlier and knows_rule else 0.5)
        weight[1 if query == a else -1] += chance
    return np.log(max(weight[1], 1e-300)) - np.log(max(weight[-1], 1e-300))


@pytest.mark.parametrize("rule", ["flip", "target", "random"])
@pytest.mark.parametrize("knows_rule", [False, True])
def test_bayes_agrees_with_enumeration(rule, knows_rule):
    spec = replace(SMALL, label_rule=rule)
    batch = spec.sample(3, 60).numpy()
    scores = bayes_predictor(spec, knows_rule=knows_rule)(batch)
    for number in range(60):
        expected = enumerated(spec, jax.tree.map(lambda field, number=number: field[number], batch), knows_rule)
        if abs(expected) < 1e-4:
            assert scores[number] == pytest.approx(1e-6)
        elif abs(expected) < 20:
            assert scores[number] == pytest.approx(expected, rel=1e-3, abs=1e-3)
        else:
            assert np.sign(scores[number]) == np.sign(expected)


@pytest.mark.parametrize(("decisive", "outlier", "length"), [(1.0, 0.8, 20), (0.6, 0.4, 5), (1.0, 0.0, 3)])
def test_bayes_reaches_the_floor_and_no_further(decisive, outlier, length):
    spec = Classification(decisive_fraction=decisive, outlier_fraction=outlier, prompt_length=length)
    floor = information_floor(spec)
    assert floor == pytest.approx((1 - decisive * (1 - outlier)) ** length / 2)
    rate = measure_error(bayes_predictor(spec), spec, count=20_000)
    assert rate.high > floor
    if decisive == 1:
        assert rate.low <= floor


def test_knowing_the_rule_beats_the_floor():
    spec = Classification(outlier_fraction=0.8, label_rule="flip")
    rate = measure_error(bayes_predictor(spec, knows_rule=True), spec, count=5000)
    assert rate.high < information_floor(spec)
