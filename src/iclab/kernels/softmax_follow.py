"""What softmax attention and its MLP show of the prompts that they read (`iclab.kernels.softmax`): outputs, attention.

Attention is relative and the neurons are not linear, so prompts with only their last n examples are read for every n,
from the longest to the shortest.
"""

from __future__ import annotations

from iclab.kernels.compiling import kernel
from iclab.kernels.softmax import make_tables, read, tables_of, weights_of
from iclab.kernels.tokens import draw_tokens
from iclab.kernels.traces import keep_truth, last_examples


@kernel
def follow_softmax(model, weights, dictionary, marks, outlier_scale, keys, tokens, draw_scratch, tables, scratch, batch,
                   trace):
    """Let every run read the batch of each key, drawn by `marks` with outliers of coefficient 1, and fill `trace`."""
    (high, low), runs = keys, trace.outputs.shape[1]
    for r in range(runs):
        make_tables(weights_of(weights, r), dictionary, tables_of(tables, r))
    for t in range(high.shape[0]):
        draw_tokens(marks, high[t], low[t], tokens, draw_scratch)
        keep_truth(tokens, outlier_scale, trace.label[t], trace.pattern[t], trace.outlier[t])
        T = tokens.c_label.shape[0] // tokens.label.shape[0]
        for k in range(trace.outputs.shape[2] - 1, -1, -1):
            last = trace.lengths[k] + 1 if trace.lengths.shape[0] > 0 else T
            part = last_examples(tokens, T, last)
            T = last
            for r in range(runs):
                read(marks.p_a > 0, model.a, tables_of(tables, r), part, scratch, batch)
                outputs, scores = trace.outputs[t, r, k], trace.scores[t, r]
                for b in range(outputs.shape[0]):
                    outputs[b] = batch.outputs[b]
                for c in range(scores.shape[0]):
                    # The query stands outside the sum.
                    scores[c] = batch.attention[c] / batch.total[c // T] if (c + 1) % T > 0 else scores.dtype.type(0.0)
