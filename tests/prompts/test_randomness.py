"""The counter-based generator: known answers, uniformity, independence of streams."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from iclab import SpecError
from iclab.prompts.randomness import (
    Key,
    as_key,
    choice,
    draw_bits,
    fold,
    in_unit_ball,
    low_half,
    normals,
    threefry,
    uniform23,
)

# Random123's published answers for threefry2x32 with 20 and 13 rounds: (counter, key, rounds) -> words.
KNOWN = [
    ((0, 0), (0, 0), 20, (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), 20, (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), 20, (0xC4923A9C, 0x483DF7A0)),
    ((0, 0), (0, 0), 13, (0x9D1C5EC6, 0x8BD50731)),
]


@pytest.mark.parametrize(("counter", "key", "rounds", "words"), KNOWN)
def test_threefry_gives_the_published_words(counter, key, rounds, words):
    drawn = threefry(Key(jnp.uint32(key[0]), jnp.uint32(key[1])), jnp.uint32(counter[0]), jnp.uint32(counter[1]),
                     rounds)
    assert tuple(int(word) for word in drawn) == words


def test_words_are_uniform_and_uncorrelated():
    bits = draw_bits(as_key(0), 4000, 10)
    words = [np.asarray(word).ravel() for word in bits.tokens]
    for word in words:
        assert stats.kstest(word / 2.0**32, "uniform").pvalue > 1e-4
        ones = np.unpackbits(word.view(np.uint8)).mean()
        assert abs(ones - 0.5) < 5 * 0.5 / np.sqrt(32 * len(word))
    for i in range(4):
        for j in range(i):
            assert abs(np.corrcoef(words[i], words[j])[0, 1]) < 5 / np.sqrt(len(words[i]))


def test_choice_is_uniform():
    drawn = np.asarray(choice(low_half(draw_bits(as_key(1), 3000, 10).tokens.third), 7))
    assert stats.chisquare(np.bincount(drawn.ravel(), minlength=7)).pvalue > 1e-4
    assert drawn.min() == 0
    assert drawn.max() == 6


def test_uniform_stays_inside_the_open_interval():
    ends = uniform23(jnp.array([0, 2**32 - 1], jnp.uint32))
    assert float(ends[0]) > 0
    assert float(ends[1]) < 1


def test_fold_separates_numbers_and_streams():
    key = as_key(5)
    folded = {tuple(int(w) for w in fold(key, number, stream)) for number in range(20) for stream in range(3)}
    assert len(folded) == 60


def test_folding_many_numbers_equals_folding_each():
    many = fold(as_key(3), jnp.arange(4, dtype=jnp.uint32), 2)
    for i in range(4):
        one = fold(as_key(3), i, 2)
        assert (int(many.high[i]), int(many.low[i])) == (int(one.high), int(one.low))


def test_folding_is_that_of_jax():
    ours = fold(as_key(7), 5, 2)
    expected = jax.random.key_data(jax.random.fold_in(jax.random.fold_in(jax.random.key(7), 2), 5))
    assert [int(word) for word in ours] == expected.tolist()


def test_a_jax_key_is_accepted():
    a, b = (draw_bits(as_key(jax.random.key(i)), 2, 3) for i in range(2))
    assert not np.array_equal(a.tokens.first, b.tokens.first)
    old = draw_bits(as_key(jax.random.PRNGKey(0)), 2, 3)
    np.testing.assert_array_equal(old.tokens.first, a.tokens.first)


def test_a_seed_out_of_range_is_named():
    with pytest.raises(SpecError, match="seed must be a whole number"):
        as_key(-1)


def test_normal_numbers_are_normal():
    values = np.asarray(normals(Key(jnp.uint32(1), jnp.uint32(2)), 400, 101)).ravel()
    assert stats.kstest(values, "norm").pvalue > 0.01
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.02


def test_points_fill_the_ball_evenly():
    points = np.asarray(in_unit_ball(Key(jnp.uint32(3), jnp.uint32(4)), 20_000, 5))
    radii = np.linalg.norm(points, axis=1)
    assert radii.max() < 1
    assert stats.kstest(radii**5, "uniform").pvalue > 0.01
    np.testing.assert_allclose(np.cov(points.T), np.eye(5) / 7, atol=0.005)
