"""Models that answer at every token: causal, equal to their answers at the query, and refused where they do not fit."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab import (
    GPT2,
    ChainAttention,
    GatedAttention,
    Mamba2Block,
    MambaBlock,
    Parity,
    Run,
    SoftmaxAttention,
    SoftmaxMLP,
    SpecError,
    TokenEmbedding,
)
from iclab.core.identity import canonical
from iclab.core.spec import lower
from iclab.models.softmax_attention import by_distance

TOKENS, STATES, END = 6, 3, 4
TOKEN = TokenEmbedding()
MODELS = {"attention": SoftmaxAttention(layers=1, heads=2, size=4, reach=3, embedding=TOKEN),
          "mamba": MambaBlock(size=4, state=3, embedding=TOKEN),
          "mamba2": Mamba2Block(size=4, heads=2, state=3, embedding=TOKEN)}


@pytest.mark.parametrize("name", ["attention", "mamba", pytest.param("mamba2", marks=pytest.mark.slow)])
def test_the_answer_at_a_token_is_that_of_the_prompt_which_ends_there(float64, name):
    model = lower(MODELS[name])
    normal = np.random.default_rng(0).normal
    params = jax.tree.map(lambda leaf: np.asarray(leaf) + 0.3 * normal(size=leaf.shape),
                          model.init(jax.random.key(0), STATES))

    @jax.jit
    def both(params, columns):
        h = columns[:END] @ params.read_in.W + params.read_in.b
        last = model.stream(params, h, asked=1)[0] @ params.read_out.W + params.read_out.b
        return model.apply(params, columns)[0], last[0]

    whole, last = both(params, np.eye(STATES)[[0, 2, 1, 1, 0, 2]])
    assert whole.shape == (TOKENS, STATES)
    np.testing.assert_allclose(whole[END - 1], last, rtol=1e-9, atol=1e-12)


def test_shifts_are_those_of_the_distance_and_zero_beyond_the_reach():
    table = jnp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    shift = by_distance(table, 4, 2, 5)
    np.testing.assert_array_equal(shift[0], 2 * np.array([[0, 3, 2, 1, 0], [0, 0, 3, 2, 1]]))
    np.testing.assert_array_equal(shift[1], 2 * np.array([[0, 6, 5, 4, 0], [0, 0, 6, 5, 4]]))


def test_a_large_shift_makes_a_head_look_there():
    model = lower(SoftmaxAttention(heads=1, size=4, reach=2, embedding=TOKEN))
    params = model.init(jax.random.key(0), STATES)
    params = params._replace(blocks=params.blocks._replace(distances=jnp.asarray([[[0.0, 50.0]]])))
    seen = jax.jit(model.apply)(params, jnp.eye(STATES))[1]
    np.testing.assert_allclose(seen.scores[0], [0, 1, 0], atol=1e-6)


def test_without_a_reach_weights_and_stored_results_are_as_before():
    assert "reach" not in canonical(SoftmaxAttention())
    assert "reach" in canonical(SoftmaxAttention(reach=1))
    assert SoftmaxAttention().init(jax.random.key(0), 5).blocks.distances is None


@pytest.mark.parametrize("model", [*MODELS.values(), SoftmaxAttention(reach=4)], ids=[*MODELS, "at the query"])
def test_the_number_of_weights_is_known_before_they_exist(model):
    params = jax.eval_shape(lambda key: lower(model).init(key, STATES), jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == model.weight_count(STATES)


@pytest.mark.parametrize(("make", "words"), [
    (lambda: GatedAttention(embedding=TOKEN), "this model answers at the query alone"),
    (lambda: GPT2(embedding=TOKEN), "embedding must be a LabelEmbedding"),
    (lambda: SoftmaxMLP(embedding=TOKEN), "embedding must be a LabelEmbedding"),
    (lambda: ChainAttention(embedding=TOKEN), "embedding must be a ChainEmbedding"),
    (lambda: SoftmaxAttention(reach=-1), "reach must be a whole number >= 0"),
    (lambda: Run(model=SoftmaxAttention(embedding=TOKEN)), "read labels of kind sign"),
    (lambda: Run(model=SoftmaxAttention(), prompts=Parity()), "read labels of kind tokens"),
    (lambda: Run(model=MODELS["mamba"], prompts=Parity()), "training.loss must be token_cross_entropy")])
def test_what_does_not_fit_is_refused(make, words):
    with pytest.raises(SpecError, match=words):
        make()
