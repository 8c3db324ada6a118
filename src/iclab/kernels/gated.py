"""The gated family, one layer, in the dictionary of patterns: forward, backward and the SGD step of a whole batch.

With d_t the decay and b_t the intake of token t (`iclab.models.gates`), tokens p_t and the query p_q, the output is

    F = g sum_i y_i t_i r_i b_i,    t_i = p_i^T W_B^T W_C p_q,    r_i = d_{i+1} ... d_T,

where y_i is the label coordinate of p_i and g what the readout multiplies by. In the dictionary every p_i has at most
four entries, so with A = W_B^T W_C and U = A p_q (two rows of A, one vector per prompt) t_i is four entries of U, and
the gate's logit z_i = w.p_i four entries of w. With c_i = y_i t_i r_i b_i and C_k = sum_{i<k} c_i,

    dF/dz_k = g (C_k dlog d_k/dz + y_k t_k r_k db_k/dz),    dF/da = g sum_k C_k dlog d_k/da,
    dF/dA   = g (sum_i y_i r_i b_i p_i) p_q^T,

the latter again a few entries: a vector per prompt, added to the two columns of dA that its query touches. Then
dW_B = W_C dA^T and dW_C = W_B dA. Prompts whose loss has no slope are left out.
"""

from __future__ import annotations

import numpy as np

from iclab.kernels.answers import loss_and_slope
from iclab.kernels.arithmetic import exp, log_between_1_and_2
from iclab.kernels.compiling import inlined, kernel, reordered
from iclab.kernels.gated_arrays import GatedModel, GatedWeights
from iclab.kernels.products import move, product, product_transposed, transpose
from iclab.kernels.tokens import along, draw_tokens
from iclab.kernels.vectors import LANES, choose, fill, first_of, lanes, load, products_behind, store, total
from iclab.models.gates import MEMBERS

LINEAR, MAMBA, RETNET, GATED_RETENTION, MAMBA2, MAMBA2_STEP = (
    MEMBERS.index(name) for name in ("linear", "mamba", "retnet", "gated_retention", "mamba2", "mamba2_step"))


@reordered
def gates(member, retention, temperature, a, w, tokens, scratch):
    """Decay and intake of every token, and their slopes along the logit (Mamba's follow from the gate itself)."""
    decay, intake, decay_slope, intake_slope = (scratch.decay, scratch.intake, scratch.decay_slope,
                                                scratch.intake_slope)
    real, n = w.dtype.type, tokens.c_label.shape[0]
    one = real(1.0)
    if member in (LINEAR, RETNET):
        for c in range(n):
            decay[c] = one if member == LINEAR else retention
            intake[c] = one
            decay_slope[c] = real(0.0)
            intake_slope[c] = real(0.0)
        return
    two = load(w, 0), load(w, LANES)
    for c in range(0, n, LANES):
        store(decay, c, along(tokens, c, w, two, scratch.A.shape[0]))
    if member == MAMBA:
        for c in range(n):
            e = exp(-decay[c])
            s = one / (one + e)
            intake[c] = s
            decay[c] = e * s
        return
    if member == GATED_RETENTION:
        for c in range(n):
            z = decay[c]
            e = exp(-abs(z))
            softplus = max(-z, real(0.0)) + log_between_1_and_2(one + e)
            decay_slope[c] = (e if z > real(0.0) else one) / (one + e) / temperature
            decay[c] = exp(-softplus / temperature)
            intake[c] = one
            intake_slope[c] = real(0.0)
        return
    rate = exp(a)
    for c in range(n):
        z = decay[c]
        e = exp(-abs(z))
        softplus = max(z, real(0.0)) + log_between_1_and_2(one + e)
        s = (one if z > real(0.0) else e) / (one + e)
        decay_slope[c] = -s * rate
        decay[c] = exp(-softplus * rate)
        intake[c] = softplus if member == MAMBA2_STEP else one
        intake_slope[c] = s if member == MAMBA2_STEP else real(0.0)


@reordered
def make_tables(weights, dictionary, scratch):
    """The weights over the dictionary, and A."""
    W_B, W_C, w, real = scratch.W_B, scratch.W_C, scratch.w, weights.w.dtype.type
    rows, axes, D = W_B.shape[0], weights.W_B.shape[1], W_B.shape[1]
    if dictionary.rows.shape[0] > 0:
        product(W_B, rows, weights.W_B, dictionary.transposed, axes)
        product(W_C, rows, weights.W_C, dictionary.transposed, axes)
        for j in range(D):
            total = real(0.0)
            for i in range(axes):
                total += dictionary.rows[j, i] * weights.w[i]
            w[j] = total
    else:
        for k in range(rows):
            for i in range(D):
                W_B[k, i], W_C[k, i] = weights.W_B[k, i], weights.W_C[k, i]
        for i in range(D):
            w[i] = weights.w[i]
    product_transposed(scratch.A, D, W_C, W_B, rows)


@reordered
def read(member, model, weights, dictionary, tokens, scratch, batch):
    """The output of every prompt, and what led to it."""
    make_tables(weights, dictionary, scratch)
    gates(member, model.retention, model.temperature, weights.a[0], scratch.w, tokens, scratch)
    for b in range(tokens.label.shape[0]):
        batch.outputs[b] = model.gain * read_prompt(b, tokens, scratch, batch)


@inlined
def query_row(A, tokens, q, i):
    """Entries i to i + `LANES` of U, for the query that is token q."""
    D = A.shape[0]
    return (load(A, tokens.pattern[q] * D + i) * tokens.c_pattern[q]
            + load(A, tokens.irrelevant[q] * D + i) * tokens.c_irrelevant[q])


