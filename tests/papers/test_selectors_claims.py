"""The rules of the selectors paper's claims: each passes sound results and fails on a suitable broken model."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from iclab import train_many
from iclab.core.spec import replace
from iclab.models import forward_batch
from iclab.papers.selectors import decode, features, noise
from iclab.papers.selectors.mechanism import along, inside, parts
from iclab.papers.selectors.settings import a_run

SEEDS = [0, 1, 2, 3]


def verdicts(judged):
    return {check.verdict for check in judged}


@pytest.fixture(scope="module")
def models():
    """Four seeds, trained briefly and recorded rarely."""
    run = a_run(400)
    run = replace(run, training=replace(run.training, record_every=200))
    return train_many([run.seeded(seed) for seed in SEEDS], probe=inside)


def test_relevant_patterns_grow(models):
    norms = {f"{letter} {kind}": along(models, f"{letter} {kind}") for letter in ("query", "key")
             for kind in ("relevant", "irrelevant")}
    assert verdicts(features.checks(norms)) == {"holds"}
    everything = dict.fromkeys(norms, norms["query relevant"])
    assert verdicts(features.checks(everything)) == {"holds", "fails"}
    before = {name: values[:, :1] for name, values in norms.items()}
    assert [check.verdict for check in features.checks(before)] == ["fails", "holds", "fails", "holds"]


def test_labels_decide(models):
    seen = {name: along(models, name) for name in decode.SEEN}
    assert verdicts(decode.checks(seen)) == {"holds"}
    before = {name: values[:, :1] for name, values in seen.items()}
    assert decode.checks(before)[1].verdict == "fails"
    swapped = seen | {"error of labels": seen["error of features"], "error of features": seen["error of labels"]}
    assert [check.verdict for check in decode.checks(swapped)][1:] == ["fails", "fails"]


def test_the_two_parts_are_the_whole(models):
    run, params = models[0].run, models[0].params
    batch = run.prompts.sample(1, 8)
    hidden = forward_batch(run.model, params, batch)[1].hidden
    for after_values in (False, True):
        np.testing.assert_allclose(sum(parts(run, params, batch, after_values)), hidden, atol=1e-4)
    silent = batch._replace(y=jnp.zeros_like(batch.y))
    np.testing.assert_array_equal(parts(run, params, silent)[1], 0.0)


def test_noise_and_combinations():
    axes = noise.AXES["full"]
    counts = {axis: np.tile(np.array(axes[axis]) ** theory, (4, 1)) for axis, theory in noise.THEORY.items()}
    counts["tau"] = np.tile([noise.noise_factor(tau, 6) for tau in axes["tau"]], (4, 1))
    right = np.zeros((4, len(noise.tests())))
    assert verdicts(noise.checks(counts, right, axes)) == {"holds"}
    flat = {axis: np.ones_like(values) for axis, values in counts.items()}
    judged = [check.verdict for check in noise.checks(flat, right + 0.5, axes)]
    assert judged.count("fails") == 5
    assert noise.noise_factor(0.15, 6) == pytest.approx(10**0.5, rel=1e-3)
    assert noise.axis_run("M", 40).prompts.irrelevant_patterns == 36
