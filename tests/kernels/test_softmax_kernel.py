"""The kernel of softmax attention against its model: products, one step in double precision, long trainings."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iclab import Classification, LabelEmbedding, Run, SoftmaxMLP, Training, replace, train_many
from iclab.kernels.products import add_product, product, product_transposed
from iclab.kernels.softmax_pack import SoftmaxPack
from iclab.papers.icl.settings import one_layer_run
from iclab.prompts.randomness import Key
from iclab.training.sgd import Setup, begin, draw_columns, sgd_step, step_keys

BATCH = 12


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "count", "columns"), [(8, 1, 16), (16, 5, 48), (24, 40, 32)])
def test_products_are_those_of_numpy(real, rows, count, columns):
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal(shape).astype(real) for shape in ((rows, count), (count, columns)))
    close = {"rtol": 0, "atol": 200 * np.finfo(real).eps}
    out, expected = np.full((rows, columns), np.nan, real), left.astype(float) @ right
    product(out, rows, left, right, count)
    np.testing.assert_allclose(out, expected, **close)
    out[:] = np.nan
    product_transposed(out, 8, np.ascontiguousarray(left.T), right, count)
    np.testing.assert_allclose(out[:8], expected[:8], **close)
    assert np.isnan(out[8:]).all()
    out[:] = 1.0
    add_product(out, real(-0.5), left, right, count)
    np.testing.assert_allclose(out, 1 - 0.5 * expected, **close)


SHAPES = [
    # (dimension, (relevant, irrelevant, outlier), neurons, attention size, label coordinates, mixed)
    (11, (4, 3, 2), 9, None, 3, False),
    (11, (4, 3, 2), 20, 5, 1, True),
    (9, (2, 0, 1), 17, 14, 2, False),
    (24, (5, 16, 0), 12, 20, 4, False),
]


@st.composite
def runs(draw):
    """Softmax models on everything that classification prompts can say, except dense noise and functions; of few
    shapes, each of which JAX compiles once per loss."""
    dimension, (m1, m2, v), neurons, size, labels, mixed = draw(st.sampled_from(SHAPES))
    coefficients = sorted(draw(st.lists(st.floats(0.3, 2.0), min_size=2, max_size=2)))
    number = st.floats(-1.0, 1.0).filter(lambda x: abs(x) > 0.05)
    rows = st.lists(st.lists(number, min_size=m1, max_size=m1), min_size=3, max_size=3)
    own, width = draw(st.sampled_from([("outlier_mixtures", v), ("outlier_vectors", dimension)]))
    outliers = st.lists(st.lists(number, min_size=width, max_size=width), min_size=2, max_size=2)
    prompts = Classification(
        dimension=dimension, relevant_patterns=m1, irrelevant_patterns=m2, outlier_patterns=v, prompt_length=5,
        pattern_norm=draw(st.floats(0.5, 2.0)), irrelevant_scale=draw(st.floats(0.0, 2.0)),
        decisive_fraction=draw(st.sampled_from([1.0, 0.6])) if mixed or m1 > 2 else 1.0,
        outlier_fraction=draw(st.sampled_from([0.0, 0.5])) if v else 0.0, outlier_scale=draw(st.floats(0.0, 2.0)),
        coefficient_low=coefficients[0], coefficient_high=coefficients[1],
        label_rule=draw(st.sampled_from(["flip", "target", "random"])),
        placement=draw(st.sampled_from(["random", "far", "close"])),
        tasks=draw(st.sampled_from(["all", "cyclic:1", ((0, 1),)])),
        pattern_mixtures=draw(rows) if mixed else None, **({own: draw(outliers)} if mixed else {}),
        rotation_seed=draw(st.sampled_from([None, 3])))
    model = SoftmaxMLP(neurons=neurons, attention_size=size, init_scale=draw(st.floats(0.1, 0.5)),
                       embedding=LabelEmbedding(size=labels, norm=draw(st.floats(0.5, 2.0))))
    training = Training(batch_size=BATCH, learning_rate=draw(st.floats(0.1, 1.0)),
                        loss=draw(st.sampled_from(["hinge", "squared", "logistic"])))
    return Run(model=model, prompts=prompts, training=training, data_seed=draw(st.integers(0, 2**20)))


def batch_of(setup, key):
    return draw_columns(setup.prompts, setup.model.embedding, setup.prompts.bits(Key(*key), BATCH))


one_step = jax.jit(sgd_step)


@settings(max_examples=20)
@given(runs(), st.sampled_from([(0.0, 1.0), (0.3, 1.0), (0.3, 10.0)]))
def test_a_step_is_that_of_the_model(run, start):
    """From the starting weights, of which many are 0, or from weights that are nowhere 0, with outputs so small that
    all prompts have a slope, or larger; in double precision."""
    spread, gain = start
    with jax.enable_x64(True):
        state, setup, keys = begin(run), Setup.of(run), step_keys(run.data_seed, 0, 1)
        rng = np.random.default_rng(run.data_seed)
        params = jax.tree.map(lambda leaf: np.asarray(leaf + spread * rng.standard_normal(leaf.shape)), state.params)
        params = params._replace(W_O=gain * params.W_O)
        after, loss = one_step(setup, state._replace(params=params), *batch_of(setup, (keys.high[0], keys.low[0])))
        pack = SoftmaxPack([run], [params], shared=True)
        losses = pack.advance(keys)
    assert losses[0, 0] == pytest.approx(float(loss), rel=1e-12)
    for name, start, mine, theirs in zip(params._fields, params, pack.params()[0], after.params, strict=True):
        change = np.abs(np.asarray(theirs) - start).max()
        np.testing.assert_allclose(mine, theirs, atol=1e-12 * change + 4e-15, rtol=0, err_msg=name)


@pytest.mark.parametrize("shared", [True, False])
def test_a_run_of_a_pack_is_trained_as_alone(shared):
    run = Run(model=SoftmaxMLP(neurons=10), training=Training(batch_size=BATCH, learning_rate=0.2),
              prompts=Classification(dimension=9, relevant_patterns=4, irrelevant_patterns=4, outlier_patterns=1,
                                     outlier_fraction=0.3, prompt_length=6))
    seeds = [3, 3] if shared else [3, 4]
    pack = [replace(run, init_seed=seed, data_seed=data, training=replace(run.training, learning_rate=0.1 * (1 + seed)))
            for seed, data in enumerate(seeds)]
    params = [jax.tree.map(np.asarray, begin(member).params) for member in pack]
    together = SoftmaxPack(pack, params, shared)
    losses = together.advance(step_keys(seeds[0] if shared else seeds, 0, 30))
    for r, member in enumerate(pack):
        alone = SoftmaxPack([member], [params[r]], True)
        keys = step_keys(seeds[r], 0, 30)
        parts = [alone.advance(Key(keys.high[part], keys.low[part])) for part in (slice(7), slice(7, None))]
        np.testing.assert_array_equal(losses[r], np.concatenate(parts, axis=1)[0])
        for mine, theirs in zip(together.params()[r], alone.params()[0], strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("part", range(4))
def test_a_weight_that_is_not_a_number_shows_in_the_loss(part):
    run = one_layer_run(0.8, 10)
    params = jax.tree.map(np.array, begin(run).params)
    params[part][0, 0] = np.nan
    assert np.isnan(SoftmaxPack([run], [params], True).advance(step_keys(0, 0, 3))).all()


def test_a_training_stays_with_the_compiled_model():
    run = one_layer_run(0.8, 500)
    xla = train_many([replace(run, training=replace(run.training, backend="xla"))])[0]
    pack = SoftmaxPack([run], [jax.tree.map(np.asarray, begin(run).params)], True)
    losses = pack.advance(step_keys(run.data_seed, 0, 500)).reshape(-1, run.training.record_every).mean(axis=1)
    np.testing.assert_allclose(losses, xla.loss, rtol=1e-4, atol=1e-7)
    for mine, theirs in zip(pack.params()[0], xla.params, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
