"""The rules of `cot.stages`: each passes sound results and fails on what is broken in its way."""

from __future__ import annotations

import numpy as np
import pytest
from every_entry import verdicts

from iclab.core.spec import replace
from iclab.papers.beyond import cot_stages
from iclab.papers.beyond.cot_bounds import KINDS, Attention, attention_of, closed_form, first_stage, second_stage
from iclab.papers.beyond.cot_stages import FAST, PAPER, PROOF, Followed, Stages, look_at_trained, setting_run, together
from iclab.training import Trained
from iclab.training.chain_order import ChainWeights, all_numbers, from_numbers
from iclab.training.chain_population import ChainAttended

NOISE = 1 + 0.001 * np.arange(8)[:, None]
STEPS = np.geomspace(5, 20_000, 60)


def attention(elsewhere_power=1.0, at=5.0, K=3):
    """Attention that leaves other steps like a power of t, and then gathers on the query's pattern."""
    elsewhere = np.minimum(0.6, (at / STEPS)**elsewhere_power) * NOISE
    p = (1 - elsewhere) * (0.3 + 0.68 * STEPS / (STEPS + 300)) * np.ones_like(NOISE)
    rows = [[attention_of(ChainAttended([a], [1 - b], [0.0]), K) for a, b in zip(*row, strict=True)]
            for row in zip(p, elsewhere, strict=True)]
    return Attention(*(np.array([[of[name] for of in row] for row in rows]) for name in Attention._fields))


def followed(setting, gradients, T=100.0, **changes):
    """A setting whose gradients are functions of its attention."""
    run, of = setting_run(setting, 100), attention(K=setting_run(setting, 100).prompts.reasoning_steps, **changes)
    values = gradients(of, run.prompts)
    return Followed(run, STEPS, {kind: np.repeat(values[kind][..., None], 2, axis=2) for kind in KINDS}, of,
                    T * NOISE[:, 0])


def within(of, prompts):
    """Gradients that the bounds of both stages allow."""
    middle = {}
    for kind in KINDS:
        early = [bound.values for bound in first_stage(of, prompts) if bound.kind == kind]
        early = np.mean(early, axis=0) if len(early) > 1 else early[0] - 0.001
        limit = next(bound for bound in second_stage(of, prompts, 0.1) if bound.kind == kind).values
        late = 1.1 * limit if kind == (True, True) else 0.5 * limit
        middle[kind] = np.where(of.elsewhere.mean(axis=0) > 0.1, early, late)
    return middle


def stages(gradients, **changes):
    trained = {setting: followed(setting, gradients, **changes) for setting in (PAPER, PROOF, FAST)}
    by_alpha = {alpha: followed(PROOF, gradients, at=2 / alpha) for alpha in (0.4, 0.6, 0.8)}
    return Stages(trained, by_alpha, {name: trained[name] for name in (PAPER, FAST)})


def scaled(factor, gradients=closed_form):
    return lambda of, prompts: {kind: factor * values for kind, values in gradients(of, prompts).items()}


def exchanged(of, prompts):
    """The gradient between columns of one step as if it were that between columns of two, and the other way round."""
    values = closed_form(of, prompts)
    return {(pattern, step): values[pattern, not step] for pattern, step in values}


BOUNDED, CLOSED = stages(within), stages(closed_form)
SLOW, LOGARITHMIC = stages(within, elsewhere_power=0.6), stages(within, elsewhere_power=4.0, at=50.0)
TIMES = CLOSED._replace(predicted={PAPER: CLOSED.trained[PAPER]._replace(T=130.0 * NOISE[:, 0])})
SOUND = {"lemma F.5": BOUNDED, "lemma F.6": LOGARITHMIC, "lemma F.7": BOUNDED, "a closed form": CLOSED,
         "how the first stage ends": BOUNDED, "T of chains": CLOSED}
PARTS = {part.place: part for part in cot_stages.ENTRY.parts}


