"""The one-layer Transformer of the cot paper in the coordinates of patterns: forward, backward and SGD of a batch.

With p_i the columns and q the query's, u = W q is the sum of two columns of W, that of the query's input and |c| times
that of its step's code. A column (x; y; k) that a prompt has n_i times then gets

    t_i = u[x_i] + u[d + y_i] + |c| u[code k_i],    a_i = n_i exp(t_i) / sum_j n_j exp(t_j),

and the output is the attention on each answer, F[y] = sum_{i: y_i = y} a_i. The loss |F - z|^2 / 2 has r = F - z and

    dL/dt_i = a_i (r[y_i] - F.r),    dL/du = sum_i dL/dt_i p_i,    dL/dW = (dL/du) q^T,

so that dL/du[d + y] = F[y] (r[y] - F.r), and dL/dW is added to the two columns that u was read from. The others, those
of answers and of patterns that never occur, stay as they are. Without `key_positions` the last term of t_i is missing.

Scores are summed over places in the task's order (`iclab.kernels.chain_draw`), where the columns of a chain without
wrong steps lie side by side for all prompts; outputs and gradients are over patterns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.kernels.arithmetic import exp
from iclab.kernels.chain_draw import draw_chains
from iclab.kernels.compiling import kernel, reordered

HIGH = 1e30
"""What the score of a column that a prompt does not have is lowered by."""


class ChainModel(NamedTuple):
    """What a step reads of a run besides its weights; for a pack, arrays of one number per run."""

    learning_rate: Any
    norm: Any
    """|c|: length of the query's position code."""
    key_norm: Any
    """Length of the position code of other columns; 0 without `key_positions`."""


class ChainScratch(NamedTuple):
    """Memory that a step needs while it works. D: inputs, outputs and codes, each padded."""

    U: Float[np.ndarray, "lanes D"]
    """u of every prompt, later its gradient."""
    of_input: Float[np.ndarray, "patterns lanes"]
    """u at the input of every place, later its gradient."""
    of_answer: Float[np.ndarray, "patterns lanes"]
    """u at the output of every place; later F, then r - F.r, with the total."""
    of_code: Float[np.ndarray, "steps lanes"]
    """u at every code, later its gradient."""
    attention: Float[np.ndarray, "columns lanes"]
    """t_i, later a_i times the total."""
    highest: Float[np.ndarray, " lanes"]
    """Highest t_i of every prompt."""
    total: Float[np.ndarray, " lanes"]
    """Sum of the exponentials of every prompt, later one over it."""
    F: Float[np.ndarray, "lanes M"]
    """Output, later r."""
    gradient: Float[np.ndarray, "rows D"]


@reordered
def look_up(W, model, chains, scratch, M):
    """u of every prompt, and its entries in the order of the task."""
    U, of_input, of_answer, of_code = scratch.U, scratch.of_input, scratch.of_answer, scratch.of_code
    rank, query, asked = chains.rank, chains.query, chains.asked
    n, D = U.shape
    for b in range(n):
        x, k = query[b], M + asked[b]
        for i in range(D):
            U[b, i] = W[x, i] + model.norm * W[k, i]
    padded = scratch.F.shape[1]
    for p in range(of_input.shape[0]):
        for b in range(n):
            of_input[p, b] = U[b, rank[p, b]]
            of_answer[p, b] = U[b, padded + rank[p, b]]
    for k in range(of_code.shape[0]):
        for b in range(n):
            of_code[k, b] = model.key_norm * U[b, 2 * padded + k]


@reordered
def attend(route, chains, scratch):
    """What attention gives to every column and, summed, to every place as an output; both are still to be divided by
    the total."""
    of_input, of_answer, of_code, t = scratch.of_input, scratch.of_answer, scratch.of_code, scratch.attention
    highest, total, weight, place = scratch.highest, scratch.total, chains.weight, chains.place
    real = t.dtype.type
    zero, one = real(0.0), real(1.0)
    K, (C, n) = of_code.shape[0], t.shape
    E, exact = C // K, place.shape[0] == 1
    highest[:] = real(-HIGH)
    for c in range(C):
        k, e = c // E, c % E
        if exact:
            x, y = route[k, e], route[k + 1, e]
            for b in range(n):
                absent = min(weight[c, b] - one, zero)
                t[c, b] = of_input[x, b] + of_answer[y, b] + of_code[k, b] + absent * real(HIGH)
        else:
            for b in range(n):
                absent, x, y = min(weight[c, b] - one, zero), place[k, e, b], place[k + 1, e, b]
                t[c, b] = of_input[x, b] + of_answer[y, b] + of_code[k, b] + absent * real(HIGH)
        for b in range(n):
            highest[b] = t[c, b] if t[c, b] > highest[b] else highest[b]
    total[:] = zero
    of_answer[:, :] = zero
    for c in range(C):
        k, e = c // E, c % E
        for b in range(n):
            t[c, b] = weight[c, b] * exp(t[c, b] - highest[b])
            total[b] += t[c, b]
        if exact:
            y = route[k + 1, e]
            for b in range(n):
                of_answer[y, b] += t[c, b]
        else:
            for b in range(n):
                of_answer[place[k + 1, e, b], b] += t[c, b]
    for b in range(n):
        total[b] = one / total[b]


