"""Order parameters of chains: the few numbers of a `ChainAttention` that matter on prompts made of patterns.

A column (x'; y'; k') gets the score p~'^T W p~ from a query (x; k). Patterns may be exchanged without changing the
prompts' law, so weights that are symmetric in the same way give

    pattern[x' != x] + answer[y' != x] + step[k'] + steps[k', k],

up to terms of the query alone, which attention does not see. Indices are 0 for equal patterns, 1 for different ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.errors import require
from iclab.models.chain_attention import ChainParams
from iclab.prompts.chain import Chain


class ChainWeights(NamedTuple):
    """W, or its gradient, in the numbers that symmetry leaves. Written with methods that NumPy and JAX share, they can
    be read during training as well."""

    pattern: tuple[Any, Any]
    """Between the input of a column and that of the query: the same pattern, another one."""
    answer: tuple[Any, Any]
    """Between the output of a column and the input of the query."""
    step: Float[Any, " steps"]
    """Between the code of a column and the input of the query."""
    steps: Float[Any, "steps steps"]
    """Between the code of a column (row) and that of the query."""

    def pairs(self, same_pattern: bool, same_step: bool) -> Float[np.ndarray, " pairs"]:
        """p~'^T W p~ for all pairs of one kind. p~ stands for a query, so its output does not count; that of p~' may be
        the input of p~ only if their patterns differ, and then both cases are among the pairs."""
        K = len(self.step)
        return np.array([self.pattern[not same_pattern] + answer + self.step[j] + self.steps[j, k]
                         for answer in (self.answer[1:] if same_pattern else self.answer)
                         for k in range(K) for j in range(K) if (j == k) == same_step])

    def matrix(self, patterns: int) -> Float[np.ndarray, "attended queried"]:
        """W itself: inputs, outputs and codes of columns along its first axis, inputs and codes of queries along its
        second."""
        eye, K = np.eye(patterns, dtype=bool), len(self.step)
        return np.block([
            [np.where(eye, *self.pattern), np.zeros((patterns, K))],
            [np.where(eye, *self.answer), np.zeros((patterns, K))],
            [np.repeat(np.asarray(self.step)[:, None], patterns, axis=1), np.asarray(self.steps)]])


def reduced(W: Float[Any, "attended queried"], patterns: int) -> ChainWeights:
    """The means of such a W over all exchanges of patterns."""
    M = patterns

    def means(block: Any) -> tuple[Any, Any]:
        return block.trace() / M, (block.sum() - block.trace()) / (M * (M - 1))

    return ChainWeights(means(W[:M, :M]), means(W[M:2 * M, :M]), W[2 * M:, :M].mean(axis=1), W[2 * M:, M:])


def chain_weights(params: ChainParams, prompts: Chain) -> ChainWeights:
    """The weights of a `ChainAttention` along the patterns of its prompts and the codes of their steps."""
    require(type(params) is ChainParams, "params", type(params).__name__, "be those of a ChainAttention")
    d, M, K = prompts.dimension, prompts.patterns, prompts.reasoning_steps
    queried = np.concatenate([np.arange(M), 2 * d + np.arange(K)])
    attended = np.concatenate([np.arange(M), d + np.arange(M), 2 * d + np.arange(K)])
    return reduced(params.W[np.ix_(attended, queried)], M)


def chain_order(weights: ChainWeights) -> Mapping[str, Any]:
    """What the score of a column gains from the query's pattern (as its input, as its output), and from its step."""
    own = weights.steps.trace() / len(weights.step)
    others = (weights.steps.sum() - weights.steps.trace()) / (len(weights.step) * max(len(weights.step) - 1, 1))
    return {"score, same pattern": weights.pattern[0] - weights.pattern[1],
            "score, pattern as output": weights.answer[0] - weights.answer[1],
            "score, same step": own - others}


def all_numbers(weights: ChainWeights) -> Mapping[str, Any]:
    """Every number, by field: what a probe records so that `ChainWeights` can be made again."""
    return {"pattern 0": weights.pattern[0], "pattern 1": weights.pattern[1], "answer 0": weights.answer[0],
            "answer 1": weights.answer[1], "step": weights.step, "steps": weights.steps}


def from_numbers(numbers: Mapping[str, Any], record: int) -> ChainWeights:
    """The weights at a record of such a probe."""
    of = {name: values[record] for name, values in numbers.items()}
    return ChainWeights((of["pattern 0"], of["pattern 1"]), (of["answer 0"], of["answer 1"]), of["step"], of["steps"])
