"""The rules of the selectors paper's claims: each passes sound results and fails on a suitable broken model."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from every_entry import verdicts

from iclab import train_many
from iclab.core.spec import replace
from iclab.lab.premises import premises_of
from iclab.models import forward_batch
from iclab.papers.selectors import attention, decode, features, noise
from iclab.papers.selectors.mechanism import along, at_ends, inside, parts, pattern_norms
from iclab.papers.selectors.patterns import new_patterns, single_tasks
from iclab.papers.selectors.settings import CONSTANT, a_run

SEEDS = [0, 1, 2, 3]
LAST = [13_000, 4_000, 2_400]
"""Last steps along lam*."""


@pytest.fixture(scope="module")
def models():
    """Four seeds, trained briefly and recorded rarely."""
    run = a_run(400)
    run = replace(run, training=replace(run.training, record_every=200))
    return train_many([run.seeded(seed) for seed in SEEDS], probe=inside)


def test_relevant_patterns_grow(models):
    norms = pattern_norms(models)
    assert verdicts(features.relevant_grow(norms)) == ["holds"] * 4
    everything = dict.fromkeys(norms, norms["query relevant"])
    assert verdicts(features.relevant_grow(everything)) == ["holds", "fails", "holds", "fails"]
    before = {name: values[:, :1] for name, values in norms.items()}
    assert verdicts(features.relevant_grow(before)) == ["fails", "holds", "fails", "holds"]


def test_labels_decide(models):
    probed = {name: along(models, name) for name in decode.PROBED}
    assert verdicts(decode.labels_exceed(probed)) == ["holds"]
    assert verdicts(decode.labels_decide(probed)) == ["holds", "holds"]
    assert verdicts(decode.labels_exceed(probed, " after values")) != ["holds"]
    before = {name: values[:, :1] for name, values in probed.items()}
    assert verdicts(decode.labels_decide(before))[0] == "fails"
    swapped = probed | {"error of labels": probed["error of features"], "error of features": probed["error of labels"]}
    assert verdicts(decode.labels_decide(swapped)) == ["fails", "fails"]
    features_alone = probed | {"share": 1 - probed["share"]}
    assert verdicts(decode.labels_exceed(features_alone)) == ["fails"]


def test_the_two_parts_are_the_whole(models):
    run, params = models[0].run, models[0].params
    batch = run.prompts.sample(1, 8)
    hidden = forward_batch(run.model, params, batch)[1].hidden
    for after_values in (False, True):
        np.testing.assert_allclose(sum(parts(run, params, batch, after_values)), hidden, atol=1e-4)
    silent = batch._replace(y=jnp.zeros_like(batch.y))
    np.testing.assert_array_equal(parts(run, params, silent)[1], 0.0)


def test_norms_are_in_order(models):
    ends = features.ends(models)
    for name in ends.least:
        assert (ends.least[name] > 2 * ends.largest[name]).all(), name
    spread = 1 + 0.01 * np.arange(4)
    large, small = {"query": 2 * ends.log_order * spread}, {"query": 0.3 * spread}
    assert verdicts(features.in_order(features.Measured({}, features.Ends(large, small, ends.log_order)))) == [
        "holds", "holds"]
    assert verdicts(features.in_order(features.Measured({}, features.Ends(small, large, ends.log_order)))) == [
        "fails", "fails"]
    stays = {"theorem": {"query relevant": np.array([[1.0, 9.0]] * 4) * spread[:, None],
                         "query irrelevant": np.array([[1.0, 1.2]] * 4) ** spread[:, None]}}
    assert verdicts(features.irrelevant_stay(features.Measured(stays, ends))) == ["holds"]
    stays["theorem"]["query irrelevant"] = stays["theorem"]["query relevant"]
    assert verdicts(features.irrelevant_stay(features.Measured(stays, ends))) == ["fails"]


def test_irrelevant_patterns_change_less_than_relevant_ones(models):
    norms = pattern_norms(models)
    assert verdicts(features.changes(norms)) == ["holds", "holds"]
    assert verdicts(features.relevant_alone(norms)) == ["holds"] * 4
    spread = 1 + 0.01 * np.arange(4)[:, None]
    everything = {name: spread * np.array([[0.1, 3.0]]) for name in norms}
    assert verdicts(features.changes(everything)) == ["fails", "fails"]
    untrained = {name: spread * np.array([[0.1, 0.1 + 0.001 * name.endswith(" relevant")]]) for name in norms}
    assert "fails" in verdicts(features.relevant_alone(untrained))


def test_neurons_read_labels(models):
    """Untrained models read them as often as features; one that mixes the halves has no small neurons."""
    probed = at_ends(models)
    assert {name: values[:, -1].tolist() for name, values in probed.items()}["share"] == pytest.approx(
        along(models, "share")[:, -1].tolist(), abs=1e-3)
    assert verdicts(decode.labels_are_read(probed)) == ["holds", "holds"]
    before = {name: values[:, [0, 0]] for name, values in probed.items()}
    assert verdicts(decode.labels_are_read(before))[1] == "fails"
    seeds = np.arange(16)[:, None]
    good = {"share after values": np.array([[0.5, 0.8]]) + 0.01 * seeds / 16, "input of others": 2.0 + 0 * seeds,
            "labels after values": 2.0 + 0 * seeds, "features after values": 1.0 + 0 * seeds}
    assert verdicts(decode.lucky_decode(good)) == ["holds", "holds"]
    assert verdicts(decode.lucky_decode({"share after values": np.full((16, 2), 0.5) + 0.01 * seeds / 16})) == [
        "holds", "fails"]  # untrained
    assert verdicts(decode.labels_larger(good)) == ["holds"]
    assert verdicts(decode.others_stay_small({"input of others": np.full((64, 1), 2.0)})) == ["holds"]
    bad = {"share after values": 0.05 + 0.01 * seeds / 16, "input of others": 80.0 + 0 * seeds,
           "labels after values": 1.0 + 0 * seeds, "features after values": 2.0 + 0 * seeds}
    for rule in (decode.constant_fraction, decode.others_stay_small, decode.labels_larger):
        assert verdicts(rule(bad)) == ["fails"], rule.__name__


def test_attention_concentrates(models):
    missing = along(models, "missing")
    losses = np.stack([model.loss for model in models])
    M = 30
    measured = attention.Measured(np.asarray(models[0].steps, float), losses, missing,
                                  {"training tasks": missing[:, -1]}, M)
    assert (missing[:, 0] > 0.5).all()
    assert (missing[:, -1] < 0.1).all()
    steps = np.array([100.0, 200.0, 400.0, 800.0])
    fall = np.tile([0.6, 0.6, 0.3, 0.02, 0.01], (8, 1)) * (1 + 0.01 * np.arange(8)[:, None])
    good = measured._replace(steps=steps, losses=np.tile([1.0, 0.1, 0.0, 0.0], (8, 1)), missing=fall,
                             tested={"new": fall[:, -1]})
    assert verdicts(attention.concentrates(good)) == verdicts(attention.falls_like_one_over_t(good)) == ["holds"]
    assert verdicts(attention.limit_and_bound(good)) == ["holds", "holds"]
    assert verdicts(attention.everywhere(good)) == ["holds"]
    assert (attention.slopes(good) < -1).all()
    stalled = good._replace(missing=np.maximum(fall, 0.55), tested={"new": np.maximum(fall, 0.55)[:, -1]})
    assert verdicts(attention.concentrates(stalled)) == ["fails"]
    slow = good._replace(missing=0.05 * np.array([12.0, 10, 8, 8 * 2**-0.3, 8 * 4**-0.3]) * fall[:, :1])
    assert verdicts(attention.falls_like_one_over_t(slow)) == ["fails"]
    assert verdicts(attention.everywhere(stalled)) == ["fails"]
    untrained = good._replace(losses=np.ones((8, 4)))
    assert verdicts(attention.falls_like_one_over_t(untrained)) == ["inconclusive"]


def test_iterations_and_new_patterns():
    axes = noise.SIZES["full"].axes
    spread = 1 + 0.01 * np.arange(8)[:, None]
    counts = {axis: spread * np.array(axes[axis], float) ** exponent for axis, exponent in noise.LAW.items()}
    factor = noise.noise_factor(axes["tau"][-1], noise.M1)
    counts["tau"] = spread * np.array([1.0, factor])
    tests = (*single_tasks(), *new_patterns(), "shortest prompts")

    def failing_parts(counts, error):
        measured = noise.Measured(axes, counts, {name: np.full(8, error) for name in tests},
                                  {name: np.full(8, error) for name in tests}, 1000, np.full((8, 5), error), LAST)
        return {part.place for part in noise.ENTRY.parts if "fails" in verdicts(part.checks(measured))}

    errs = {"theorem 1, error", "theorem 2", "theorem 2, shortest prompts"}
    assert failing_parts(counts | {"tau": spread * np.array([1.0, factor * 0.99])}, 0.0) - {
        "theorem 1's bound on T"} == {"abstract, necessary conditions"}
    assert failing_parts(counts, 0.5) == errs
    steep = {axis: values ** 3 for axis, values in counts.items()}
    assert failing_parts(steep, 0.5) == errs | {"theorem 1, T against lam*", "theorem 1, T against M",
                                               "theorem 1, T against tau", "spread coefficients"}
    flat = {axis: spread * np.ones(len(axes[axis])) for axis in counts}
    assert failing_parts(flat, 0.5) == errs | {"theorem 1's bound on T"}
    never = {axis: np.full_like(values, np.nan) for axis, values in counts.items()}
    assert {"theorem 1, T against lam*", "theorem 1, T against M", "spread coefficients"} <= failing_parts(never, 0.0)
    late = noise.Measured(axes, counts | {"lam*": counts["lam*"] * [[np.nan, 1.0, 1.0]]}, {}, {}, 1000,
                          np.zeros((8, 5)), [5, 2, 1])
    np.testing.assert_array_equal(late.reached("lam*")[:, 0], 5)  # the least that T can be


def test_the_runs_that_measure_iterations():
    assert noise.noise_factor(0.15, 6) == pytest.approx(10**0.5, rel=1e-3)
    wide = noise.axis_run("M", 32, 1_500)
    assert (wide.prompts.irrelevant_patterns, wide.model.neurons, wide.training.steps) == (28, 1_920, 3_000)
    for axis, values in noise.SIZES["full"].axes.items():
        for value in values:
            run = noise.axis_run(axis, value, 1_500)
            unmet = premises_of("selectors", ("Theorem 1",), [(run, run.prompts)], constant=CONSTANT,
                                measured=("number of iterations",))
            assert [premise.name for premise in unmet if not premise.met] == [], (axis, value)
