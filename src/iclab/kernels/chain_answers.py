"""Answers of the cot paper's Transformer to test prompts, and of the majority vote, from drawing to decoding.

Noise in an output is orthogonal to the patterns, so a step is decoded to the pattern b with the largest sum of exp(t)
over the columns that end in b, and the total does not matter (`iclab.kernels.chain_scores` derives the scores t). Of
the columns that a direct answer is read from, only those of first steps have an output: the example's last.

With the last example first, sums over the last n are running sums, and lengths whose queries have the same pattern
share them. The query's own columns, which depend on earlier answers, join at the end. Exponentials are relative to the
highest score of the longest of these lengths; where all scores of a shorter one are so low that little is left of them,
it is asked on its own.

The vote counts matching columns: it gives those of its step whose input is the query the weight 1, others 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from iclab.kernels.arithmetic import exp
from iclab.kernels.chain_draw import LANES
from iclab.kernels.chain_questions import BLOCK, draw_questions, lay_out, place_of, places_of, questions_of
from iclab.kernels.chain_scores import ask, attend, scratch_of, table_of
from iclab.kernels.compiling import inlined, kernel

LITTLE = 1e-20
"""Largest sum of weights of a length whose scores are too low for the highest."""


class Answers(NamedTuple):
    """The query's pattern, then the patterns that answers are decoded to; -1 while they are not known."""

    thought: Int[np.ndarray, "prompts lengths steps+1"]
    """Chain of thought."""
    direct: Int[np.ndarray, "prompts lengths 2"]
    """Answer given at once."""
    voted: Int[np.ndarray, "prompts lengths steps+1"]
    """Majority vote step by step."""
    voted_direct: Int[np.ndarray, "prompts lengths 2"]
    """Majority vote at once."""
    truth: Int[np.ndarray, "prompts steps+1"]


@inlined
def match(prompt, p, n, scratch):
    """Weights of a vote: 1 for columns whose input is the query's pattern."""
    real = scratch.weight.dtype.type
    for i in range(n):
        scratch.weight[i] = real(1.0) if prompt.tokens[i] == p else real(0.0)


@inlined
def decode(prompt, columns, lengths, longest, k, own, highest, least, answers, scratch):
    """Answer step k with the length numbered `longest` and with all shorter ones whose query has the same pattern.

    `columns` are the first and the last step that they are of, and by how many places their outputs follow their
    inputs; `own` is how many the query has. A shorter length for which no sum reaches `least` is not answered.
    """
    (begin, end, span), sums, done = columns, scratch.sums, 0
    for j in range(begin, end):
        for b in range(sums.shape[1]):
            sums[j, b] = sums.dtype.type(0.0)
    for shorter in range(longest + 1):
        if answers[shorter, k] == answers[longest, k]:
            for e in range(done, lengths[shorter]):
                for j in range(begin, end):
                    i = place_of(e, j, sums.shape[0] + 1)
                    sums[j, prompt.tokens[i + span]] += scratch.weight[i]
            done = lengths[shorter]
            best = _likeliest(begin, end, own, highest, answers[shorter], scratch)
            if scratch.total[best] >= least or shorter == longest:
                answers[shorter, k + 1] = best


@inlined
def _likeliest(begin, end, own, highest, answers, scratch):
    """The output with the largest sum, that of the query's own columns included."""
    u, total, sums, (K, M) = scratch.u, scratch.total, scratch.sums, scratch.sums.shape
    level = highest
    for j in range(own):
        level = max(level, u[j * M + answers[j]] + u[K * M + answers[j + 1]])
    factor = exp(highest - level)
    for b in range(M):
        total[b] = sums[begin, b]
        for j in range(begin + 1, end):
            total[b] += sums[j, b]
        total[b] *= factor
    for j in range(own):
        total[answers[j + 1]] += exp(u[j * M + answers[j]] + u[K * M + answers[j + 1]] - level)
    best = 0
    for b in range(1, M):
        best = b if total[b] > total[best] else best
    return best


