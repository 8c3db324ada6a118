"""Softmax attention and its MLP, one layer, in the dictionary of patterns: forward, backward and SGD step of a batch.

With tokens p_i, the query p_q and the fixed a, the output is (`iclab.models.softmax_mlp`)

    F = a^T relu(h),    h = R c,    R = W_O W_V,    c = sum_i att_i p_i,    att = softmax(s),    s_i = U^T p_i,

where U = A^T p_q and A = W_Q^T W_K. In the dictionary every token has at most four entries: U is made of two rows of A,
a score of four entries of U, and c is a short vector to which every token adds four numbers. Only h is a dense product,
of R and the vectors c of the batch. F is proportional to the length of c, so dF/dc . c = F, and the slope of the
softmax needs no second sum:

    dF/dh = a 1[h > 0],     dF/dR   = dF/dh c^T,                 dF/dc = R^T dF/dh,
    dF/dU = sum_i dF/ds_i p_i,    dF/ds_i = att_i (dF/dc . p_i - F),    dF/dA = p_q dF/dU^T.

Then dW_O = dR W_V^T, dW_V = W_O^T dR, dW_Q = W_K dA^T and dW_K = W_Q dA. Prompts whose loss has no slope are left out,
and tables are made again only after a step that moved the weights. All rows of W_V are needed: those that read nothing
at the start have gradients, because W_O is not 0 there.
"""

from __future__ import annotations

import numpy as np

from iclab.kernels.answers import loss_and_slope
from iclab.kernels.arithmetic import exp
from iclab.kernels.compiling import compiled, kernel, reordered
from iclab.kernels.products import add_product, copy, move, product, product_transposed, transpose
from iclab.kernels.softmax_arrays import SoftmaxTables, SoftmaxWeights
from iclab.kernels.tokens import draw_tokens


@compiled
def make_tables(weights, dictionary, tables):
    """The weights over the dictionary, and their products."""
    if dictionary.rows.shape[0] > 0:
        axes = dictionary.transposed.shape[0]
        product(tables.W_Q, tables.W_Q.shape[0], weights.W_Q, dictionary.transposed, axes)
        product(tables.W_K, tables.W_K.shape[0], weights.W_K, dictionary.transposed, axes)
        product(tables.W_V, tables.W_V.shape[0], weights.W_V, dictionary.transposed, axes)
    else:
        copy(tables.W_Q, weights.W_Q)
        copy(tables.W_K, weights.W_K)
        copy(tables.W_V, weights.W_V)
    product_transposed(tables.A, tables.A.shape[0], tables.W_Q, tables.W_K, tables.W_Q.shape[0])
    product_transposed(tables.R, tables.R.shape[0], tables.W_V, weights.W_O, weights.W_O.shape[0])


@reordered
def attend(outliers, A, tokens, scratch, batch):
    """What the query of every prompt takes from its examples; `outliers` says whether any token carries one."""
    pattern, irrelevant, outlier, c_pattern, c_irrelevant, c_outlier, c_label, label = tokens
    U, attention, mass = scratch.U, batch.attention, batch.mass
    real = c_label.dtype.type
    B, D = label.shape[0], A.shape[0]
    T = c_label.shape[0] // B
    for b in range(B):
        q = b * T + T - 1
        j, k, c_j, c_k = pattern[q], irrelevant[q], c_pattern[q], c_irrelevant[q]
        for i in range(D):
            U[b, i] = c_j * A[j, i] + c_k * A[k, i]
    for b in range(B):
        o, u, u_label = b * T, U[b], U[b, D - 1]
        for t in range(T):
            c = o + t
            score = c_pattern[c] * u[pattern[c]] + c_irrelevant[c] * u[irrelevant[c]] + c_label[c] * u_label
            attention[c] = score + c_outlier[c] * u[outlier[c]] if outliers else score
    for b in range(B):
        o, top = b * T, attention[b * T]
        for t in range(1, T - 1):
            top = attention[o + t] if attention[o + t] > top else top
        for t in range(T):
            attention[o + t] -= top
    # In one loop: the few tokens of a prompt would not fill its vectors.
    for c in range(c_label.shape[0]):
        attention[c] = exp(attention[c])
    mass[:, :] = real(0.0)
    for b in range(B):
        o, total, mass_label = b * T, real(0.0), real(0.0)
        for t in range(T - 1):
            c = o + t
            e = attention[c]
            total += e
            mass[b, pattern[c]] += e * c_pattern[c]
            mass[b, irrelevant[c]] += e * c_irrelevant[c]
            mass_label += e * c_label[c]
            if outliers:
                mass[b, outlier[c]] += e * c_outlier[c]
        mass[b, D - 1] += mass_label
        batch.total[b] = total
    for b in range(B):
        share = real(1.0) / batch.total[b]
        for i in range(D):
            mass[b, i] *= share


@compiled
def _relu(h):
    """max(h, 0); what is not a number stays so."""
    zero = type(h)(0.0)
    return zero if h <= zero else h


@reordered
def read(outliers, a, tables, tokens, scratch, batch):
    """The output of every prompt, and what led to it."""
    attend(outliers, tables.A, tokens, scratch, batch)
    hidden, outputs = batch.hidden, batch.outputs
    real = outputs.dtype.type
    zero = real(0.0)
    product(hidden, hidden.shape[0], batch.mass, tables.R, tables.R.shape[0])
    for b in range(0, hidden.shape[0], 4):
        f0, f1, f2, f3 = zero, zero, zero, zero
        for k in range(a.shape[0]):
            f0 += a[k] * _relu(hidden[b, k])
            f1 += a[k] * _relu(hidden[b + 1, k])
            f2 += a[k] * _relu(hidden[b + 2, k])
            f3 += a[k] * _relu(hidden[b + 3, k])
        outputs[b], outputs[b + 1], outputs[b + 2], outputs[b + 3] = f0, f1, f2, f3


