"""What the gated family shows of the prompts that it reads (`iclab.kernels.gated`): outputs, scores t_i, gates r_i b_i.

What stands before an example changes neither its score nor how much of it reaches the query. So the output with only
the last n examples is a sum from the query backwards, and one reading has it for every n:

    F_n = g sum_{i > T - 1 - n} y_i t_i r_i b_i
"""

from __future__ import annotations

from iclab.kernels.compiling import kernel, reordered
from iclab.kernels.gated import read
from iclab.kernels.gated_arrays import GatedModel, GatedWeights
from iclab.kernels.tokens import draw_tokens
from iclab.kernels.traces import keep_truth


@reordered
def add_up(gain, tokens, scratch, batch, lengths, outputs):
    """F_n of every prompt, for rising n."""
    B, T = outputs.shape[1], tokens.c_label.shape[0] // outputs.shape[1]
    for b in range(B):
        output, t = outputs.dtype.type(0.0), T - 1
        for k in range(lengths.shape[0]):
            while t >= T - 1 - lengths[k]:
                c = b * T + t
                output += batch.reach[c] * tokens.c_label[c] * scratch.intake[c] * batch.scores[c]
                t -= 1
            outputs[k, b] = output * gain


@kernel
def follow_gated(member, models, weights, dictionary, marks, outlier_scale, keys, tokens, draw_scratch, scratch,
                 batch, trace):
    """Let every run read the batch of each key, drawn by `marks` with outliers of coefficient 1, and fill `trace`."""
    high, low = keys
    for t in range(high.shape[0]):
        draw_tokens(marks, high[t], low[t], tokens, draw_scratch)
        keep_truth(tokens, outlier_scale, trace.label[t], trace.pattern[t], trace.outlier[t])
        for r in range(trace.outputs.shape[1]):
            model = GatedModel(models.learning_rate[r], models.gain[r], models.retention[r], models.temperature[r])
            mine = GatedWeights(weights.W_B[r], weights.W_C[r], weights.w[r], weights.a[r])
            read(member, model, mine, dictionary, tokens, scratch, batch)
            outputs, scores, gates = trace.outputs[t, r], trace.scores[t, r], trace.gates[t, r]
            if trace.lengths.shape[0] > 0:
                add_up(model.gain, tokens, scratch, batch, trace.lengths, outputs)
            else:
                for b in range(outputs.shape[1]):
                    outputs[0, b] = batch.outputs[b]
            for c in range(scores.shape[0]):
                scores[c] = batch.scores[c]
                gates[c] = batch.reach[c] * scratch.intake[c]
