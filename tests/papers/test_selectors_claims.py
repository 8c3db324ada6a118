"""The rules of the selectors paper's claims: each passes sound results and fails on a suitable broken model."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from every_entry import verdicts

from iclab import train_many
from iclab.core.spec import replace
from iclab.models import forward_batch
from iclab.papers.selectors import decode, features, noise
from iclab.papers.selectors.mechanism import along, inside, parts, pattern_norms
from iclab.papers.selectors.settings import a_run

SEEDS = [0, 1, 2, 3]


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


def test_noise_and_combinations():
    axes = noise.SIZES["full"].axes
    counts = {axis: np.tile(np.array(axes[axis]) ** theory, (8, 1)) for axis, theory in noise.THEORY.items()}
    counts["tau"] = np.tile([noise.noise_factor(tau, 6) for tau in axes["tau"]], (8, 1))

    def by_part(counts, error):
        measured = noise.Measured(axes, counts, np.full((8, len(noise.tests())), error), 1000,
                                  np.full((8, 2), error))
        return [verdicts(part.checks(measured)) for part in noise.ENTRY.parts]

    assert {verdict for part in by_part(counts, 0.0) for verdict in part} == {"holds"}
    law, *errors = by_part({axis: np.ones_like(values) for axis, values in counts.items()}, 0.5)
    assert law.count("fails") == 3
    assert errors == [["fails"], ["fails"]]
    never = by_part({axis: np.full_like(values, np.nan) for axis, values in counts.items()}, 0.0)
    assert never[0][0] == "fails"
    assert noise.noise_factor(0.15, 6) == pytest.approx(10**0.5, rel=1e-3)
    assert noise.axis_run("M", 40, 400).prompts.irrelevant_patterns == 36
