"""Prompts that probes watch: drawn as their family draws them, once, and not by the program that reads them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from iclab import Classification
from iclab.probes.watched import watched_prompts

PROMPTS = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2, prompt_length=6,
                         outlier_fraction=0.4)


def test_a_traced_program_gets_the_prompts_themselves():
    drawn = []

    @jax.jit
    def program(scale):
        drawn.append(watched_prompts(PROMPTS, 5))
        return scale * jnp.sum(drawn[0].x)

    expected = PROMPTS.sample(0, 5)
    np.testing.assert_allclose(program(2.0), 2.0 * expected.x.sum(), rtol=1e-5)
    for mine, theirs in zip(jax.tree.leaves(drawn[0]), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert "threefry" not in str(jax.make_jaxpr(program)(1.0))
    assert watched_prompts(PROMPTS, 5) is drawn[0]


def test_prompts_have_the_precision_now_in_use():
    assert watched_prompts(PROMPTS, 5).x.dtype == np.float32
    with jax.enable_x64(True):
        assert watched_prompts(PROMPTS, 5).x.dtype == np.float64