@reordered
def errors(chains, scratch, B):
    """Sum of the losses; leaves the gradient along u's outputs, and r - F.r over the total on every place."""
    U, of_answer, F, total = scratch.U, scratch.of_answer, scratch.F, scratch.total
    rank, label = chains.rank, chains.label
    n, padded = F.shape
    real = F.dtype.type
    F[:, :] = real(0.0)
    for p in range(rank.shape[0]):
        for b in range(n):
            F[b, rank[p, b]] += of_answer[p, b] * total[b]
    losses = real(0.0)
    for b in range(n):
        r, slope, z, square = F[b], U[b, padded:2 * padded], label[b], real(0.0)
        for i in range(padded):
            error = r[i] - real(i == z)
            square += error * error
        common = square + r[z] - real(1.0)
        for i in range(padded):
            output = r[i]
            r[i] = output - real(i == z) - common
            slope[i] = output * r[i]
        losses += real(0.5) * square if b < B else real(0.0)
    for p in range(rank.shape[0]):
        for b in range(n):
            of_answer[p, b] = F[b, rank[p, b]] * total[b]
    return losses


@reordered
def spread(route, model, chains, scratch):
    """The gradient along u: what every column's score passes on to its input and its code."""
    U, of_input, of_answer, of_code, a = (scratch.U, scratch.of_input, scratch.of_answer, scratch.of_code,
                                          scratch.attention)
    real, place = a.dtype.type, chains.place
    K, (C, n) = of_code.shape[0], a.shape
    E, padded = C // K, scratch.F.shape[1]
    of_input[:, :] = real(0.0)
    of_code[:, :] = real(0.0)
    for c in range(C):
        k, e = c // E, c % E
        if place.shape[0] == 1:
            x, y = route[k, e], route[k + 1, e]
            for b in range(n):
                slope = a[c, b] * of_answer[y, b]
                of_input[x, b] += slope
                of_code[k, b] += slope
        else:
            for b in range(n):
                slope = a[c, b] * of_answer[place[k + 1, e, b], b]
                of_input[place[k, e, b], b] += slope
                of_code[k, b] += slope
    U[:, :padded] = real(0.0)
    for p in range(of_input.shape[0]):
        for b in range(n):
            U[b, chains.rank[p, b]] += of_input[p, b]
    for k in range(K):
        for b in range(n):
            U[b, 2 * padded + k] = model.key_norm * of_code[k, b]


@reordered
def step(W, model, draw, chains, scratch):
    """One step of SGD on a batch, in place; returns its mean loss."""
    real, M, B = W.dtype.type, draw.route.shape[1], draw.batch
    look_up(W, model, chains, scratch, M)
    attend(draw.route, chains, scratch)
    losses = errors(chains, scratch, B)
    spread(draw.route, model, chains, scratch)
    gradient, U = scratch.gradient, scratch.U
    gradient[:, :] = real(0.0)
    for b in range(B):
        x, k = chains.query[b], M + chains.asked[b]
        for i in range(U.shape[1]):
            gradient[x, i] += U[b, i]
        for i in range(U.shape[1]):
            gradient[k, i] += model.norm * U[b, i]
    rate = model.learning_rate / real(B)
    for j in range(W.shape[0]):
        for i in range(W.shape[1]):
            W[j, i] -= rate * gradient[j, i]
    return losses / real(B)


@kernel
def train(models, W, draw, keys, chains, words, scratch, losses):
    """Take a step per key with every run of a pack, all on the same batches; `losses` gets those of all steps."""
    high, low = keys
    for t in range(high.shape[0]):
        draw_chains(draw, high[t], low[t], chains, words)
        for r in range(losses.shape[0]):
            model = ChainModel(models.learning_rate[r], models.norm[r], models.key_norm[r])
            losses[r, t] = step(W[r], model, draw, chains, scratch)
