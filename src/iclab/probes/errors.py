"""Error probes: how often a predictor is wrong, with an interval.

A predictor is any callable that maps a batch of prompts (`iclab.prompts.Prompt`) to one score each. An error is
z F <= 0: an output of exactly zero is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy import stats

from iclab.errors import SpecError, require
from iclab.limits import require_test_size
from iclab.models import forward
from iclab.parallel import Compiled, each
from iclab.prompts.context import Prompt
from iclab.prompts.randomness import Key, as_key, fold

Predictor = Callable[[Prompt], Any]
TEST_STREAM = 3
TEST_BATCH = 500
AT_ONCE = 4
"""Most batches made by one call, to be read by every model that is judged on them."""
IN_CACHE = 100
"""Prompts that a model reads at once: what it makes of them stays in a core's cache, which is up to twice as fast."""
IN_A_JOB = 5
"""Most tests in a job: bits are drawn once for all of them."""


class ErrorRate(NamedTuple):
    """How often a predictor errs on fresh prompts."""

    error: float
    low: float
    high: float
    hinge: float
    """Mean of max(0, 1 - z F)."""
    prompts: int


class Drawn(NamedTuple):
    """What a model reads of a batch of prompts, and the truth."""

    x: Float[Array, "batch tokens dimension"]
    y: Float[Array, "batch tokens"]
    label: Float[Array, " batch"]
    outlier: Bool[Array, "batch tokens"]
    pattern: Int[Array, "batch tokens"]

    @classmethod
    def of(cls, prompts: Prompt) -> Drawn:
        """The same of prompts drawn elsewhere."""
        return cls(*(getattr(prompts, field) for field in cls._fields))

    def last(self, examples: int) -> Drawn:
        """The prompts with only their last examples."""
        x, y, outlier, pattern = (field[:, -examples - 1:] for field in (self.x, self.y, self.outlier, self.pattern))
        return Drawn(x, y, self.label, outlier, pattern)

    def seen(self, model: Any, params: Any) -> Any:
        """The model's outputs on the batch, and its named intermediates."""
        return jax.lax.map(lambda prompt: forward(model, params, prompt), self, batch_size=IN_CACHE)


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
    require_test_size(prompts, count, min(count, TEST_BATCH))
    require(0 <= seed < 2**32, "seed", seed, "be a whole number in [0, 2^32)")
    wrong, hinge = 0, 0.0
    keys = batch_keys(seed, -(-count // TEST_BATCH))
    for key, start in zip(zip(*keys, strict=True), range(0, count, TEST_BATCH), strict=True):
        size = min(TEST_BATCH, count - start)
        batch = prompts.sample(Key(*key), size).numpy()
        scores = np.asarray(predictor(batch), dtype=float)
        if scores.shape != (size,):
            raise SpecError(f"predictor must return one score a prompt, shape ({size},), got shape {scores.shape}")
        margins = scores * batch.label
        wrong += int(np.sum(~(margins > 0)))
        hinge += float(np.maximum(0.0, 1.0 - margins).sum())
    low, high = wilson(wrong, count, level)
    return ErrorRate(wrong / count, low, high, hinge / count, count)


def batch_keys(seed: int, batches: int) -> Key:
    """The keys of the batches of a test."""
    return fold(as_key(seed), np.arange(batches), TEST_STREAM)


_compiled = Compiled()


def average(judge: Callable[..., Array], models: Sequence[Any], tests: Sequence[Any], seed: int, count: int
            ) -> Float[np.ndarray, "models tests *values"]:
    """Mean of `judge(model, params, batch)` over the batches of every test, for every trained run.

    Drawing and judging are two programs, so a model and a test are compiled once each, not once for each pair of them;
    and models that are judged together read the same prompts, drawn once.
    """
    for test in tests:
        require_test_size(test, count, TEST_BATCH)
    batches = -(-count // TEST_BATCH)
    at_once = next(n for n in range(AT_ONCE, 0, -1) if batches % n == 0)
    keys = [Key(*words) for words in zip(*(word.reshape(-1, at_once) for word in batch_keys(seed, batches)),
                                         strict=True)]
    read, asked = _on_device([(model.run.model, model.params) for model in models]), _on_device(list(tests))
    totals: dict[tuple[int, int], Any] = {}
    for some in keys:
        for j, test in enumerate(asked):
            if j == 0 or test.prompt_length != asked[j - 1].prompt_length:
                bits = jax.vmap(lambda key, test=test: test.bits(key, TEST_BATCH))(some)
            batch = _compiled.of(_made, test, bits)(test, bits)
            for i, args in enumerate(read):
                value = _compiled.of(judge, *args, batch)(*args, batch)
                totals[i, j] = value if some is keys[0] else totals[i, j] + value
    return np.stack([np.stack([np.asarray(totals[i, j]) / len(keys) for j in range(len(asked))])
                     for i in range(len(read))])


def _on_device(trees: list[Any]) -> list[Any]:
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), trees)


def _made(test: Any, bits: Any) -> Drawn:
    """The prompts of some batches as one. The bits come from a program of their own: XLA would work them out again for
    every coordinate of a token, and they are the same for all tests of a length."""
    prompts = jax.vmap(test.prompts)(bits)
    return Drawn(*(field.reshape(-1, *field.shape[2:]) for field in (getattr(prompts, name) for name in Drawn._fields)))


def wrong_and_hinge(model: Any, params: Any, batch: Drawn) -> Float[Array, " 2"]:
    """How many of a batch are wrong, and the mean of max(0, 1 - z F)."""
    margins = batch.seen(model, params)[0] * batch.label
    return jnp.stack([jnp.where(margins > 0, 0.0, 1.0).mean(), jnp.maximum(0.0, 1.0 - margins).mean()])


def model_errors(models: Sequence[Any], tests: Sequence[Any], *, count: int = 10_000,
                 seeds: Sequence[int] | None = None, measure: str = "error",
                 progress: Callable[[int, int], None] | None = None) -> Float[np.ndarray, "models tests"]:
    """Error (or `hinge`) of many trained runs on many test distributions, compiled.

    Run i draws its test prompts with `seeds[i]`, the same random bits in every test. `count` is rounded up to whole
    batches of 500. `progress(done, total)` is called as jobs finish.
    """
    column = {"error": 0, "hinge": 1}[measure]
    return averages(wrong_and_hinge, models, tests, count, seeds, progress)[..., column]


def averages(judge: Callable[..., Array], models: Sequence[Any], tests: Sequence[Any], count: int,
             seeds: Sequence[int] | None = None, progress: Callable[[int, int], None] | None = None
             ) -> Float[np.ndarray, "models tests *values"]:
    """`average` of many models side by side, those of one seed together."""
    seeds = list(range(len(models))) if seeds is None else list(seeds)
    rows = {seed: [i for i, mine in enumerate(seeds) if mine == seed] for seed in seeds}
    jobs = [(seed, slice(first, first + IN_A_JOB)) for first in range(0, len(tests), IN_A_JOB) for seed in rows]

    def job(item: tuple[int, slice]) -> np.ndarray:
        seed, some = item
        return average(judge, [models[i] for i in rows[seed]], tests[some], seed, count)

    result: np.ndarray | None = None
    for done, (number, values) in enumerate(each(job, jobs), 1):
        seed, some = jobs[number]
        if result is None:
            result = np.empty((len(models), len(tests), *values.shape[2:]))
        result[rows[seed], some] = values
        if progress is not None:
            progress(done, len(jobs))
    assert result is not None
    return result


def wilson(wrong: int, count: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval for a fraction."""
    interval = stats.binomtest(wrong, count).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)


UNIT = (0.0, 1.0)
"""Where error rates and shares lie."""


def seed_interval(values: Any, level: float = 0.95, *, within: tuple[float, float] | None = None) -> Interval:
    """Mean over seeds with Student's interval; one seed has no interval (its ends are NaN).

    `within` is the range in which every value is known to lie (`UNIT` for error rates). The interval is cut there: it
    contains the true mean exactly when the uncut one does. A difference of error rates is no error rate.
    """
    values = np.asarray(values, dtype=float)
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, np.nan, np.nan)
    half = float(stats.t.ppf(0.5 + level / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    if within is None:
        return Interval(mean, mean - half, mean + half)
    return Interval(mean, max(mean - half, within[0]), min(mean + half, within[1]))
