"""The one-layer Transformer of the cot paper reading test prompts: chain of thought and direct answers, fused.

A step's query is q = (x; 0; |c| e_k), with x the query's input or the pattern decoded last. With u = W q, column i of
the prompt, (x_i; y_i; c_i), and C the number of columns,

    t_i = u[:d].x_i + u[d:2d].y_i + |c| u[2d + k_i],    F = sum_i exp(t_i) y_i / sum_i exp(t_i),

and the step is decoded to the pattern with the largest product with F, whose column (x; answer; c_k) then joins the
others. A prompt is read from memory once, for all its steps: its columns are laid
out with one row per coordinate, so that one instruction does the same for many columns. Inputs and outputs may be
anything, noise included.

A direct answer comes from one step; of the columns only the first of each example keeps its input, with the example's
last output. The others are blank but for their code.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from iclab.kernels.arithmetic import exp
from iclab.kernels.compiling import kernel, reordered

LANES = 16
BLOCK = 8
"""Columns that are laid out together."""
LOW = -1e30
"""Score of a column that is not there."""


class Reader(NamedTuple):
    """A trained model."""

    W_T: Float[np.ndarray, "2*d+K places"]
    """W transposed: row j is what coordinate j of a query adds to u. Places past those of u, of which columns without
    a step read the first, are 0."""
    norm: Any
    """|c|: length of the query's position code."""
    key_norm: Any
    """Length of the position code of other columns; 0 without `key_positions`."""


class ReadingScratch(NamedTuple):
    """Memory that a prompt needs while it is read; columns, and vectors that products are taken with, are padded."""

    columns: Float[np.ndarray, "2*d columns"]
    """Inputs, then outputs, one row per coordinate; the query's own columns follow those of the examples."""
    step: Int[np.ndarray, " columns"]
    """Step of every column; K for one that belongs to none."""
    attention: Float[np.ndarray, " columns"]
    """t_i, later exp(t_i) up to a factor."""
    query: Float[np.ndarray, " d"]
    u: Float[np.ndarray, " places"]
    F: Float[np.ndarray, " padded"]
    """F up to a factor."""


@reordered
def lay_out(field, first, columns):
    """Copy a field of all columns into rows from `first` on, transposed."""
    C, d = field.shape
    whole = C - C % BLOCK
    for i in range(0, whole, BLOCK):
        for j in range(d):
            for lane in range(BLOCK):
                columns[first + j, i + lane] = field[i + lane, j]
    for i in range(whole, C):
        for j in range(d):
            columns[first + j, i] = field[i, j]


@reordered
def lay_out_direct(x, y, step, K, columns):
    """The same for a direct answer: inputs of first steps with outputs of last ones."""
    d = x.shape[1]
    columns[:, :] = x.dtype.type(0.0)
    for i in range(x.shape[0]):
        if step[i] == 0:
            for j in range(d):
                columns[j, i], columns[d + j, i] = x[i, j], y[i + K - 1, j]


@reordered
def ask(reader, k, n, scratch):
    """F, up to a factor, for the query and step k, from the first n columns."""
    W_T, columns, query, u, a, F = reader.W_T, scratch.columns, scratch.query, scratch.u, scratch.attention, scratch.F
    real, d = u.dtype.type, query.shape[0]
    for i in range(u.shape[0]):
        u[i] = reader.norm * W_T[2 * d + k, i]
    for j in range(d):
        for i in range(u.shape[0]):
            u[i] += query[j] * W_T[j, i]
    for i in range(a.shape[0]):
        a[i] = reader.key_norm * u[2 * d + scratch.step[i]] if i < n else real(LOW)
    for j in range(d):
        inputs, outputs = columns[j], columns[d + j]
        for i in range(a.shape[0]):
            a[i] += u[j] * inputs[i] + u[d + j] * outputs[i]
    highest = real(LOW)
    for i in range(a.shape[0]):
        highest = a[i] if a[i] > highest else highest
    for i in range(a.shape[0]):
        a[i] = exp(a[i] - highest)
    for i in range(n, a.shape[0]):
        a[i] = real(0.0)
    for j in range(d):
        outputs, attended = columns[d + j], real(0.0)
        for i in range(a.shape[0]):
            attended += a[i] * outputs[i]
        F[j] = attended


@reordered
def nearest(vectors, F):
    """The pattern nearest to F; patterns are orthonormal, so the one with the largest product, whatever F's factor."""
    best, answer = F.dtype.type(0.0), 0
    for v in range(vectors.shape[0]):
        product = F.dtype.type(0.0)
        for j in range(F.shape[0]):
            product += vectors[v, j] * F[j]
        if v == 0 or product > best:
            best, answer = product, v
    return answer


@kernel
def decode(reader, x, y, step, vectors, direct, scratch, answers):
    """Decode every prompt of a batch; `answers` has a column per step, or one for direct answers."""
    columns, query, (_, C, d) = scratch.columns, scratch.query, x.shape
    C -= 1
    K = reader.W_T.shape[0] - 2 * d
    for b in range(x.shape[0]):
        for i in range(C):
            scratch.step[i] = step[b, i] if 0 <= step[b, i] < K else K
        if direct:
            lay_out_direct(x[b, :C], y[b, :C], step[b], K, columns)
        else:
            lay_out(x[b, :C], 0, columns)
            lay_out(y[b, :C], d, columns)
        for j in range(d):
            query[j] = x[b, C, j]
        for k in range(answers.shape[1]):
            ask(reader, k, C + k, scratch)
            answer = nearest(vectors, scratch.F)
            answers[b, k] = answer
            scratch.step[C + k] = k
            for j in range(d):
                columns[j, C + k], columns[d + j, C + k] = query[j], vectors[answer, j]
                query[j] = vectors[answer, j]


def decode_prompts(model: Any, W: Float[np.ndarray, "width width"], x: Float[np.ndarray, "batch columns d"],
                   y: Float[np.ndarray, "batch columns d"], step: Int[np.ndarray, "batch columns"],
                   vectors: Float[np.ndarray, "patterns d"], direct: bool) -> Int[np.ndarray, "batch steps"]:
    """The answers of a `ChainAttention` to a batch of test prompts."""
    (batch, tokens, d), K, norm, real = x.shape, model.embedding.steps, model.embedding.norm, W.dtype.type
    places, padded, columns = _padded(2 * d + K + 1), _padded(d), _padded(tokens - 1 + K)
    W_T, near = np.zeros((2 * d + K, places), real), np.zeros((len(vectors), padded), real)
    W_T[:, :2 * d + K], near[:, :d] = W.T, vectors
    scratch = ReadingScratch(np.zeros((2 * d, columns), real), np.zeros(columns, np.int32), np.zeros(columns, real),
                             np.zeros(d, real), np.zeros(places, real), np.zeros(padded, real))
    answers = np.empty((batch, 1 if direct else K), np.int32)
    decode(Reader(W_T, real(norm), real(norm if model.key_positions else 0.0)), np.ascontiguousarray(x, real),
           np.ascontiguousarray(y, real), np.ascontiguousarray(step, np.int32), near, direct, scratch, answers)
    return answers


def _padded(count: int) -> int:
    return -(-count // LANES) * LANES
