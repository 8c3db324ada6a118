"""Reasoning with a trained model: step by step (chain of thought), or at once (in-context learning); and by a vote.

All three answer one test prompt for several numbers of examples at once: examples are i.i.d. given the task, so the
last n of a long prompt are a prompt of n examples.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from iclab.core.errors import require
from iclab.core.parallel import Compiled, default_workers, each
from iclab.kernels.fitting import decoding_misfit
from iclab.models.forward import fitted, fitted_model, read, reader
from iclab.models.protocol import ReadsInParts, ShowsGates
from iclab.probes.error_rate import on_device
from iclab.prompts.prompt import Prompt
from iclab.training.fused import unsuited_machine
from iclab.training.trained import Trained


class Thought(NamedTuple):
    """A chain of thought about one prompt: one row per number of examples."""

    answers: Int[Array, "lengths steps"]
    """The pattern that each step was decoded to."""
    mass: Float[Array, "lengths steps 4"]
    """Attention at each step on columns of `KINDS`."""


AT_ONCE = 50
KINDS = ("same step, same pattern", "same step, other pattern", "other step, same pattern",
         "other step, other pattern")
"""Columns by whether they belong to the step being decoded, and whether their input has the query's pattern."""


def last_examples(examples: int, steps: int, lengths: tuple[int, ...]) -> Bool[np.ndarray, "lengths columns"]:
    """Which columns belong to the last n examples, for each n."""
    example = np.arange(examples * steps) // steps
    return example[None] >= examples - np.asarray(lengths)[:, None]


def chain_of_thought(model: Any, params: Any, prompt: Prompt, vectors: Float[Array, "patterns dimension"],
                     lengths: tuple[int, ...]) -> Thought:
    """Decode one step to the nearest pattern, append it, repeat (li2024cot, algorithm 2)."""
    K, examples = _shape(prompt)
    embedding = reader(model, prompt.x.shape[-1])
    context = embedding.columns(_part(prompt.x[:-1], prompt.y[:-1], prompt.step[:-1]))
    vectors = jnp.asarray(vectors)

    def think(present: Bool[Array, " columns"]) -> Thought:
        answers, masses = [prompt.truth.chain[0]], []
        seen = [prompt.x[-1]]
        nothing = jnp.zeros_like(prompt.x[-1])
        for k in range(K):
            own = _part(jnp.stack(seen), jnp.stack([*seen[1:], nothing]), jnp.arange(k + 1))
            output, attention = _ask(model, params, context, present, embedding.columns(own), len(nothing))
            # The patterns are orthonormal: the nearest is the one with the largest product.
            answer = jnp.argmax(vectors @ output)
            step = jnp.concatenate([prompt.step[:-1], jnp.arange(k)])
            pattern = jnp.concatenate([prompt.truth.pattern[:-1], jnp.stack(answers)[:-1]])
            masses.append(_by_kind(attention, step == k, pattern == answers[-1]))
            answers.append(answer)
            seen.append(vectors[answer])
        return Thought(jnp.stack(answers[1:]), jnp.stack(masses))

    return jax.vmap(think)(jnp.asarray(last_examples(examples, K, lengths)))


def at_once(model: Any, params: Any, prompt: Prompt, vectors: Float[Array, "patterns dimension"],
            lengths: tuple[int, ...]) -> Int[Array, " lengths"]:
    """The answer from inputs and last outputs alone, intermediate steps blanked out (li2024cot, section 2.3)."""
    K, examples = _shape(prompt)
    first = (prompt.step[:-1] == 0)[:, None]
    last = jnp.roll(prompt.y[:-1], -(K - 1), axis=0)
    embedding = reader(model, prompt.x.shape[-1])
    context = embedding.columns(_part(jnp.where(first, prompt.x[:-1], 0.0), jnp.where(first, last, 0.0),
                                      prompt.step[:-1]))
    own = embedding.columns(_part(prompt.x[-1:], jnp.zeros_like(prompt.x[-1:]), jnp.zeros(1, jnp.int32)))

    def answer(present: Bool[Array, " columns"]) -> Int[Array, ""]:
        return jnp.argmax(vectors @ _ask(model, params, context, present, own, prompt.x.shape[-1])[0])

    return jax.vmap(answer)(jnp.asarray(last_examples(examples, K, lengths)))


def reason(trained: Trained, prompts: Prompt, vectors: Float[Array, "patterns dimension"], *, direct: bool = False
           ) -> Int[np.ndarray, batch *steps]:
    """Decode a batch of test prompts with all their examples, compiled and split over cores: the pattern of every
    step, or, when `direct`, that of the answer given at once. The fused kernel decodes where it can."""
    require(np.ndim(prompts.x) == 3 and len(prompts.x) > 0, "prompts", np.shape(prompts.x), "be a batch")
    K, columns, dimension = prompts.truth.chain.shape[1] - 1, prompts.x.shape[1], prompts.x.shape[2]
    require((columns - 1) % K == 0, "prompts", f"{columns} columns", f"be of a test: examples of {K} columns, a query")
    require(trained.run.model.embedding.steps == K, "prompts", f"{K} steps", "have as many steps as the model")
    require(np.ndim(vectors) == 2 and np.shape(vectors)[1] == dimension, "vectors", np.shape(vectors),
            f"be patterns of dimension {dimension}")
    if kernel_can_decode(trained):
        return _decoded_by_kernel(trained, prompts, vectors, direct)
    total = len(prompts.x)
    size = min(AT_ONCE, total)
    begins = np.minimum(np.arange(0, total, size), total - size)
    shares = np.array_split(begins, min(default_workers(), len(begins)))
    args = on_device((trained.run.model, trained.params, prompts, vectors))
    answers = np.empty((total,) if direct else (total, K), np.int32)

    def work(share: Int[np.ndarray, " parts"]) -> Int[np.ndarray, "parts size *steps"]:
        mine = (*args, jnp.asarray(share))
        return np.asarray(_compiled.of(_decoder(size, direct), *mine)(*mine))

    for number, parts in each(work, shares):
        for begin, part in zip(shares[number], parts, strict=True):
            answers[begin:begin + size] = part
    return answers


