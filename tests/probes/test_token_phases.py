"""Phases of training: divergences and attention scores on cases that are known, and answers written out."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from iclab import Parity, SpecError
from iclab.probes.token_floors import write_out
from iclab.probes.token_phases import attention_scores, divergence


def test_a_divergence_is_the_sum_over_classes():
    p, q = np.array([[0.2, 0.3, 0.5], [1 / 3] * 3]), np.array([[0.5, 0.25, 0.25], [1 / 3] * 3])
    found = divergence(jnp.log(p), jnp.log(q))
    np.testing.assert_allclose(found, (p * np.log(p / q)).sum(axis=1), atol=1e-6)
    assert found[0] > 0.1


def test_heads_that_look_back_one_token_and_heads_that_look_after_the_same_one_are_told_apart():
    tokens = jnp.asarray([0, 1, 0, 1, 0])
    back = np.eye(5, k=-1)
    after = np.array([[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0.5, 0, 0.5, 0]])
    none = np.eye(5) * np.array([1, 1, 0, 0, 0])[:, None]
    previous, induction = attention_scores(jnp.asarray(np.stack([back, after + none])), tokens)
    # Here the token before is always one that followed the same one, where there is one.
    np.testing.assert_allclose(previous, [1, (0 + 1 + 1 + 0.5) / 4])
    np.testing.assert_allclose(induction, [3 / 4, 3 / 4])
    ones = attention_scores(jnp.asarray(back[None]), jnp.asarray([0, 1, 2, 3, 4]))
    np.testing.assert_allclose(ones, [[1], [0]])


def test_what_is_written_out_is_read_again():
    batch = Parity(length=4).sample(0, 50).numpy()

    def right(prompts):
        """Adds each bit to the last parity written down, even a wrong one."""
        tokens, answers = prompts.x.argmax(axis=-1), np.zeros(prompts.x.shape)
        for place in range(4, 8):
            step = tokens[:, 0] if place == 4 else (tokens[:, place] + tokens[:, place - 4]) % 2
            answers[np.arange(len(tokens)), place, step] = 1
        return answers

    written = write_out(right, batch, 4)
    np.testing.assert_array_equal(written, batch.label[:, 4:])

    def wrong_once(prompts):
        answers = right(prompts)
        answers[:, 4, :2] = answers[:, 4, 1::-1]
        return answers

    np.testing.assert_array_equal(write_out(wrong_once, batch, 4), 1 - batch.label[:, 4:])
    with pytest.raises(SpecError, match=r"start must be a token, in \[0, 8\)"):
        write_out(right, batch, 8)
