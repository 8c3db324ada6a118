"""Transition matrices: their quality against brute force, and constructors that reach the requested values."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from iclab import SpecError
from iclab.prompts.transitions import (
    circulant,
    exact_transitions,
    one_rival,
    own_pattern_distance,
    quality,
    right_targets,
    same_steps,
    weak_step,
)


def by_paths(A):
    """tau, B and Condition 1, path by path."""
    K, M = A.shape[:2]
    B, right, chain = np.zeros((M, M)), np.ones(M), []
    for start in range(M):
        current = start
        for k in range(K):
            target = max(range(M), key=lambda j, k=k, current=current: A[k, current, j])
            right[start] *= A[k, current, target]
            current = target
        chain.append(current)
        for path in itertools.product(range(M), repeat=K):
            places = (start, *path)
            B[start, path[-1]] += np.prod([A[k, places[k], places[k + 1]] for k in range(K)])
    holds = [int(B[i].argmax()) == chain[i] for i in range(M)]
    return right.min(), B, holds, np.array([B[i, chain[i]] for i in range(M)])


@pytest.mark.parametrize("seed", range(4))
def test_quality_equals_a_sum_over_all_paths(seed):
    A = np.random.default_rng(seed).dirichlet(np.full(4, 0.7), size=(3, 4))
    tau, B, holds, right = by_paths(A)
    computed = quality(A)
    assert computed.tau == pytest.approx(tau)
    assert computed.tau_o == pytest.approx(B.max(axis=1).min())
    second = np.sort(B, axis=1)[:, -2]
    assert computed.rho_o == pytest.approx((1 - second / B.max(axis=1)).min())
    assert computed.rho == pytest.approx(min(1 - np.sort(row)[-2] / row.max() for k in range(3) for row in A[k]))
    assert computed.condition_one == all(holds)
    assert computed.failing.tolist() == [i for i, likeliest in enumerate(holds) if not likeliest]
    np.testing.assert_allclose(computed.right, right)


@settings(deadline=None, max_examples=60)
@given(some.floats(0.02, 0.98), some.floats(0, 1), some.integers(1, 6), some.integers(3, 12), some.data())
def test_a_weak_step_has_the_requested_tau_and_rho(rho, share, steps, patterns, data):
    least, most = 1 / (1 + (patterns - 1) * (1 - rho)), 1 / (2 - rho)
    tau = least**steps + share * (most - least**steps)
    weak = data.draw(some.integers(1, steps))
    transitions = weak_step(tau, rho, steps=steps, patterns=patterns, weak=weak)
    computed = quality(transitions)
    assert computed.tau == pytest.approx(tau)
    assert computed.rho == pytest.approx(rho)
    assert right_targets(transitions).tolist() == [[(i + k) % patterns for i in range(patterns)]
                                                   for k in range(1, steps + 1)]


def test_an_unreachable_tau_is_refused_with_the_range():
    with pytest.raises(SpecError, match=r"tau must be in \[0.0456, 0.833\] when rho is 0.8: .*, got 0.9"):
        weak_step(0.9, 0.8)
    with pytest.raises(SpecError, match=r"rho must be in \(0, 1\), got 1.0"):
        weak_step(0.5, 1.0)
    with pytest.raises(SpecError, match="weak must be a step, 1 to 3, got 4"):
        weak_step(0.5, 0.8, weak=4)


@pytest.mark.parametrize(("tau_o", "rho_o", "steps", "distance"),
                         [(0.4, 0.1, 3, 1), (0.3, 0.1, 2, 1), (0.3, 0.05, 4, 3)])
@pytest.mark.parametrize("condition_one", [True, False])
def test_answers_have_the_requested_quality(tau_o, rho_o, steps, distance, condition_one):
    computed = quality(same_steps(tau_o, rho_o, condition_one=condition_one, steps=steps, distance=distance))
    assert (computed.tau_o, computed.rho_o) == (pytest.approx(tau_o), pytest.approx(rho_o))
    assert computed.condition_one == condition_one


def test_unreachable_answers_are_refused_with_the_range():
    with pytest.raises(SpecError, match=r"tau_o must be in \[0.111, 0.448\] when rho_o is 0.1 with Condition 1 .*, "
                                         "got 0.9"):
        same_steps(0.9, 0.1, condition_one=True)
    with pytest.raises(SpecError, match=r"rho_o must be in \(0, 0.419\] without Condition 1 .*, got 0.9"):
        same_steps(0.2, 0.9, condition_one=False)


def test_the_rival_of_figure_4_can_lead_back_to_the_query():
    distance = own_pattern_distance(3, 10)
    transitions = np.array(same_steps(0.4, 0.1, condition_one=False, distance=distance))
    assert (np.linalg.multi_dot(transitions).argmax(axis=1) == np.arange(10)).all()


def test_a_users_matrices_are_checked():
    good = np.array([[[0.8, 0.2], [0.3, 0.7]]])
    assert quality(good.tolist()).tau == pytest.approx(0.7)
    for bad, message in ((good[0], r"shape \(steps, patterns, patterns\)"),
                         ([[[0.5, 0.5], [0.3, 0.7]]], "one most likely"),
                         ([[[1.2, -0.2], [0.3, 0.7]]], r"transitions\[0\]\[0\] must be probabilities that sum to 1"),
                         ([[[0.8, 0.1], [0.3, 0.7]]], "sum to 1"),
                         ([[["a", 1], [0, 1]]], "numbers"),
                         ([[[1, 0], [1]]], "one size")):
        with pytest.raises(SpecError, match=message):
            quality(bad)


def test_a_tie_of_answers_violates_condition_one():
    A = [[[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]],
         [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.5, 0.25]]]
    computed = quality(A)
    assert computed.rho_o == pytest.approx(0)
    assert not computed.condition_one
    assert 0 in computed.failing


def test_sizes_must_be_whole():
    for make in (lambda: weak_step(0.5, 0.8, steps=2.5), lambda: one_rival(2, 0.7, 0.3),
                 lambda: same_steps(0.4, 0.1, condition_one=True, distance=1.5)):
        with pytest.raises(SpecError, match="must be a whole number"):
            make()
    with pytest.raises(SpecError, match="distance must be another: no matrices are without Condition 1"):
        same_steps(0.3, 0.1, condition_one=False, steps=2, patterns=4, distance=2)


def test_examples_without_error():
    computed = quality(exact_transitions(3, 5))
    assert computed[:5] == (1.0, 1.0, 1.0, 1.0, True)
    assert np.array(circulant([[0.7, 0.2, 0.1]]))[0, 0].tolist() == [0.1, 0.7, 0.2]
