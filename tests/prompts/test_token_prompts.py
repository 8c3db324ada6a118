"""Token prompts: chains follow their tables, queries ask for what was shown, parities are those of the bits."""

from __future__ import annotations

import numpy as np
import pytest

from iclab import MarkovChain, Parity, Recall, SpecError, replace
from iclab.prompts.labels import UNASKED


def tokens_of(batch):
    """The numbers of the tokens; every row of x is one-hot."""
    assert (np.sort(batch.x, axis=-1)[..., -1] == 1).all()
    assert (batch.x.sum(axis=-1) == 1).all()
    return batch.x.argmax(axis=-1)


@pytest.mark.parametrize(("states", "order", "length"), [(2, 0, 3), (2, 3, 7)])
def test_the_label_of_a_token_is_the_next_one_and_its_context_the_last_k(states, order, length):
    batch = MarkovChain(dimension=states, order=order, prompt_length=length).sample(0, 5).numpy()
    tokens = tokens_of(batch)
    assert tokens.shape == (5, length + 1)
    np.testing.assert_array_equal(batch.label[:, :-1], tokens[:, 1:])
    np.testing.assert_allclose(batch.truth.table.sum(axis=-1), 1, rtol=1e-5)
    assert batch.truth.table.shape == (5, states**order, states)
    for t in range(length + 1):
        last = tokens[:, max(t + 1 - order, 0):t + 1]
        number = (last * states ** np.arange(last.shape[1])[::-1]).sum(axis=1)
        np.testing.assert_array_equal(batch.truth.context[:, t], number if t + 1 >= order else -1)


@pytest.mark.parametrize("order", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_tokens_follow_the_table(order):
    batch = MarkovChain(dimension=2, order=order, prompt_length=1500).sample(1, 3).numpy()
    for table, context, label in zip(batch.truth.table, batch.truth.context, batch.label, strict=True):
        for row, chances in enumerate(table):
            after = label[context == row]
            assert after.mean() == pytest.approx(chances[1], abs=4 / np.sqrt(4 * max(len(after), 1)) + 1e-6)


@pytest.mark.parametrize("concentration", [0.2, pytest.param(5.0, marks=pytest.mark.slow)])
def test_tables_are_dirichlet(concentration):
    table = MarkovChain(dimension=3, concentration=concentration, prompt_length=1).sample(0, 4000).numpy().truth.table
    rows = table.reshape(-1, 3)
    np.testing.assert_allclose(rows.mean(axis=0), 1 / 3, atol=0.015)
    np.testing.assert_allclose(rows.var(axis=0), (2 / 9) / (3 * concentration + 1), rtol=0.06)


@pytest.mark.parametrize(("keys", "values", "pairs", "queries", "everywhere"), [
    (1, 2, 1, 1, True), (6, 5, 4, 2, False), (4, 3, 4, 4, True)])
def test_a_query_asks_for_the_value_that_followed_its_key(keys, values, pairs, queries, everywhere):
    prompts = Recall(keys=keys, values=values, pairs=pairs, queries=queries, everywhere=everywhere)
    batch = prompts.sample(0, 6).numpy()
    for tokens, label, source in zip(tokens_of(batch), batch.label, batch.truth.source, strict=True):
        shown = dict(tokens[:2 * pairs].reshape(-1, 2).tolist())
        assert len(shown) == pairs
        assert set(shown) <= set(range(keys))
        assert set(shown.values()) <= set(range(keys, keys + values))
        asked = tokens[2 * pairs:].tolist()
        assert len(set(asked)) == queries
        assert label[2 * pairs:].tolist() == [shown[key] for key in asked]
        np.testing.assert_array_equal(tokens[source[2 * pairs:]], label[2 * pairs:])
        before = tokens[1:2 * pairs + 1] if everywhere else np.full(2 * pairs, UNASKED)
        np.testing.assert_array_equal(label[:2 * pairs], before)


@pytest.mark.parametrize(("length", "steps", "everywhere"), [(2, True, False), (5, True, True), (7, False, True)])
def test_parities_are_those_of_the_bits(length, steps, everywhere):
    batch = Parity(length=length, steps=steps, everywhere=everywhere).sample(0, 6).numpy()
    tokens = tokens_of(batch)
    bits, answers = tokens[:, :length], batch.label[:, length:]
    assert set(np.unique(bits)) <= {0, 1}
    assert (tokens[:, length] == 2).all()
    parities = np.cumsum(bits, axis=1) % 2
    np.testing.assert_array_equal(answers, parities if steps else parities[:, -1:])
    np.testing.assert_array_equal(batch.truth.parity, parities[:, -1])
    np.testing.assert_array_equal(tokens[:, length + 1:], answers[:, :-1])
    np.testing.assert_array_equal(batch.label[:, :length], tokens[:, 1:length + 1] if everywhere else UNASKED)


@pytest.mark.parametrize(("make", "words"), [
    (lambda: MarkovChain(dimension=1), "dimension must be a whole number >= 2"),
    (lambda: MarkovChain(dimension=4, order=7), "order must make at most 4,096 contexts, not 16,384"),
    (lambda: MarkovChain(dimension=2, order=13), "order must be below 13"),
    (lambda: MarkovChain(concentration=0.0), "concentration must be in"),
    (lambda: Recall(pairs=17), "pairs must be at most keys = 16"),
    (lambda: Recall(queries=9), "queries must be at most pairs = 8"),
    (lambda: Recall(values=1), "values must be at least 2"), (lambda: Parity(length=1), "length must be"),
    (lambda: replace(Recall(), dimension=3), "Recall has no field 'dimension'")])
def test_what_contradicts_itself_is_refused(make, words):
    with pytest.raises(SpecError, match=words):
        make()
