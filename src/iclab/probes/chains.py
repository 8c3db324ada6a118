"""How often reasoning is wrong: step by step, at once, and by the ideal vote, for many numbers of examples at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from iclab.core.errors import require
from iclab.core.limits import require_test_size
from iclab.core.parallel import Compiled, cores, each
from iclab.kernels.ahead import wait_until_compiled
from iclab.probes.error_rate import batch_keys, on_device
from iclab.probes.reasoning import at_once, chain_of_thought, kernel_can_decode, majority_vote
from iclab.prompts.chain import Chain
from iclab.prompts.prompt import Prompt
from iclab.prompts.randomness import Key
from iclab.training.run import Run
from iclab.training.trained import Trained

TEST_BATCH = 100
COLUMNS_AT_ONCE = 6000
"""Columns of prompts that XLA reads at once: their intermediates stay in a core's cache."""
BATCHES_AT_ONCE = 50
"""Most batches that a call of the kernel answers: it returns the answers to all."""
_compiled = Compiled()


class ChainErrors(NamedTuple):
    """Error rates; leading axes are (models, tests) where there are several."""

    steps: Float[np.ndarray, "... lengths steps"]
    """Of each step of the chain of thought."""
    icl: Float[np.ndarray, "... lengths"]
    """Of the answer given at once."""
    vote_steps: Float[np.ndarray, "... lengths steps"]
    """Of each step by majority vote."""
    vote_icl: Float[np.ndarray, "... lengths"]
    """Of the majority vote at once."""

    @property
    def cot(self) -> Float[np.ndarray, "... lengths"]:
        """Error of the chain of thought, the mean over its steps (li2024cot, eq. 7)."""
        return self.steps.mean(axis=-1)

    @property
    def cot_answer(self) -> Float[np.ndarray, "... lengths"]:
        """Error of the last step alone."""
        return self.steps[..., -1]

    @property
    def vote(self) -> Float[np.ndarray, "... lengths"]:
        """Error of the vote step by step, the mean over the steps."""
        return self.vote_steps.mean(axis=-1)


class Asked(NamedTuple):
    """Trained runs, each to be judged on every test with every number of examples."""

    models: Sequence[Trained]
    tests: Sequence[Chain]
    lengths: tuple[int, ...]
    prompts: int
    """How many of a test, rounded up to a multiple of 100."""
    seed: int | None = None
    """Seed of the prompts; none: each run draws them with its own."""


class ChainJob(NamedTuple):
    """A trained run, to be judged on one test."""

    trained: Trained
    test: Chain
    lengths: tuple[int, ...]
    keys: Key
    """One per batch."""

    @property
    def fits_kernel(self) -> bool:
        """Whether the fused kernel can do it."""
        return type(self.test) is Chain and kernel_can_decode(self.trained)


def check_test(run: Run, test: Any) -> None:
    """A test of a run on chains must have as many steps as its model reads, and leave the query unsolved."""
    require(isinstance(test, Chain), "test", type(test).__name__, "be chain prompts")
    require(not test.partly_solved, "partly_solved", test.partly_solved, "be false in a test")
    steps, dimension = run.model.embedding.steps, run.prompts.dimension
    require(test.reasoning_steps == steps, "reasoning_steps", test.reasoning_steps, f"be those of the model, {steps}")
    require(test.dimension == dimension, "dimension", test.dimension, f"be that of the model, {dimension}")


def chain_errors(models: Sequence[Trained], tests: Sequence[Chain], lengths: Sequence[int], *, count: int = 2000,
                 seed: int | None = None) -> ChainErrors:
    """Errors of trained runs on chain prompts, with only the last n examples of each, for every n in `lengths`.

    Prompts are drawn with `seed`, or for each run with its own, the same random bits in every test; `count` is rounded
    up to a multiple of 100.
    """
    return all_chain_errors([Asked(models, tests, tuple(lengths), count, seed)])[0]


def all_chain_errors(asked: Sequence[Asked]) -> list[ChainErrors]:
    """`chain_errors` of several groups side by side."""
    for part in asked:
        for field in ("models", "tests", "lengths"):
            require(len(getattr(part, field)) > 0, field, "none", "be at least one")
        for test in part.tests:
            require_test_size(test, part.prompts, 1)
            for model in part.models:
                check_test(model.run, test)
            require(min(part.lengths) > 0 and max(part.lengths) <= test.prompt_length, "lengths", list(part.lengths),
                    f"lie in [1, {test.prompt_length}]")
    places = [[(n, i, j) for i in range(len(part.models)) for j in range(len(part.tests))]
              for n, part in enumerate(asked)]
    # Groups take turns: they need different programs, which are then compiled side by side.
    turns = [place for turn in zip_longest(*places) for place in turn if place is not None]
    jobs = [_job(asked[n], i, j) for n, i, j in turns]
    errors = {turns[number]: errors for judge in (_by_kernel, _by_xla) for number, errors in judge(jobs)}
    return [ChainErrors(*(np.stack(values).reshape(len(part.models), len(part.tests), *values[0].shape)
                          for values in zip(*(errors[place] for place in mine), strict=True)))
            for part, mine in zip(asked, places, strict=True)]


