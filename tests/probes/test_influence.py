"""Label weights are the slopes of the output in the labels: of the linear Transformer its scores."""

from __future__ import annotations

import jax
import numpy as np

from iclab import Classification, GatedAttention, Run, Trained, label_weights
from iclab.models import forward_batch
from iclab.probes.influence import slope_sums, weights_of

PROMPTS = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2, prompt_length=6,
                         outlier_fraction=0.4)


def test_slopes_of_the_linear_transformer_are_its_scores(float64):
    model = GatedAttention(member="linear", form="sum")
    params, batch = model.init(jax.random.key(0), 9), PROMPTS.sample(0, 200)
    scores = np.abs(forward_batch(model, params, batch)[1].scores[:, 0])
    found = weights_of(np.asarray(jax.jit(slope_sums, static_argnums=0)(model, params, batch)))
    same = np.asarray(batch.truth.pattern == batch.truth.pattern[:, -1:])
    for distance in range(1, 7):
        for kind, values in ((False, found.clean), (True, found.poisoned)):
            chosen = same[:, -1 - distance] & (np.asarray(batch.truth.outlier)[:, -1 - distance] == kind)
            np.testing.assert_allclose(values[distance - 1], scores[chosen, -1 - distance].mean(), rtol=1e-9)


def test_the_share_of_poison_is_a_ratio_of_means():
    sums = np.array([[0.4, 0.2], [0.4, 0.4], [0.1, 0.0], [0.2, 0.0]])  # clean weights 1 and 0.5, poisoned 0.5 and none
    np.testing.assert_allclose(weights_of(sums).share, 0.5 / 0.75)
    assert np.isnan(weights_of(sums * [[1], [1], [0], [0]]).share)


def test_weights_of_a_model_have_one_value_per_example():
    run = Run(model=GatedAttention(), prompts=PROMPTS)
    started = Trained(run, run.model.init(jax.random.key(0), 9), None, np.zeros(0), np.zeros(0))
    weights = label_weights(started, PROMPTS, count=500)
    assert weights.clean.shape == weights.poisoned.shape == (6,)
    assert 0 < weights.share < np.inf
