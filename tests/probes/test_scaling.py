"""Power laws: the step at which a loss is reached, and exponents with their intervals."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from iclab.probes.scaling import exponent, first_below, iterations_to


def test_the_step_at_which_a_loss_is_reached():
    trained = SimpleNamespace(steps=np.array([10, 20, 30]), loss=np.array([1.0, 0.6, 0.2]))
    assert iterations_to(trained, 0.4) == pytest.approx(25)
    assert iterations_to(trained, 1.5) == 10
    assert np.isnan(iterations_to(trained, 0.1))


def test_an_exponent_and_its_interval():
    x, random = (1.0, 2.0, 4.0, 8.0), np.random.default_rng(0)
    counts = 5 * np.array(x) ** -1.5 * np.exp(0.05 * random.standard_normal((8, 4)))
    interval = exponent(x, counts)
    assert interval.low < -1.5 < interval.high
    assert interval.high - interval.low < 0.1
    assert np.isnan(exponent(x, np.full((3, 4), np.nan)).mean)


def test_first_below():
    assert first_below([1, 2, 3, 4], np.array([1.0, 0.5, 0.1, 0.0]), 0.3) == pytest.approx(2.5)
    assert first_below([1, 2, 3], np.array([0.1, 0.9, 0.1]), 0.5) == pytest.approx(2.5)  # for good, not the first time
    assert first_below([1, 2], np.array([0.1, 0.1]), 0.5) == 1
    assert np.isnan(first_below([1, 2], np.array([0.1, 0.9]), 0.5))