def kernel_can_decode(trained: Trained) -> bool:
    """Whether the kernels can let a trained run reason, and it is not one for XLA."""
    return trained.run.training.backend != "xla" and not decoding_misfit(trained.run.model) and not unsuited_machine()


def _decoded_by_kernel(trained: Trained, prompts: Prompt, vectors: Any, direct: bool) -> Int[np.ndarray, batch *steps]:
    from iclab.kernels.chain_reading import decode_prompts

    x, y, step, W, near = (np.asarray(array) for array in (prompts.x, prompts.y, prompts.step, trained.params.W,
                                                           vectors))
    shares = np.array_split(np.arange(len(prompts.x)), default_workers())

    def work(share: Int[np.ndarray, " prompts"]) -> Int[np.ndarray, "prompts steps"]:
        part = slice(share[0], share[-1] + 1)
        return decode_prompts(trained.run.model, W, x[part], y[part], step[part], near, direct)

    parts = dict(each(work, [share for share in shares if len(share)]))
    answers = np.concatenate([parts[number] for number in sorted(parts)])
    return answers[:, 0] if direct else answers


_compiled = Compiled()


@cache
def _decoder(size: int, direct: bool) -> Any:
    """The program that decodes parts of a batch, one after the other, so that the intermediates of each stay in a
    core's cache."""
    def decode(model: Any, params: Any, prompts: Prompt, vectors: Array, begins: Array) -> Array:
        examples = ((prompts.x.shape[1] - 1) // (prompts.truth.chain.shape[1] - 1),)

        def one(prompt: Prompt) -> Array:
            if direct:
                return at_once(model, params, prompt, vectors, examples)[0]
            return chain_of_thought(model, params, prompt, vectors, examples).answers[0]

        def part(begin: Array) -> Array:
            return jax.vmap(one)(jax.tree.map(lambda field: jax.lax.dynamic_slice_in_dim(field, begin, size), prompts))

        return jax.lax.map(part, begins)

    return decode


def majority_vote(prompt: Prompt, patterns: int, lengths: tuple[int, ...]
                  ) -> tuple[Int[Array, "lengths steps"], Int[Array, " lengths"]]:
    """The ideal reader's answers, step by step and at once: the most frequent output among the columns of the step
    whose input has the query's pattern.

    Patterns are in a random order in every prompt, so taking the first of a tie breaks it at random.
    """
    K, examples = _shape(prompt)
    inputs, outputs = (field[:-1].reshape(examples, K) for field in (prompt.truth.pattern, prompt.truth.answer))
    counted = jnp.asarray(last_examples(examples, 1, lengths)).astype(float)

    def vote(current: Int[Array, " lengths"], before: Array, after: Array) -> Int[Array, " lengths"]:
        matching = jnp.where(before[None] == current[:, None], counted, 0.0)
        return jnp.argmax(matching @ (after[:, None] == jnp.arange(patterns)).astype(float), axis=1)

    current = jnp.full(len(lengths), prompt.truth.chain[0])
    direct, steps = vote(current, inputs[:, 0], outputs[:, -1]), []
    for k in range(K):
        current = vote(current, inputs[:, k], outputs[:, k])
        steps.append(current)
    return jnp.stack(steps, axis=1), direct


def _shape(prompt: Prompt) -> tuple[int, int]:
    """K, and the number of examples, of a prompt whose query stands alone."""
    K = prompt.truth.chain.shape[0] - 1
    return K, (prompt.x.shape[0] - 1) // K


def _part(x: Float[Array, "columns dimension"], y: Float[Array, "columns dimension"], step: Int[Array, " columns"]
          ) -> Prompt:
    """Some columns of a prompt, without label or truth."""
    return Prompt(x, y, label=None, step=step)


def _ask(model: Any, params: Any, context: Float[Array, "columns width"], present: Bool[Array, " columns"],
         own: Float[Array, "own width"], dimension: int
         ) -> tuple[Float[Array, " dimension"], Float[Array, " columns+own-1"]]:
    """The output for the query, and the weight the model gives each column before it."""
    if isinstance(model, ReadsInParts):
        weights = fitted(model, params, context.shape[1])
        return fitted_model(model, dimension).read(weights, context, present, own)
    # Absent columns are all zeros and stand in front: an empty state forgets nothing.
    columns = jnp.concatenate([jnp.where(present[:, None], context, 0.0), own])
    output, inside = read(model, params, columns, dimension)
    weight = inside.scores[-1] * inside.gates[-1] if isinstance(inside, ShowsGates) else inside.scores[-1]
    return output, weight[:-1]


def _by_kind(attention: Float[Array, " columns"], same_step: Bool[Array, " columns"],
             same_pattern: Bool[Array, " columns"]) -> Float[Array, " 4"]:
    kinds = jnp.stack([same_step & same_pattern, same_step & ~same_pattern, ~same_step & same_pattern,
                       ~same_step & ~same_pattern])
    return kinds.astype(attention.dtype) @ attention