def _job(part: Asked, i: int, j: int) -> ChainJob:
    seed = part.models[i].run.init_seed if part.seed is None else part.seed
    return ChainJob(part.models[i], part.tests[j], part.lengths, batch_keys(seed, -(-part.prompts // TEST_BATCH)))


def _by_kernel(jobs: Sequence[ChainJob]) -> Iterator[tuple[int, ChainErrors]]:
    """The errors of all jobs that fit the kernel, by their number; batches are split over cores."""
    mine = [number for number, job in enumerate(jobs) if job.fits_kernel]
    if not mine:
        return
    from iclab.kernels.chain_answers import answers_of

    wait_until_compiled(jobs[mine[0]].trained.run.model)
    at_once = min(BATCHES_AT_ONCE, -(-sum(len(jobs[number].keys.high) for number in mine) // cores()))
    parts = [(number, slice(first, first + at_once)) for number in mine
             for first in range(0, len(jobs[number].keys.high), at_once)]

    def work(part: tuple[int, slice]) -> ChainErrors:
        trained, test, lengths, keys = jobs[part[0]]
        W, batches = np.asarray(trained.params.W, np.float32), tuple(words[part[1]] for words in keys)
        return _wrong_answers(answers_of(trained.run.model, W, test, lengths, batches, TEST_BATCH))

    counts: dict[int, list[ChainErrors]] = {}
    for index, wrong in each(work, parts):
        counts.setdefault(parts[index][0], []).append(wrong)
    for number, of_parts in counts.items():
        prompts = len(jobs[number].keys.high) * TEST_BATCH
        yield number, jax.tree.map(lambda *numbers, prompts=prompts: sum(numbers) / prompts, *of_parts)


def _wrong_answers(answers: Any) -> Any:
    """How many answers of the kernel are wrong, as `ChainErrors`."""
    def count(given: Int[np.ndarray, "*s"], right: Int[np.ndarray, "*s"]) -> Int[np.ndarray, "*s"]:
        return (given != right).sum(axis=0)

    chain = answers.truth[:, None, 1:]
    return ChainErrors(count(answers.thought[..., 1:], chain), count(answers.direct[..., 1], chain[..., -1]),
                       count(answers.voted[..., 1:], chain), count(answers.voted_direct[..., 1], chain[..., -1]))


def _by_xla(jobs: Sequence[ChainJob]) -> Iterator[tuple[int, ChainErrors]]:
    """The errors of all other jobs, by their number."""
    mine = [number for number, job in enumerate(jobs) if not job.fits_kernel]

    def work(number: int) -> ChainErrors:
        trained, test, lengths, keys = jobs[number]
        args = on_device((trained.run.model, trained.params, test, keys))
        return jax.tree.map(np.asarray, _compiled.of(judged(lengths), *args)(*args))

    for index, errors in each(work, mine):
        yield mine[index], errors


@cache
def judged(lengths: tuple[int, ...]) -> Any:
    """The program that draws prompts and judges a model on them."""
    def judge(model: Any, params: Any, test: Chain, keys: Key) -> ChainErrors:
        vectors = test.pattern_vectors()
        size = max(1, COLUMNS_AT_ONCE // (test.prompt_length * test.reasoning_steps))
        size = next(n for n in range(min(size, TEST_BATCH), 0, -1) if TEST_BATCH % n == 0)

        def read(prompt: Prompt) -> ChainErrors:
            truth = prompt.truth.chain[1:]
            thought = chain_of_thought(model, params, prompt, vectors, lengths)
            voted, direct = majority_vote(prompt, test.patterns, lengths)
            answered = at_once(model, params, prompt, vectors, lengths)
            parts: Any = (_wrong(thought.answers, truth), _wrong(answered, truth[-1]), _wrong(voted, truth),
                          _wrong(direct, truth[-1]))
            return ChainErrors(*parts)

        def batch(key: Key) -> ChainErrors:
            bits = jax.lax.optimization_barrier(test.bits(key, TEST_BATCH))
            parts = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), bits)
            # Prompts are drawn a few at a time: a batch of long ones would not fit into memory.
            return _mean(jax.lax.map(lambda part: _mean(jax.vmap(read)(jax.lax.optimization_barrier(
                test.prompts(part)))), parts))

        return _mean(jax.lax.map(batch, keys))

    return judge


def _wrong(answers: Int[Array, "*s"], truth: Int[Array, "*s"]) -> Float[Array, "*s"]:
    return jnp.where(answers == truth, 0.0, 1.0)


def _mean(errors: ChainErrors) -> Any:
    return jax.tree.map(lambda leaf: leaf.mean(axis=0), errors)
