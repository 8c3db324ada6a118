"""The rules of `mamba.dynamics`: each passes sound results and fails on what is broken in its way."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from every_entry import verdicts

from iclab import train
from iclab.core.spec import replace
from iclab.papers.beyond import dynamics, growth
from iclab.papers.beyond.dynamics import Compared, Dynamics, Signs, times
from iclab.papers.beyond.growth import Grown
from iclab.papers.mamba.iterations import a_run, iterations

SAMPLINGS = 3
NOISE = 1 + 0.001 * np.arange(SAMPLINGS)[:, None]
AXES = {"1 - p_a": (0.9, 0.75, 0.6), "M1": (4.0, 6.0, 12.0), "V": (1.0, 3.0), "l_tr": (10.0, 40.0)}


def grown(axis, value, *, t_power=1.0, clean_power=1.0, M1_power=-1.0, V_power=-1.0, p_power=1.0, log_power=1.0,
          late_clean=0.0, others=0.0, even=False, sign=1.0):
    """Order parameters that grow by the lemmas' laws, or by others."""
    at = {"1 - p_a": 0.6, "M1": 6.0, "V": 3.0} | {axis: value}
    clean, M1, V = at["1 - p_a"], at["M1"], at["V"]
    t, T = np.arange(1.0, 2_001.0), 30 * M1
    scale = t**t_power * clean**clean_power * M1**M1_power
    early, late = np.minimum(t, 20.0), 1 / (1 + np.exp((0.8 * T - t) / (0.03 * T)))
    outlier = (1e-4 * early**t_power * clean**clean_power * (1 - clean)**p_power * V**V_power
               + np.log(M1)**log_power / 2 * (t / T if even else late))
    order = {"diagonal": 1e-3 * scale, "partner": 5e-4 * scale, "irrelevant": others * 1e-3 * scale, "others": 0 * t,
             "w relevant": sign * (1e-4 * early**t_power * clean**clean_power * M1**M1_power
                                   + late_clean * M1 * late), "w outlier": outlier}
    return Grown(t, {name: NOISE * values for name, values in order.items()}, T * NOISE[:, 0])


def growth_by(**changes):
    return {(axis, value): grown(axis, value, **changes) for axis, values in AXES.items() for value in values}


def compared(ratio=1.0):
    T = np.array([[300.0, 150.0]])
    return Compared({"eta": (1.0, 2.0)}, {"eta": ratio * NOISE * T}, {"eta": T})


def signs(trained=(-0.7, 0.4, 0.01)):
    return {(6, 1): Signs(NOISE * np.array(trained), np.array([-0.7, 0.4, -0.01]))}


SOUND = Dynamics({"linear": compared(), "mamba": compared(1.04)}, {"mamba": compared()}, signs(), growth_by())


def broken(**changes):
    return SOUND._replace(**changes)


@pytest.mark.parametrize("part", dynamics.ENTRY.parts, ids=lambda part: part.place)
def test_sound_results_hold(part):
    assert set(verdicts(part.checks(SOUND))) == {"holds"}


@pytest.mark.parametrize(("place", "results"), [
    ("T of the linear Transformer", broken(mean_start={"linear": compared(1.2)})),
    ("T of Mamba, from the mean start", broken(mean_start={"mamba": compared(0.8)})),
    ("T of Mamba, from each seed's own gate", broken(own_start={"mamba": compared(1.2)})),
    ("off-diagonal signs", broken(signs=signs((-0.7, -0.4, 0.01)))),
    ("off-diagonal sizes", broken(signs=signs((-0.9, 0.4, 0.01)))),
    ("lemma 3", broken(growth=growth_by(t_power=0.5))),
    ("lemma 3", broken(growth=growth_by(clean_power=2.0))),
    ("lemma 3", broken(growth=growth_by(M1_power=-2.0))),
    ("lemma 3", broken(growth=growth_by(others=0.2))),
    ("lemma 4", broken(growth=growth_by(t_power=0.5))),
    ("lemma 4", broken(growth=growth_by(V_power=-2.0))),
    ("lemma 4", broken(growth=growth_by(M1_power=0.0))),
    ("lemma 4", broken(growth=growth_by(sign=-1.0))),
    ("lemma 5", broken(growth=growth_by(log_power=0.2))),
    ("lemma 5", broken(growth=growth_by(late_clean=0.1))),
    ("the share of poison in lemma 4", broken(growth=growth_by(p_power=0.0))),
    ("two phases of the gate", broken(growth=growth_by(even=True))),
])
def test_broken_results_fail(place, results):
    part = next(part for part in dynamics.ENTRY.parts if part.place == place)
    assert "fails" in verdicts(part.checks(results))


def test_a_gate_that_stays_nearly_shut_breaks_lemma_6():
    """With s = 0.02 every place counts about alike, and the sum grows with the length."""
    shut = {point: of._replace(order=of.order | {"w relevant": np.full_like(of.order["w relevant"], 1.3)})
            for point, of in SOUND.growth.items()}
    assert "fails" in verdicts(growth.lemma6(shut))


def test_weighted_gates_are_those_of_the_family():
    """The closed form against gates of drawn prompts."""
    run = growth.lemma_run("l_tr", 10.0, 1)
    of = growth_by()["l_tr", 10.0]
    z = np.random.default_rng(0).random((20_000, 11)) < run.prompts.outlier_fraction
    z[:, -1] = False
    s = 1 / (1 + np.exp(run.prompts.pattern_norm * of.at("w relevant", 20)[0]
                        + run.prompts.outlier_scale * of.at("w outlier", 20)[0] * z))
    keep = np.cumprod((1 - s)[:, ::-1], axis=1)[:, ::-1]
    drawn = (s[:, :-1] * keep[:, 1:] * np.arange(10, 0, -1)).sum(axis=1).mean()
    assert np.isclose(growth.weighted_gates({("l_tr", 10.0): of}, 10.0)[0], drawn, rtol=0.01)


def test_training_at_another_rate_is_not_as_predicted():
    """The linear Transformer, predicted at its learning rate and trained at that and at four fifths of it."""
    run = partial(a_run, "linear", 300, "eta")
    predicted = np.array([times([run(2.0)], False, 1_000)])
    for rate, verdict in ((2.0, "holds"), (1.6, "fails")):
        T = np.array([[iterations(train(run(rate).seeded(seed)))] for seed in range(3)])
        of = Compared({"eta": (2.0,)}, {"eta": T}, {"eta": predicted})
        checks = verdicts(dynamics.near(dynamics.of_linear)(broken(mean_start={"linear": of})))
        assert verdict in checks
        assert ("fails" in checks) == (verdict == "fails")


def test_lemma_settings_differ_in_one_thing():
    usual = growth.lemma_run(*growth.USUAL, 10)
    assert usual.prompts.tasks == "cyclic:1"
    assert growth.lemma_run("V", 6.0, 10).prompts == replace(usual.prompts, outlier_patterns=6)
    assert growth.lemma_run("M1", 24.0, 10).prompts == replace(usual.prompts, relevant_patterns=24, dimension=44,
                                                               tasks="cyclic:1")
