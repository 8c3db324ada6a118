"""Error probes: how often, or by how much, a predictor errs on fresh prompts, with an interval.

A predictor is any callable that maps a batch of prompts (`iclab.prompts.Prompt`) to one answer each. The family says
how an answer errs (`iclab.prompts.labels`); labels and answers that are not of the kind it says are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import stats

from iclab.core.errors import not_a, require
from iclab.core.limits import require_test_size
from iclab.core.parallel import Compiled, each
from iclab.core.spec import lower
from iclab.models.forward import forward_batch
from iclab.probes.kernel_looks import kernel_averages, kernels_can_read
from iclab.probes.looks import Look, Numbers, Shown
from iclab.prompts.labels import SIGN, LabelKind, require_answers, require_labels
from iclab.prompts.prompt import Family, Prompt, require_family
from iclab.prompts.randomness import Key, as_key, fold
from iclab.training.trained import Trained

Predictor = Callable[[Prompt], Any]
"""`(batch of prompts) -> one answer each`."""
Judge = Callable[[Any, Any, Prompt], Array]
"""`(model, params, batch of prompts) -> means over the batch`, compiled."""
SCORED = ("class", "tokens")
"""Kinds of labels that are answered by a score for every class."""
TEST_STREAM = 3
TEST_BATCH = 500
ENOUGH = 20
"""Answers from which one can tell that none is negative."""
AT_ONCE = 4
"""Most batches drawn by one call; every model judged on them reads the same ones."""
TESTS_PER_JOB = 5
"""Most tests in a job: bits are drawn once for all of them."""


class ErrorRate(NamedTuple):
    """How much a predictor errs on fresh prompts."""

    error: float
    """Mean error, as the family defines it: for signs and classes the fraction of wrong answers."""
    low: float
    high: float
    hinge: float
    """Mean of max(0, 1 - z F); NaN unless labels are signs."""
    prompts: int

    def __str__(self) -> str:
        return f"error {self.error:.3g} [{self.low:.3g}, {self.high:.3g}] on {self.prompts} prompts"


class Interval(NamedTuple):
    """A mean and the ends of its confidence interval."""

    mean: float
    low: float
    high: float


def measure_error(predictor: Predictor, prompts: Family, *, count: int = 10_000, seed: int = 0,
                  level: float = 0.95) -> ErrorRate:
    """Error of any predictor on `count` fresh prompts, with Wilson's interval (Student's where it is not a rate).

    The predictor sees NumPy arrays, so it may be anything: a trained run, a reference, a function, a PyTorch
    module in `iclab.torch.predictor`.
    """
    _require_predictor(predictor)
    require_family(prompts)
    if isinstance(predictor, Trained):
        predictor.require_readable(prompts)
    require_test_size(prompts, count, min(count, TEST_BATCH))
    require(0 <= seed < 2**32, "seed", seed, "be a whole number in [0, 2^32)")
    errors, hinge = np.zeros(count), np.full(count, np.nan)
    keys = batch_keys(seed, -(-count // TEST_BATCH))
    for key, start in zip(zip(*keys, strict=True), range(0, count, TEST_BATCH), strict=True):
        size = min(TEST_BATCH, count - start)
        batch = prompts.sample(Key(*key), size).numpy()
        given = np.asarray(predictor(batch))
        answers = given.astype(float)
        require_labels(prompts.labels, batch.label)
        require_answers(prompts.labels, answers.shape, batch.label, "predictor")
        if not isinstance(predictor, Trained):  # whose status says that it diverged
            _require_scores(prompts.labels, given, answers)
        part = slice(start, start + size)
        with jax.enable_x64(True):
            errors[part] = jax.vmap(prompts.labels.error)(jnp.asarray(answers), batch.label)
        if prompts.labels.name == "sign":
            hinge[part] = np.maximum(0.0, 1.0 - answers * batch.label)
    if prompts.labels.is_rate:
        mean, (low, high) = float(errors.mean()), wilson(int(errors.sum()), count, level)
    else:
        mean, low, high = seed_interval(errors, level, within=(0.0, np.inf))
    return ErrorRate(mean, low, high, float(hinge.mean()), count)


def _require_predictor(predictor: Any) -> None:
    """Refuse what is no predictor, above all a module, which reads tensors."""
    torch = sys.modules.get("torch")  # without it there is no module
    require(torch is None or not isinstance(predictor, torch.nn.Module), "predictor", type(predictor).__name__,
            "map prompts to answers; for a PyTorch module write iclab.torch.predictor(module)")
    require(callable(predictor), "predictor", type(predictor).__name__, "be a function of prompts or a trained run")


def _require_scores(labels: LabelKind, given: np.ndarray, answers: np.ndarray) -> None:
    """Refuse what a function returns if it is no number, and 0 and 1 for signs: a score of 0 is wrong."""
    missing = int(np.isnan(answers).sum())
    require(missing == 0, "predictor", f"NaN in {missing} of {answers.size}", "return numbers")
    if labels == SIGN:
        either = given.size >= ENOUGH and set(np.unique(answers)) == {0.0, 1.0}
        require(given.dtype != bool and not either, "predictor", "True and False" if given.dtype == bool else "0 and 1",
                "return scores whose signs are the answers (0 is always wrong); write 2 * answer - 1")


def batch_keys(seed: int, batches: int) -> Key:
    """The keys of the batches of a test."""
    return fold(as_key(seed), np.arange(batches), TEST_STREAM)


_compiled = Compiled()


def average(judge: Judge, models: Sequence[Trained], tests: Sequence[Family], seed: int, count: int
            ) -> Float[np.ndarray, "models tests *values"]:
    """Mean of `judge(model, params, batch)` over the batches of every test, for every trained run.

    Drawing and judging are two programs, so each model and each test is compiled once, not every pair of them;
    models judged together read the same prompts, drawn once. A `Look` goes through the fused kernels where they can
    read the models and the tests.
    """
    for test in tests:
        for trained in models:
            require_trained(trained)
            trained.require_readable(test)
        require_test_size(test, count, TEST_BATCH)
    batches = -(-count // TEST_BATCH)
    at_once = next(n for n in range(AT_ONCE, 0, -1) if batches % n == 0)
    keys = [Key(*words) for words in zip(*(word.reshape(-1, at_once) for word in batch_keys(seed, batches)),
                                         strict=True)]
    if isinstance(judge, Look) and kernels_can_read(models, tests):
        return kernel_averages(judge, models, tests, keys, TEST_BATCH)
    readers = [on_device((model.run.model, model.params)) for model in models]
    samplers = [on_device(test) for test in tests]
    totals: dict[tuple[int, int], Any] = {}
    for batch_keys_ in keys:
        for j, sampler in enumerate(samplers):
            if j == 0 or sampler.prompt_length != samplers[j - 1].prompt_length:
                bits = jax.vmap(lambda key, sampler=sampler: sampler.bits(key, TEST_BATCH))(batch_keys_)
            batch = _compiled.of(_prompts_of, sampler, bits)(sampler, bits)
            if batch_keys_ is keys[0]:
                _require_classification(tests[j].labels, readers, batch)
            for i, args in enumerate(readers):
                value = _compiled.of(judge, *args, batch)(*args, batch)
                totals[i, j] = value if batch_keys_ is keys[0] else totals[i, j] + value
    return np.stack([np.stack([np.asarray(totals[i, j]) / len(keys) for j in range(len(samplers))])
                     for i in range(len(readers))])


def require_trained(trained: Any) -> None:
    """Refuse what is no trained run where its weights are read, not only its answers."""
    if not isinstance(trained, Trained):
        advice = "measure_error takes any predictor" if callable(trained) else ""
        raise not_a("trained", trained, "a trained run, as train returns it", advice)


def _require_classification(labels: LabelKind, readers: Sequence[tuple[Any, Any]], batch: Prompt) -> None:
    """Refuse labels that are not of their kind, and models without a score for every class that occurs."""
    require_labels(labels, batch.label)
    if labels.name in SCORED:
        for model, params in readers:
            outputs = jax.eval_shape(lambda *args: forward_batch(*args)[0], model, params, batch)
            require_answers(labels, outputs.shape, np.asarray(batch.label))


def on_device(tree: Any) -> Any:
    """What programs read of specs and weights, as JAX arrays."""
    return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), lower(tree))


def _prompts_of(sampler: Any, bits: Any) -> Prompt:
    """The prompts of several batches as one. The bits come from a separate program: XLA would compute them again for
    every coordinate of a token, and they are the same for all tests of one length."""
    batches = jax.vmap(sampler.prompts)(bits)
    return jax.tree.map(lambda field: field.reshape(-1, *field.shape[2:]), batches)


@cache
def errors_of(labels: LabelKind) -> Judge:
    """The judge that returns the mean error, and for signs the mean of max(0, 1 - z F), else NaN."""
    if labels == SIGN:
        return Look(_sign_errors)

    def judge(model: Any, params: Any, batch: Prompt) -> Float[Array, " 2"]:
        outputs = forward_batch(model, params, batch)[0]
        if labels.name not in SCORED:  # whose numbers are known only outside a program
            require_answers(labels, outputs.shape, batch.label)
        return jnp.stack([jax.vmap(labels.error)(outputs, batch.label).mean(), jnp.nan])

    return judge


def wrong(shown: Shown) -> Float[Numbers, "*lengths batch"]:
    """1 where an answer +-1 is wrong, as an output of 0 is, or one that is not a number."""
    return shown.arrays.where(shown.outputs * shown.label > 0, 0.0, 1.0)


def _sign_errors(shown: Shown) -> Float[Numbers, " 2"]:
    require_answers(SIGN, shown.outputs.shape, shown.label)
    hinge = shown.arrays.maximum(0.0, 1.0 - shown.outputs * shown.label)
    return shown.arrays.stack([wrong(shown).mean(), hinge.mean()])


def model_errors(models: Sequence[Trained], tests: Sequence[Family], *, count: int = 10_000,
                 seeds: Sequence[int] | None = None, measure: str = "error",
                 progress: Callable[[int, int], None] | None = None) -> Float[np.ndarray, "models tests"]:
    """Error (or `hinge`) of many trained runs on many test distributions, compiled.

    Run i draws its test prompts with `seeds[i]`, the same random bits in every test. `count` is rounded up to whole
    batches of 500. `progress(done, total)` is called as jobs finish.
    """
    for test in tests:
        require_family(test, "tests")
    labels = common_labels(tests)
    require(measure in ("error", "hinge"), "measure", measure, "be error or hinge")
    require(measure == "error" or labels == SIGN, "measure", measure, f"be error for labels of kind {labels.name}")
    column = ("error", "hinge").index(measure)
    return averages(errors_of(labels), models, tests, count, seeds, progress)[..., column]


def common_labels(tests: Sequence[Family]) -> LabelKind:
    """The kind of label that all tests have."""
    labels = {test.labels for test in tests}
    require(len(labels) == 1, "tests", sorted(kind.name for kind in labels), "have labels of one kind")
    return labels.pop()


def averages(judge: Judge, models: Sequence[Trained], tests: Sequence[Family], count: int,
             seeds: Sequence[int] | None = None, progress: Callable[[int, int], None] | None = None
             ) -> Float[np.ndarray, "models tests *values"]:
    """`average` of many models side by side, those of one seed together."""
    seeds = list(range(len(models))) if seeds is None else list(seeds)
    rows = {seed: [i for i, mine in enumerate(seeds) if mine == seed] for seed in seeds}
    jobs = [(seed, slice(first, first + TESTS_PER_JOB)) for first in range(0, len(tests), TESTS_PER_JOB)
            for seed in rows]

    def job(item: tuple[int, slice]) -> np.ndarray:
        seed, part = item
        return average(judge, [models[i] for i in rows[seed]], tests[part], seed, count)

    result: np.ndarray | None = None  # its shape is known when the first job is done
    for done, (number, values) in enumerate(each(job, jobs), 1):
        seed, part = jobs[number]
        if result is None:
            result = np.empty((len(models), len(tests), *values.shape[2:]))
        result[rows[seed], part] = values
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
    contains the true mean exactly when the uncut one does. A difference of error rates is not an error rate.
    """
    values = np.asarray(values, dtype=float)
    mean = float(values.mean())
    if len(values) < 2:
        return Interval(mean, np.nan, np.nan)
    half = float(stats.t.ppf(0.5 + level / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))
    if within is None:
        return Interval(mean, mean - half, mean + half)
    return Interval(mean, max(mean - half, within[0]), min(mean + half, within[1]))


CENTRES = ("mean", "median")
"""What may stand for several seeds."""


def median_interval(values: Any, level: float = 0.95) -> Interval:
    """Median over seeds with the narrowest pair of order statistics that holds the true median at this level, whatever
    the distribution; fewer than 6 seeds have none at 95 %: theirs is the range of the values, and one seed has none."""
    ordered = np.sort(np.asarray(values, dtype=float))
    if len(ordered) < 2:
        return Interval(float(np.median(ordered)), np.nan, np.nan)
    outside = max(0, int(stats.binom.ppf((1 - level) / 2, len(ordered), 0.5)) - 1)
    return Interval(float(np.median(ordered)), float(ordered[outside]), float(ordered[-1 - outside]))