@inlined
def read_prompt(b, tokens, scratch, batch):
    """F / g of prompt b. What is written behind its last token belongs to the next prompt, which is read later."""
    decay, intake, u, A = scratch.decay, scratch.intake, scratch.u, scratch.A
    real, D, T = u.dtype.type, A.shape[0], tokens.c_label.shape[0] // tokens.label.shape[0]
    q = b * T + T - 1
    two = query_row(A, tokens, q, 0), query_row(A, tokens, q, LANES)
    store(u, 0, two[0])
    store(u, LANES, two[1])
    for i in range(2 * LANES, D, LANES):
        store(u, i, query_row(A, tokens, q, i))
    behind, output = real(1.0), fill(real(0.0))
    for first in range((T - 1) // LANES * LANES, -1, -LANES):
        c, mine = b * T + first, lanes() < T - first
        d, t = choose(mine, load(decay, c), real(1.0)), along(tokens, c, u, two, D)
        r = products_behind(d) * behind
        behind = first_of(r * d)
        store(batch.scores, c, t)
        store(batch.reach, c, r)
        output = output + choose(mine, load(tokens.c_label, c) * load(intake, c) * r * t, real(0.0))
    return total(output)


@inlined
def add_gradient(slope, b, member, tokens, scratch, batch):
    """Add the gradient of prompt b, whose loss has this slope along the label channel; returns dF/da."""
    pattern, irrelevant, outlier, c_pattern, c_irrelevant, c_outlier, c_label, label = tokens
    real = c_label.dtype.type
    intake, decay, dw, dA, reach, scores = (scratch.intake, scratch.decay, scratch.dw, scratch.dA, batch.reach,
                                            batch.scores)
    D, T = dA.shape[0], c_label.shape[0] // label.shape[0]
    begin, q = b * T, b * T + T - 1
    z = scratch.z
    for n in range(D):
        z[n] = real(0.0)
    gated = member not in (LINEAR, RETNET)
    before, z_label, w_label, rate_slope = real(0.0), real(0.0), real(0.0), real(0.0)
    # One loop over the tokens: several short ones would wait for each other's stores.
    for t in range(T):
        c = np.uint64(begin + t)  # an index that may be negative would be checked
        i, j, k = np.uint64(pattern[c]), np.uint64(irrelevant[c]), np.uint64(outlier[c])
        weight = slope * c_label[c] * reach[c]
        share, term = weight * intake[c], weight * scores[c]
        z[i] += share * c_pattern[c]
        z[j] += share * c_irrelevant[c]
        z[k] += share * c_outlier[c]
        z_label += share * c_label[c]
        if gated:
            if member == MAMBA:
                e = intake[c] * (term * decay[c] - before)
            else:
                e = before * scratch.decay_slope[c] + term * scratch.intake_slope[c]
            if member >= MAMBA2:
                rate_slope += before * np.log(decay[c])
            before += term * intake[c]
            dw[i] += e * c_pattern[c]
            dw[j] += e * c_irrelevant[c]
            dw[k] += e * c_outlier[c]
            w_label += e * c_label[c]
    z[D - 1] += z_label
    dw[D - 1] += w_label
    for n in range(D):
        dA[pattern[q], n] += c_pattern[q] * z[n]
    for n in range(D):
        dA[irrelevant[q], n] += c_irrelevant[q] * z[n]
    return rate_slope


@reordered
def step(member, loss_kind, model, weights, dictionary, tokens, scratch, batch):
    """One step of SGD on a batch, in place; returns its mean loss."""
    read(member, model, weights, dictionary, tokens, scratch, batch)
    label, outputs, dA, dw = tokens.label, batch.outputs, scratch.dA, scratch.dw
    B, D, real = label.shape[0], dA.shape[0], label.dtype.type
    for j in range(D):
        dw[j] = real(0.0)
        for i in range(D):
            dA[j, i] = real(0.0)
    total, rate_slope = real(0.0), real(0.0)
    moved = False
    for b in range(B):
        loss, slope = loss_and_slope(loss_kind, real, outputs[b], label[b])
        total += loss
        if slope != real(0.0):
            moved = True
            rate_slope += add_gradient(slope * model.gain / real(B), b, member, tokens, scratch, batch)
    if moved:
        rate = -model.learning_rate
        transpose(scratch.dA_T, dA)
        move(weights.W_B, rate, scratch.W_C, dA, D, dictionary.rows, scratch.gradient)
        move(weights.W_C, rate, scratch.W_B, scratch.dA_T, D, dictionary.rows, scratch.gradient)
        _move_gate(weights.w, rate, dw, dictionary.rows)
        weights.a[0] += rate * rate_slope
    return total / real(B)


@reordered
def _move_gate(w, rate, dw, rows):
    """`w += rate dw`, the gradient being over the dictionary."""
    if rows.shape[0] == 0:
        for i in range(w.shape[0]):
            w[i] += rate * dw[i]
    for j in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            w[i] += rate * dw[j] * rows[j, i]


@kernel
def train(member, loss, models, weights, dictionary, draw, keys, tokens, draw_scratch, scratch, batch, losses):
    """Take a step per key with every run of a pack, all on the same batches; `losses` gets those of all steps."""
    high, low = keys
    for t in range(high.shape[0]):
        draw_tokens(draw, high[t], low[t], tokens, draw_scratch)
        for r in range(losses.shape[0]):
            model = GatedModel(models.learning_rate[r], models.gain[r], models.retention[r], models.temperature[r])
            mine = GatedWeights(weights.W_B[r], weights.W_C[r], weights.w[r], weights.a[r])
            losses[r, t] = step(member, loss, model, mine, dictionary, tokens, scratch, batch)
