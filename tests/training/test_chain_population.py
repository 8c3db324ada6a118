"""Population dynamics of chains: symmetric, the expected gradient, and what training follows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import Chain, ChainAttention, Run, SpecError, Training, order_probe, population_dynamics, replace, train
from iclab.models import ChainEmbedding
from iclab.training.chain_order import ChainWeights, all_numbers, chain_weights, reduced
from iclab.training.chain_population import FollowedChains

PROMPTS = Chain(dimension=8, patterns=6, reasoning_steps=2, prompt_length=12)


def a_run(prompts=PROMPTS, rate=1.0, steps=1, batch=48, **training):
    return Run(model=ChainAttention(embedding=ChainEmbedding(steps=prompts.reasoning_steps)), prompts=prompts,
               training=Training(steps=steps, batch_size=batch, learning_rate=rate, loss="squared", **training))


def some_weights(K=2):
    return ChainWeights((0.9, 0.1), (-0.3, 0.0), np.linspace(0, 0.2, K), 1.2 * np.eye(K))


def test_a_matrix_is_that_of_its_numbers():
    weights = some_weights()
    W = weights.matrix(6)
    again = reduced(W, 6)
    assert all(np.allclose(mine, other) for mine, other in zip(weights, again, strict=True))
    exchange = np.r_[np.roll(np.arange(6), 2), 6 + np.roll(np.arange(6), 2), 12, 13]
    assert np.allclose(W[np.ix_(exchange, np.r_[exchange[:6], 6, 7])], W)


def test_the_gradient_is_that_of_the_loss():
    """Of a batch drawn and differentiated by JAX, with the same weights."""
    run, weights = a_run(batch=4_000), some_weights()
    followed = FollowedChains(run, own_start=False)
    followed.place(weights)
    followed.advance(3, 0)
    d, M, K = 8, 6, 2
    W = np.zeros((2 * d + K, 2 * d + K))
    attended, queried = np.r_[:M, d:d + M, 2 * d:2 * d + K], np.r_[:M, 2 * d:2 * d + K]
    W[np.ix_(attended, queried)] = weights.matrix(M)
    prompts = run.prompts.sample(7, 4_000)
    columns = jax.vmap(run.model.embedding.columns)(prompts)

    def loss(W):
        outputs = jax.vmap(lambda c: run.model.apply(followed.pack.start[0]._replace(W=W), c)[0])(columns)
        return 0.5 * jnp.sum((outputs - prompts.label) ** 2, axis=1).mean()

    params = followed.pack.start[0]._replace(W=np.asarray(jax.grad(loss)(jnp.asarray(W))))
    mine, other = followed.gradient(), chain_weights(params, run.prompts)
    for kind in ((True, True), (True, False), (False, True), (False, False)):
        assert np.allclose(mine.pairs(*kind), other.pairs(*kind), atol=0.004), kind
    assert np.abs(mine.pairs(True, True)).max() > 0.03


def test_attention_is_told_apart_by_step_and_pattern():
    """With uniform weights a column gets 1 / (l K + k) of the attention."""
    followed = FollowedChains(a_run(replace(PROMPTS, prompt_length=200), batch=200), own_start=False)
    followed.advance(0, 0)
    own, step, chain = followed.attended()
    assert np.allclose(step, 0.5, atol=0.01)
    assert np.isclose(own.mean(), PROMPTS.matching_fraction / 2, rtol=0.05)
    assert np.isclose(chain.mean(), PROMPTS.matching_fraction / 2, rtol=0.05)


def test_training_follows_it():
    run = a_run(replace(PROMPTS, prompt_length=24), 1.0, 120, 96, record_every=40)
    predicted, trained = population_dynamics(run), train(run, probe=order_probe(run.prompts))
    assert np.array_equal(predicted.steps, trained.steps)
    assert np.allclose(predicted.loss, trained.loss, atol=0.02)
    assert predicted.loss[-1] < 0.7 * predicted.loss[0]
    for name, values in predicted.order.items():
        assert np.allclose(values, trained.probes[name], atol=0.15), name
    free = population_dynamics(run, own_start=True)
    assert np.allclose(free.loss, predicted.loss, atol=0.02)


def test_its_error_is_the_share_of_wrong_answers():
    predicted = population_dynamics(a_run(rate=4.0, steps=200, batch=96, record_every=100), prompts=500)
    assert predicted.error[0] > predicted.error[-1]
    assert predicted.error[-1] < 0.05


def test_every_number_can_be_recorded():
    trained = train(a_run(steps=10, record_every=5), probe=order_probe(PROMPTS, all_numbers))
    assert trained.probes["steps"].shape == (2, 2, 2)
    assert np.allclose(trained.probes["pattern 0"][-1], chain_weights(trained.params, PROMPTS).pattern[0], atol=1e-6)


@pytest.mark.parametrize(("run", "words"), [
    (a_run(replace(PROMPTS, transitions=tuple(2 * [tuple(tuple(row) for row in np.eye(6)[::-1].tolist())]))),
     "prompts.transitions must be None"),
    (a_run(clip_norm=1.0), "run must be trained by plain sgd"),
])
def test_other_runs_are_refused(run, words):
    with pytest.raises(SpecError, match=words):
        population_dynamics(run)
