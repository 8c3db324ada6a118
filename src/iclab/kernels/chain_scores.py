"""Scores of the cot paper's Transformer on test prompts, without a column being written.

In a basis V of the inputs that begins with the test's patterns, a token is a pattern a and the signs r of its noise,
V x = (e_a; s r). A query is a pattern p and a step k, q = (V^T e_p; 0; |c| e_k), so u = W q is the sum of a column of
W V^T for the pattern and one of W for the step. With v = V u_x and w = V u_y, a column from token (a; r) to token
(b; r') in step j gets the score

    t = [v_a + |c| u[code j] + s v_noise.r] + [w_b + s w_noise.r'],

where s v.r is the sum of 2 s v over the bits that are 1, less s times the sum of v. What a token adds as an input and
as an output is computed once for every query. All of it is linear in u: `table` holds every term for each pattern and
each step of a query, whose two rows are then added. Without `key_positions` the term of the code is missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from iclab.kernels.arithmetic import exp
from iclab.kernels.chain_questions import BLOCK, places_of
from iclab.kernels.compiling import inlined
from iclab.prompts.chain import WORD, mixtures_code

BITS = 4
"""Signs that are added at once."""
LOW = -1e30
"""Score of what is no column."""
NEVER = 2**31 - 1
"""The example of a place where no column begins."""


class Scratch(NamedTuple):
    """Memory that a query needs while it is answered, and where columns begin."""

    u: Float[np.ndarray, " terms"]
    as_input: Float[np.ndarray, " places"]
    """What a token adds to the score of the column that it is the input of."""
    as_output: Float[np.ndarray, " places"]
    """The same, of the column that it is the output of."""
    weight: Float[np.ndarray, " places"]
    """t_i, later its exponential up to a factor, of the column that begins at a place."""
    sums: Float[np.ndarray, "steps patterns"]
    """Sums of weights by output, of every step: additions to one entry would wait for each other."""
    total: Float[np.ndarray, " patterns"]
    inputs: Int[np.ndarray, " places"]
    """Where the terms of a token as an input begin in u."""
    example: Int[np.ndarray, " places"]
    """The example whose column begins here."""
    first: Int[np.ndarray, " places"]
    """The same, if it is the column of a first step."""


def scratch_of(K: int, M: int, examples: int, terms: int, real: Any) -> Scratch:
    """Memory for prompts of this shape. Places that follow the last are read, but not used."""
    places, blocks = places_of(examples, K + 1), places_of(examples, 1) // BLOCK
    token = np.broadcast_to(np.arange(K + 1)[:, None], (blocks, K + 1, BLOCK))
    example = np.arange(blocks * BLOCK).reshape(blocks, 1, BLOCK)
    as_input, as_output, weight = (np.zeros(places + K * BLOCK, real) for _ in range(3))
    return Scratch(np.zeros(terms, real), as_input, as_output, weight, np.zeros((K, M), real), np.zeros(M, real),
                   *(np.where(chosen, values, other).astype(np.int32).ravel() for chosen, values, other in (
                       (token < K, M * token, 0), (token < K, example, NEVER), (token < 1, example, NEVER))))


def table_of(model: Any, W: Float[np.ndarray, "width width"], test: Any) -> Float[np.ndarray, "patterns+steps terms"]:
    """What the query's pattern (first rows) or step adds to each term: inputs of each step, outputs, what all noise as
    an input and as an output has in common, then what a sign adds in each direction, as an input and as an output."""
    d, M, K = test.dimension, test.patterns, test.reasoning_steps
    V = np.eye(d) if test.pattern_mixtures is None else mixtures_code(test, test.pattern_mixtures)
    assert V is not None
    norm = float(model.embedding.norm)
    u = np.concatenate([W[:, :d].astype(float) @ V[:M].T, norm * W[:, 2 * d:].astype(float)], axis=1)
    inputs, outputs = V @ u[:d], V @ u[d:2 * d]
    codes = (norm if model.key_positions else 0.0) * u[2 * d:]
    directions = 0 if test.noise_norm is None else d - M
    signs = np.zeros((2, -(-directions // BITS) * BITS, M + K))
    if directions:
        signs[:, :directions] = 2.0 * test.noise_norm / np.sqrt(directions) * np.stack([inputs[M:], outputs[M:]])
    return np.concatenate([*(inputs[:M] + code for code in codes), outputs[:M], -0.5 * signs.sum(axis=1), *signs]
                          ).T.astype(W.dtype)


@inlined
def ask(table, p, k, n, prompt, scratch):
    """What the tokens of the first n places add to the scores of their columns, for the query of pattern p in step
    k."""
    u, tokens, noisy, inputs, (K, M) = scratch.u, prompt.tokens, prompt.noisy, scratch.inputs, scratch.sums.shape
    as_input, as_output = scratch.as_input, scratch.as_output
    for i in range(u.shape[0]):
        u[i] = table[p, i] + table[M + k, i]
    noise = K * M + M + 2
    common_input, common_output, directions = u[noise - 2], u[noise - 1], (u.shape[0] - noise) // 2
    for i in range(n):
        as_input[i] = u[inputs[i] + tokens[i]] + noisy[i] * common_input
        as_output[i] = u[K * M + tokens[i]] + noisy[i] * common_output
    for r in range(0, directions, BITS):
        _add_signs(u[noise + r:], u[noise + directions + r:], prompt.signs[r // WORD], r % WORD, n, as_input, as_output)


@inlined
def _add_signs(v, w, words, bit, n, as_input, as_output):
    """Add what the noise in four directions contributes."""
    v0, v1, v2, v3, zero = v[0], v[1], v[2], v[3], v.dtype.type(0.0)
    w0, w1, w2, w3 = w[0], w[1], w[2], w[3]
    for i in range(n):
        word = words[i] >> np.uint32(bit)
        one, two, four, eight = word & np.uint32(1), word & np.uint32(2), word & np.uint32(4), word & np.uint32(8)
        as_input[i] += ((v0 if one else zero) + (v1 if two else zero)) + ((v2 if four else zero)
                                                                          + (v3 if eight else zero))
        as_output[i] += ((w0 if one else zero) + (w1 if two else zero)) + ((w2 if four else zero)
                                                                           + (w3 if eight else zero))


@inlined
def attend(example, span, length, n, scratch):
    """Weights of the columns of the first `length` examples, whose outputs are `span` places after their inputs;
    returns the score that they are relative to."""
    as_input, as_output, weight = scratch.as_input, scratch.as_output[span:], scratch.weight
    highest = weight.dtype.type(LOW)
    for i in range(n):
        weight[i] = as_input[i] + as_output[i] if example[i] < length else weight.dtype.type(LOW)
        highest = weight[i] if weight[i] > highest else highest
    for i in range(n):
        weight[i] = exp(weight[i] - highest)
    return highest
