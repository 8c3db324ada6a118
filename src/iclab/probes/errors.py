"""Error probes: how often a predictor is wrong, with an interval.

A predictor is any callable that maps a batch of prompts (`iclab.prompts.Prompt`) to one score each. An error is
z F <= 0: an output of exactly zero is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import stats

from iclab.errors import SpecError, require
from iclab.parallel import Compiled, each
from iclab.prompts.context import Prompt
from iclab.prompts.randomness import Key, as_key, fold

Predictor = Callable[[Prompt], Any]
TEST_STREAM = 3
TEST_BATCH = 500


class ErrorRate(NamedTuple):
    """How often a predictor errs on fresh prompts."""

    error: float
    low: float
    high: float
    hinge: float
    """Mean of max(0, 1 - z F)."""
    prompts: int


class Interval(NamedTuple):
    """A mean and the ends of its confidence interval."""

    mean: float
    low: float
    high: float


def measure_error(predictor: Predictor, prompts: Any, *, count: int = 10_000, seed: int = 0,
                  level: float = 0.95) -> ErrorRate:
    """Error of any predictor on `count` fresh prompts, with a Wilson interval.

    The predictor sees NumPy arrays, so it may be anything: a trained run, a reference, a PyTorch module, a function.
    """
    require(count >= 1, "count", count, "be at least 1")
    require(0 <= seed < 2**32, "seed", seed, "be a whole number in [0, 2^32)")
    wrong, hinge = 0, 0.0
    for number, start in enumerate(range(0, count, TEST_BATCH)):
        size = min(TEST_BATCH, count - start)
        batch = _draw(prompts, jnp.uint32(seed), jnp.uint32(number), size).numpy()
        scores = np.asarray(predictor(batch), dtype=float)
        if scores.shape != (size,):
            raise SpecError(f"predictor must return one score a prompt, shape ({size},), got shape {scores.shape}")
        margins = scores * batch.label
        wrong += int(np.sum(~(margins > 0)))
        hinge += float(np.maximum(0.0, 1.0 - margins).sum())
    low, high = wilson(wrong, count, level)
    return ErrorRate(wrong / count, low, high, hinge / count, count)


@partial(jax.jit, static_argnums=3)
def _draw(prompts: Any, seed: Array, number: Array, size: int) -> Prompt:
    return prompts.sample(fold(as_key(seed), number, TEST_STREAM), size)


@partial(jax.jit, static_argnums=1)
def batch_keys(seed: Array, batches: int) -> Key:
    """The keys of the batches of a test; a program of its own, which all others need not compile."""
    return fold(as_key(seed), jnp.arange(batches, dtype=jnp.uint32), TEST_STREAM)


def _errors(model: Any, params: Any, tests: Any, keys: Key) -> Float[Array, "tests 2"]:
    """Error and hinge of one model on each of a stack of test distributions, on the same random bits."""
    batches = keys.high.shape[0]

    def one_test(test: Any) -> Float[Array, " 2"]:
        def body(carry: Any, key: Any) -> Any:
            total, bits = carry
            batch = test.prompts(bits)
            outputs, _ = jax.vmap(model, in_axes=(None, 0))(params, batch)
            margins = outputs * batch.label
            wrong = jnp.where(margins > 0, 0.0, 1.0).mean()
            total = total + jnp.stack([wrong, jnp.maximum(0.0, 1.0 - margins).mean()])
            return (total, test.bits(key, TEST_BATCH)), None

        start = (jnp.zeros(2), test.bits(jax.tree.map(lambda k: k[0], keys), TEST_BATCH))
        ahead = jax.tree.map(lambda k: jnp.roll(k, -1), keys)
        return jax.lax.scan(body, start, ahead)[0][0] / batches

    return jax.lax.map(one_test, tests)


_compiled = Compiled()


def errors_on(trained: Any, tests: Any, seed: int, count: int) -> Float[np.ndarray, "tests 2"]:
    """Error and hinge of a trained run on a stack of test distributions; compiled once for each structure."""
    keys = batch_keys(np.uint32(seed), -(-count // TEST_BATCH))
    args = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), (trained.run.model, trained.params, tests, keys))
    leaves, tree = jax.tree.flatten(args)
    name = (tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves))
    return np.asarray(_compiled.get(name, _errors, *args)(*args))


def stacks(tests: Sequence[Any]) -> list[tuple[list[int], Any]]:
    """Tests that differ only in numbers, stacked: their places in the list and the stack."""
    groups: dict[Any, list[int]] = {}
    for index, test in enumerate(tests):
        groups.setdefault(jax.tree.structure(test), []).append(index)
    return [(group, jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *(tests[i] for i in group)))
            for group in groups.values()]


def model_errors(models: Sequence[Any], tests: Sequence[Any], *, count: int = 10_000,
                 seeds: Sequence[int] | None = None, measure: str = "error",
                 progress: Callable[[int, int], None] | None = None) -> Float[np.ndarray, "models tests"]:
    """Error (or `hinge`) of many trained runs on many test distributions, compiled.

    Tests that differ only in numbers share a program; run i draws its test prompts with `seeds[i]`, the same bits in
    every test. `count` is rounded up to whole batches of 500. `progress(done, total)` is called as jobs finish.
    """
    seeds = list(range(len(models))) if seeds is None else list(seeds)
    column = {"error": 0, "hinge": 1}[measure]
    result = np.full((len(models), len(tests)), np.nan)
    jobs = [(row, group, stacked) for group, stacked in stacks(tests) for row in range(len(models))]

    def job(item: Any) -> None:
        row, group, stacked = item
        result[row, group] = errors_on(models[row], stacked, seeds[row], count)[:, column]

    for done, _ in enumerate(each(job, jobs), 1):
        if progress is not None:
            progress(done, len(jobs))
    return result


def wilson(wrong: int, count: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for a fraction."""
    interval = stats.binomtest(wrong, count).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)


def seed_interval(values: Any, level: float = 0.95) -> Interval:
    """Mean over seeds with Student's interval; one seed has no interval (its ends are NaN)."""
    values = np.asarray(values, dtype=float)
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, np.nan, np.nan)
    half = float(stats.t.ppf(0.5 + level / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    return Interval(mean, mean - half, mean + half)
