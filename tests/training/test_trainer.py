"""A run's result does not depend on the runs trained with it."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from iclab import replace, train, train_many
from iclab.models.forward import reader
from iclab.training.sgd import AHEAD, Loop, Setup, begin, first_batches, step_keys, stretch


def close(a, b, tolerance):
    assert max(a.loss) < 2, "rounding errors of a training that diverges grow without bound: nothing can be compared"
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance),
                 (a.params, a.loss), (b.params, b.loss))


@pytest.fixture
def mixed_runs(tiny_run):
    """Runs that differ in seeds and in numbers of every part, and two that differ in shape."""
    def other(run, **changes):
        return replace(run, prompts=replace(run.prompts, **changes))

    return [tiny_run, tiny_run.seeded(1), other(tiny_run.seeded(2), outlier_fraction=0.1, pattern_norm=2.0),
            replace(tiny_run, training=replace(tiny_run.training, learning_rate=0.05)),
            other(tiny_run.seeded(3), outlier_scale=1.0),
            replace(tiny_run, model=replace(tiny_run.model, init_scale=0.1)),
            replace(tiny_run, model=replace(tiny_run.model, member="linear")),
            other(tiny_run, prompt_length=4)]


@pytest.mark.slow
def test_alone_or_together_the_same_in_double_precision(float64, mixed_runs):
    alone = [train(run) for run in mixed_runs]
    for together in (train_many(mixed_runs), train_many(mixed_runs[::-1], width=3)[::-1]):
        for one, same in zip(alone, together, strict=True):
            assert same.params[0].W_B.dtype == np.float64
            close(one, same, 1e-9)


@pytest.mark.parametrize("backend", ["xla", "auto"])
def test_packmates_do_not_change_a_bit(mixed_runs, backend):
    mixed_runs = [replace(run, training=replace(run.training, backend=backend)) for run in mixed_runs]
    first = train_many([mixed_runs[0], mixed_runs[1], mixed_runs[2]])
    second = train_many([mixed_runs[0], mixed_runs[4], mixed_runs[5], mixed_runs[1]])
    np.testing.assert_array_equal(first[0].params[0].W_B, second[0].params[0].W_B)
    np.testing.assert_array_equal(first[1].params[0].W_B, second[3].params[0].W_B)


def test_shared_batches_equal_separate_batches(float64, tiny_run):
    runs = [replace(tiny_run, init_seed=seed) for seed in range(5)]
    for run, shared in zip(runs, train_many(runs), strict=True):
        close(train(run), shared, 1e-9)


def test_members_draw_independent_data_by_default(tiny_run):
    a, b = train_many([tiny_run.seeded(0), tiny_run.seeded(1)])
    assert not np.array_equal(a.loss, b.loss)


def test_each_run_is_handed_over_once_when_it_is_done(mixed_runs):
    handed = []
    train_many(mixed_runs, finished=lambda index, trained: handed.append((index, trained.status)))
    assert sorted(handed) == [(index, "trained") for index in range(len(mixed_runs))]


def test_progress_reaches_the_whole(mixed_runs):
    seen = []
    train_many(mixed_runs, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (8 * 30, 8 * 30)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.slow
def test_memory_does_not_grow_with_steps(tiny_run):
    def temporary(steps):
        setup = Setup.of(tiny_run)
        embedding = reader(setup.model, setup.prompts.dimension)
        batches = first_batches(setup.prompts, embedding, setup.training.batch_size, step_keys(0, 0, AHEAD))
        loop, keys = Loop(begin(tiny_run), *batches), step_keys(0, AHEAD, steps)
        compiled = jax.jit(lambda loop, keys: stretch(setup, loop, keys)).lower(loop, keys).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    per_step = (temporary(2000) - temporary(1000)) / 1000
    assert per_step < 64  # a key and a loss, not a batch


def test_runs_that_embed_labels_differently_do_not_share_batches(float64, tiny_run):
    runs = [replace(tiny_run, model=replace(tiny_run.model, embedding=replace(tiny_run.model.embedding, norm=norm)))
            for norm in (0.5, 2.0)]
    together = train_many(runs)
    for run, trained in zip(runs, together, strict=True):
        close(train(run), trained, 1e-9)


@pytest.mark.parametrize(("steps", "every", "expected"), [(30, 10, [10, 20, 30]), (25, 10, [10, 20, 25]),
                                                          (120, 100, [100, 120]), (7, 50, [7])])
def test_every_record_is_handed_over_including_the_last(tiny_run, steps, every, expected):
    run = replace(tiny_run, training=replace(tiny_run.training, steps=steps, record_every=every))
    seen = []
    trained = train(run, recorded=lambda index, make: seen.append(make()))
    assert [int(one.steps[-1]) for one in seen] == expected
    for number, one in enumerate(seen, 1):
        np.testing.assert_array_equal(one.loss, trained.loss[:number])
    jax.tree.map(np.testing.assert_array_equal, seen[-1].params, trained.params)