@reordered
def add_attention_gradient(outliers, count, tokens, scratch, batch):
    """dA of the first `count` active prompts, from the slopes along their c."""
    pattern, irrelevant, outlier, c_pattern, c_irrelevant, c_outlier, c_label, label = tokens
    attention, dU, dc, dA = batch.attention, scratch.U, scratch.dc, scratch.dA
    real = c_label.dtype.type
    D, T = dA.shape[0], c_label.shape[0] // label.shape[0]
    dU[:count] = real(0.0)
    for n in range(count):
        b = scratch.active[n]
        o, share, mean = b * T, real(1.0) / batch.total[b], scratch.slope[n] * batch.outputs[b]
        dc_label, dU_label = dc[n, D - 1], real(0.0)
        for t in range(T - 1):
            c = np.uint64(o + t)  # never negative: nothing to be counted from the end
            i, j, k = pattern[c], irrelevant[c], outlier[c]
            along = c_pattern[c] * dc[n, i] + c_irrelevant[c] * dc[n, j] + c_label[c] * dc_label
            if outliers:
                along += c_outlier[c] * dc[n, k]
            ds = attention[c] * share * (along - mean)
            dU[n, i] += ds * c_pattern[c]
            dU[n, j] += ds * c_irrelevant[c]
            dU_label += ds * c_label[c]
            if outliers:
                dU[n, k] += ds * c_outlier[c]
        dU[n, D - 1] += dU_label
    dA[:, :] = real(0.0)
    for n in range(count):
        q = scratch.active[n] * T + T - 1
        i, j, c_i, c_j = pattern[q], irrelevant[q], c_pattern[q], c_irrelevant[q]
        for k in range(D):
            dA[i, k] += c_i * dU[n, k]
        for k in range(D):
            dA[j, k] += c_j * dU[n, k]


@reordered
def step(loss_kind, outliers, learning_rate, a, weights, tables, dictionary, tokens, scratch, batch):
    """One step of SGD on a batch, in place; returns its mean loss, and whether it moved the weights."""
    read(outliers, a, tables, tokens, scratch, batch)
    label, hidden, mass, dh = tokens.label, batch.hidden, batch.mass, scratch.dh
    real = label.dtype.type
    B, zero, total, count = label.shape[0], real(0.0), real(0.0), 0
    for b in range(B):
        loss, slope = loss_and_slope(loss_kind, real, batch.outputs[b], label[b])
        total += loss
        if slope != zero:
            slope /= real(B)
            scratch.active[count], scratch.slope[count] = b, slope
            for k in range(a.shape[0]):
                dh[count, k] = slope * a[k] if hidden[b, k] > zero else zero
            if count < b:
                for i in range(mass.shape[1]):
                    mass[count, i] = mass[b, i]
            count += 1
    if count > 0:
        _move(outliers, count, learning_rate, a, weights, tables, dictionary, tokens, scratch, batch)
    return total / real(B), count > 0


@compiled
def _move(outliers, count, learning_rate, a, weights, tables, dictionary, tokens, scratch, batch):
    """Take the step that the first `count` active prompts ask for."""
    R_T, dR, dR_T, dA, dA_T, D = scratch.R_T, scratch.dR, scratch.dR_T, scratch.dA, scratch.dA_T, tables.A.shape[0]
    rate, m = -learning_rate, a.shape[0]
    transpose(R_T, tables.R)
    product(scratch.dc, count, scratch.dh, R_T, m)
    product_transposed(dR, D, batch.mass, scratch.dh, count)
    transpose(dR_T, dR)
    add_attention_gradient(outliers, count, tokens, scratch, batch)
    transpose(dA_T, dA)
    move(weights.W_V, rate, weights.W_O, dR_T, m, dictionary.rows, scratch.gradient)
    add_product(weights.W_O, rate, tables.W_V, dR, D)
    move(weights.W_K, rate, tables.W_Q, dA, D, dictionary.rows, scratch.gradient)
    move(weights.W_Q, rate, tables.W_K, dA_T, D, dictionary.rows, scratch.gradient)


@compiled
def weights_of(pack, r):
    """The weights of run r."""
    return SoftmaxWeights(pack.W_Q[r], pack.W_K[r], pack.W_V[r], pack.W_O[r])


@compiled
def tables_of(pack, r):
    """The tables of run r."""
    return SoftmaxTables(pack.W_Q[r], pack.W_K[r], pack.W_V[r], pack.A[r], pack.R[r])


@kernel
def train(loss, model, weights, dictionary, draw, keys, tokens, draw_scratch, tables, scratch, batch, losses):
    """Take a step per key with every run of a pack, all on the same batches; `losses` gets those of all steps."""
    (high, low), outliers = keys, draw.p_a > 0
    moved = np.ones(losses.shape[0], np.bool_)
    for t in range(high.shape[0]):
        draw_tokens(draw, high[t], low[t], tokens, draw_scratch)
        for r in range(losses.shape[0]):
            rate, mine, over = model.learning_rate[r], weights_of(weights, r), tables_of(tables, r)
            if moved[r]:
                make_tables(mine, dictionary, over)
            losses[r, t], moved[r] = step(loss, outliers, rate, model.a, mine, over, dictionary, tokens, scratch, batch)