@pytest.mark.parametrize("place", SOUND)
def test_sound_results_hold(place):
    assert set(verdicts(PARTS[place].checks(SOUND[place]))) == {"holds"}


@pytest.mark.parametrize(("place", "results"), [
    ("lemma F.5", stages(scaled(-1.0, within))),
    ("lemma F.5", stages(scaled(0.0))),
    ("lemma F.5", stages(exchanged)),
    ("lemma F.5 at a smaller epsilon", CLOSED),
    ("lemma F.6", BOUNDED),
    ("lemma F.6", LOGARITHMIC._replace(by_alpha={a: followed(PROOF, within, at=0.2 / a**3) for a in (0.3, 0.4)})),
    ("lemma F.7", stages(scaled(-1.0, within))),
    ("lemma F.7", stages(scaled(0.0))),
    ("a closed form", stages(scaled(1.2))),
    ("a closed form", stages(exchanged)),
    ("how the first stage ends", SLOW),
    ("how the first stage ends", LOGARITHMIC),
    ("T of chains", TIMES),
])
def test_broken_results_fail(place, results):
    assert "fails" in verdicts(PARTS[place].checks(results))


def test_bounds_are_those_of_the_paper():
    """Equations 30 to 38 by hand for one prompt with p = 1/4, at M 20, K 3, alpha 0.6."""
    p, q, a, K, M = 0.25, 0.75, 0.04, 3, 20
    prompts = setting_run(PAPER, 10, 0.6).prompts
    of = Attention(*(np.array([[value]]) for value in attention_of(ChainAttended([p], [0.5], [0.1]), K).values()))
    early = [float(bound.values[0, 0]) for bound in first_stage(of, prompts)]
    common31 = (-4 - 7 * q * (1 + a)) * p * q / (K * M)
    upper32 = (-a + (2 + 5 * a) * p) * q**2 / (K * M) - q**2 * a / K
    assert np.allclose(early, [
        q**2 * (-4 * p * (1 + a) + a * (1 + 4 / 3)) / (K * M) - a / K * q**2,
        common31 + a / K * q**2, common31 + p * q**2 * (1 + a) / K,
        upper32 + q**2 * (-p + q * a) / K, upper32,
        p * q**2 * (1 - a) / (K * M) + q**2 * a / K,
        p * q**2 * (-1 - a) / (K * M) + q**2 * p * (1 + a) / K])
    late = [float(bound.values[0, 0]) for bound in second_stage(of, prompts, 0.1)]
    assert np.allclose(late, [-2 * p * q**2 / M, 0.1, p * q**2 / (2 * M), 0.1])


@pytest.mark.parametrize(("code", "verdict"), [(True, "holds"), (False, "fails")])
def test_the_closed_form_is_that_of_measured_gradients_if_keys_have_a_code(code, verdict):
    """At weights half-way through training."""
    run = setting_run(PAPER, 10)
    run = replace(run, model=replace(run.model, key_positions=code))
    middle = ChainWeights((0.6, 0.0), (0.0, 0.0), np.zeros(3), 1.5 * np.eye(3))
    numbers = {name: np.asarray(value)[None] for name, value in all_numbers(middle).items()}
    models = [Trained(run.seeded(seed), None, None, np.array([5]), np.zeros(1), numbers) for seed in range(3)]
    found = together(run, [5], look_at_trained(models, [5], 3_000), [1.0])
    checks = verdicts(cot_stages.as_in_closed_form(CLOSED._replace(trained={PAPER: found, PROOF: found})))
    assert (set(checks) == {"holds"}) if verdict == "holds" else ("fails" in checks)


def test_numbers_of_a_probe_make_the_weights_again():
    weights = ChainWeights((0.6, 0.1), (0.2, 0.3), np.arange(2.0), np.arange(4.0).reshape(2, 2))
    again = from_numbers({name: np.asarray(value)[None] for name, value in all_numbers(weights).items()}, 0)
    assert all(np.array_equal(mine, other) for mine, other in zip(weights, again, strict=True))
