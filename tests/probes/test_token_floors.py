"""Floors of token prompts against enumeration, and the Dirichlet predictor against counting by hand."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

from iclab import MarkovChain, Parity, Recall, Regression, SpecError, measure_error
from iclab.probes.token_floors import dirichlet_logs, dirichlet_predictor, errors_by_token, token_floor

compiled_logs = jax.jit(dirichlet_logs, static_argnums=(1, 2))


def by_counting(tokens, states, order, concentration):
    """The posterior predictive after every token, from counts in plain Python."""
    chances = []
    for t in range(len(tokens)):
        counts = np.full(states, concentration)
        if t + 1 >= order:
            context = tuple(tokens[t + 1 - order:t + 1])
            for e in range(order, t + 1):
                if tuple(tokens[e - order:e]) == context:
                    counts[tokens[e]] += 1
        chances.append(counts / counts.sum())
    return np.array(chances)


@given(st.lists(st.integers(0, 2), min_size=9, max_size=9), st.sampled_from([0, 1, 2]), st.floats(0.1, 9))
def test_predictions_are_those_of_counting(tokens, order, concentration):
    with jax.enable_x64(True):
        logs = compiled_logs(np.array(tokens, np.int32), 3, order, concentration)
    np.testing.assert_allclose(np.exp(logs), by_counting(tokens, 3, order, concentration), rtol=1e-12)


def log_evidence(tokens, states, order, concentration):
    """Logarithm of a sequence's probability, the table integrated out: a Dirichlet-multinomial for every context."""
    counts = defaultdict(lambda: np.zeros(states))
    for e in range(order, len(tokens)):
        counts[tuple(tokens[e - order:e])][tokens[e]] += 1
    total = -min(order, len(tokens)) * np.log(states)
    for row in counts.values():
        total += gammaln(states * concentration) - gammaln(states * concentration + row.sum())
        total += (gammaln(concentration + row) - gammaln(concentration)).sum()
    return total


@pytest.mark.parametrize(("order", "concentration"), [pytest.param(0, 1.0, marks=pytest.mark.slow), (1, 0.5),
                                                      pytest.param(2, 1.0, marks=pytest.mark.slow)])
def test_the_floor_of_a_chain_is_that_of_enumerating_all_sequences(float64, order, concentration):
    states, length = 2, 6
    prompts = MarkovChain(dimension=states, order=order, concentration=concentration, prompt_length=length)
    exact, whole = np.zeros(length + 1), 0.0
    for tokens in itertools.product(range(states), repeat=length + 2):
        weight = np.exp(log_evidence(tokens, states, order, concentration))
        whole += weight
        for t in range(length + 1):
            ratio = (log_evidence(tokens[:t + 2], states, order, concentration)
                     - log_evidence(tokens[:t + 1], states, order, concentration))
            exact[t] -= weight * ratio
    assert whole == pytest.approx(1, rel=1e-12)
    floor = token_floor(prompts, count=8000)
    assert (np.abs(floor.bayes - exact) <= 5 * floor.deviation + 1e-9).all()
    assert (floor.known <= floor.bayes + 5 * floor.deviation).all()
    losses = errors_by_token(dirichlet_predictor(prompts), prompts, count=8000).loss
    np.testing.assert_allclose(losses, exact, atol=0.03)


def test_knowing_the_table_is_worth_less_the_longer_the_prompt():
    floor = token_floor(MarkovChain(dimension=2, prompt_length=200), count=500)
    missing = floor.bayes - floor.known
    assert missing[1] > 0.15
    assert 0 < missing[-1] < 0.015


def conditional_entropies(prompts, count):
    """The entropy of every label given all tokens up to it, from the frequencies of all prompts."""
    batch = prompts.sample(0, count).numpy()
    tokens, entropies = batch.x.argmax(axis=-1), []
    for t in range(tokens.shape[1]):
        if batch.label[0, t] < 0:
            entropies.append(np.nan)
            continue
        joint = Counter(zip(map(tuple, tokens[:, :t + 1].tolist()), batch.label[:, t].tolist(), strict=True))
        prefix = Counter(map(tuple, tokens[:, :t + 1].tolist()))
        entropies.append(-sum(n / count * np.log(n / prefix[seen]) for (seen, _), n in joint.items()))
    return np.array(entropies)


@pytest.mark.parametrize("prompts", [
    Recall(keys=3, values=2, pairs=2, queries=2, everywhere=True), Parity(length=3, everywhere=True),
    Parity(length=3, steps=False)])
def test_closed_forms_are_the_entropies_of_labels_given_what_came_before(prompts):
    floor = token_floor(prompts)
    np.testing.assert_allclose(conditional_entropies(prompts, 10_000), floor.bayes, atol=0.02)
    assert floor.mean == pytest.approx(np.nanmean(prompts.unknown()))


def test_no_other_concentration_or_order_does_better():
    prompts = MarkovChain(dimension=3, order=1, concentration=0.5, prompt_length=12)
    best = measure_error(dirichlet_predictor(prompts), prompts, count=4000)
    assert best.error == pytest.approx(token_floor(prompts).mean, abs=0.015)
    assert best.low < best.error < best.high
    for other in (dirichlet_predictor(prompts, order=0), dirichlet_predictor(prompts, order=2),
                  dirichlet_predictor(MarkovChain(dimension=3, concentration=2.0))):
        assert measure_error(other, prompts, count=4000).error > best.error


def test_errors_by_token_are_those_that_are_measured_together():
    prompts = Recall(keys=4, values=3, pairs=3, queries=2)
    uniform = errors_by_token(lambda batch: np.zeros((*batch.x.shape[:2], 7)), prompts, count=1000)
    assert np.isnan(uniform.loss[:6]).all()
    np.testing.assert_allclose(uniform.loss[6:], np.log(7), rtol=1e-6)
    assert (uniform.wrong[6:] == 1).all()  # the first class is a key


@pytest.mark.parametrize(("make", "words"), [
    (lambda: token_floor(Regression()), "prompts must be a MarkovChain, or tell"),
    (lambda: dirichlet_predictor(Recall()), "prompts must be a MarkovChain, got 'Recall'"),
    (lambda: dirichlet_predictor(MarkovChain(), order=-1), "order must be a whole number >= 0"),
    (lambda: measure_error(lambda batch: batch.y, Parity()), "predictor must return a score for every token and class"),
    (lambda: measure_error(lambda batch: batch.x[..., :1], Parity()), "labels go up to 1")])
def test_what_does_not_apply_is_refused(make, words):
    with pytest.raises(SpecError, match=words):
        make()
