"""How often reasoning is wrong: step by step, at once, and by the ideal vote, for many numbers of examples at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import zip_longest
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from iclab.core.errors import require
from iclab.core.limits import require_test_size
from iclab.core.parallel import Compiled, each
from iclab.probes.error_rate import batch_keys, on_device
from iclab.probes.reasoning import at_once, chain_of_thought, majority_vote
from iclab.prompts.chain import Chain
from iclab.prompts.prompt import Prompt
from iclab.prompts.randomness import Key
from iclab.training.run import Run
from iclab.training.trained import Trained

TEST_BATCH = 100
COLUMNS_AT_ONCE = 6000
"""Columns of prompts that are read at once: their intermediates stay in a core's cache."""
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
    jobs = [job for turn in zip_longest(*places) for job in turn if job is not None]

    def work(job: tuple[int, int, int]) -> ChainErrors:
        part = asked[job[0]]
        model, test = part.models[job[1]], part.tests[job[2]]
        seed = model.run.init_seed if part.seed is None else part.seed
        keys = batch_keys(seed, -(-part.prompts // TEST_BATCH))
        args = on_device((model.run.model, model.params, test, keys))
        return jax.tree.map(np.asarray, _compiled.of(judged(part.lengths), *args)(*args))

    errors_by_job = {jobs[number]: errors for number, errors in each(work, jobs)}
    return [ChainErrors(*(np.stack(values).reshape(len(part.models), len(part.tests), *values[0].shape)
                          for values in zip(*(errors_by_job[job] for job in mine), strict=True)))
            for part, mine in zip(asked, places, strict=True)]


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