@inlined
def think(table, lengths, prompt, thought, direct, scratch):
    """The model's answers to one prompt, step by step and at once; the longest lengths ask first."""
    K = scratch.sums.shape[0]
    for k in range(K):
        for longest in range(lengths.shape[0] - 1, -1, -1):
            unknown, unknown_direct = thought[longest, k + 1] < 0, k == 0 and direct[longest, 1] < 0
            length, n = lengths[longest], places_of(lengths[longest], K + 1)
            if unknown or unknown_direct:
                ask(table, thought[longest, k], k, n, prompt, scratch)
            if unknown:
                highest = attend(scratch.example, BLOCK, length, n, scratch)
                decode(prompt, (0, K, BLOCK), lengths, longest, k, k, highest, LITTLE, thought, scratch)
            if unknown_direct:
                highest = attend(scratch.first, K * BLOCK, length, n, scratch)
                decode(prompt, (0, 1, K * BLOCK), lengths, longest, 0, 0, highest, LITTLE, direct, scratch)


@inlined
def vote(lengths, prompt, voted, direct, scratch):
    """The answers of the majority to one prompt, step by step and at once."""
    K, zero = scratch.sums.shape[0], scratch.u.dtype.type(0.0)
    for k in range(K):
        for longest in range(lengths.shape[0] - 1, -1, -1):
            if voted[longest, k + 1] < 0:
                match(prompt, voted[longest, k], places_of(lengths[longest], K + 1), scratch)
                decode(prompt, (k, k + 1, BLOCK), lengths, longest, k, 0, zero, 0.0, voted, scratch)
                if k == 0:
                    decode(prompt, (0, 1, K * BLOCK), lengths, longest, 0, 0, zero, 0.0, direct, scratch)


@kernel
def answer(questions, keys, table, lengths, scratch, answers):
    """Draw the batches of some keys, and answer every prompt with every number of examples."""
    (high, low), batch, prompt = keys, questions.draw.batch, questions.prompt
    for t in range(high.shape[0]):
        for begin in range(0, batch, LANES):
            draw_questions(questions, high[t], low[t], begin)
            for b in range(min(LANES, batch - begin)):
                lay_out(questions, b)
                number = t * batch + begin + b
                thought, direct = answers.thought[number], answers.direct[number]
                voted, voted_direct = answers.voted[number], answers.voted_direct[number]
                for i in range(lengths.shape[0]):
                    thought[i, 0] = direct[i, 0] = voted[i, 0] = voted_direct[i, 0] = prompt.chain[0]
                for k in range(prompt.chain.shape[0]):
                    answers.truth[number, k] = prompt.chain[k]
                think(table, lengths, prompt, thought, direct, scratch)
                vote(lengths, prompt, voted, voted_direct, scratch)


def answers_of(model: Any, W: Float[np.ndarray, "width width"], test: Any, lengths: Sequence[int], keys: Any,
               batch: int) -> Answers:
    """The answers of a `ChainAttention` to batches of test prompts, one batch per key, and those of the vote."""
    real, K, prompts = W.dtype.type, test.reasoning_steps, len(keys[0]) * batch
    ascending, asked = np.unique(lengths, return_inverse=True)

    def unknown(patterns: int) -> Int[np.ndarray, "prompts lengths patterns"]:
        return np.full((prompts, len(ascending), patterns), -1, np.int32)

    answers = Answers(unknown(K + 1), unknown(2), unknown(K + 1), unknown(2), np.zeros((prompts, K + 1), np.int32))
    table = table_of(model, W, test)
    scratch = scratch_of(K, test.patterns, test.prompt_length, table.shape[1], real)
    answer(questions_of(test, batch, real), tuple(keys), table, ascending, scratch, answers)
    thought, direct, voted, voted_direct = (field[:, asked] for field in answers[:4])
    return Answers(thought, direct, voted, voted_direct, answers.truth)
