"""One constant per law: recovered if the law is right, spread out if it is not; shared settings count once."""

from __future__ import annotations

import numpy as np
import pytest

from iclab.lab.laboratory import Lab
from iclab.lab.powers import fit_law
from iclab.sweeps.store import Store
from iclab.theory.mamba import ITERATIONS

LAW = ITERATIONS["mamba"]


@pytest.fixture
def lab(tmp_path):
    return Lab(Store(tmp_path), "quick")


def test_a_right_law_gives_back_its_constant(lab):
    orders = {"beta": [1.0, 2.0, 4.0], "eta": [2.0, 8.0]}
    counts = {axis: 3.0 * np.tile(values, (4, 1)) for axis, values in orders.items()}
    fitted = fit_law(LAW, orders, counts, lab)
    constant, = fitted.constants
    assert (constant.value, constant.low, constant.high) == pytest.approx((3.0, 3.0, 3.0))
    assert (constant.settings, constant.seeds) == (4, 4)  # the setting that both axes share counts once
    np.testing.assert_allclose(fitted.line("eta"), [6.0, 24.0])


def test_a_wrong_law_has_no_single_constant(lab):
    fitted = fit_law(LAW, {"beta": [1.0, 2.0, 4.0]}, {"beta": np.full((4, 3), 4.0)}, lab)
    constant, = fitted.constants
    assert (constant.value, constant.low, constant.high) == pytest.approx((2.0, 1.0, 4.0))
    assert "1 to 4" in fitted.words


def test_settings_that_never_finished_do_not_count(lab):
    counts = np.array([[2.0, 4.0, np.nan], [2.0, 4.0, 9.0]])
    assert fit_law(LAW, {"beta": [1.0, 2.0, 4.0]}, {"beta": counts}, lab).constants[0].settings == 2
    nothing = fit_law(LAW, {"beta": [1.0]}, {"beta": np.full((2, 1), np.nan)}, lab)
    assert nothing.constants == []
    assert np.isnan(nothing.line("beta")).all()
