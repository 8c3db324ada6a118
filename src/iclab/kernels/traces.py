"""What probes read of the prompts that kernels draw: outputs, also with fewer examples, and what led to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from iclab.kernels.compiling import compiled
from iclab.kernels.tokens import Tokens


class PackTrace(NamedTuple):
    """A pack of runs on the batches of some keys. What nobody asked for has no prompts in it."""

    lengths: Int[np.ndarray, " lengths"]
    """Rising numbers of examples; none for outputs with all of them."""
    label: Float[np.ndarray, "keys batch"]
    outputs: Float[np.ndarray, "keys runs lengths batch"]
    pattern: Int[np.ndarray, "keys prompts*tokens"]
    outlier: Bool[np.ndarray, "keys prompts*tokens"]
    """Which tokens are poisoned."""
    scores: Float[np.ndarray, "keys runs prompts*tokens"]
    """Scores before the gate, or attention."""
    gates: Float[np.ndarray, "keys runs prompts*tokens"]
    """0 where a model has none."""


def empty_trace(runs: int, keys: int, batch: int, tokens: int, real: Any, lengths: Sequence[int], inside: bool
                ) -> PackTrace:
    """Memory for a trace."""
    n = batch * tokens if inside else 0
    return PackTrace(np.array(lengths, np.int64), np.zeros((keys, batch), real),
                     np.zeros((keys, runs, max(1, len(lengths)), batch), real), np.zeros((keys, n), np.int32),
                     np.zeros((keys, n), np.bool_), *(np.zeros((keys, runs, n), real) for _ in range(2)))


@compiled
def keep_truth(tokens, outlier_scale, label, pattern, outlier):
    """Keep what is true of a batch whose outliers have coefficient 1, and give them their scale: it may be 0."""
    for b in range(label.shape[0]):
        label[b] = tokens.label[b]
    for c in range(pattern.shape[0]):
        pattern[c], outlier[c] = tokens.pattern[c], tokens.c_outlier[c] > 0
    for c in range(tokens.c_outlier.shape[0]):
        tokens.c_outlier[c] *= outlier_scale


@compiled
def last_examples(tokens, T, last):
    """Prompts with only the last tokens of each, in the same memory; T is the number of tokens before.

    No token is moved backwards, so none is overwritten before it is read."""
    pattern, irrelevant, outlier, c_pattern, c_irrelevant, c_outlier, c_label, label = tokens
    n = label.shape[0] * last
    if last < T:
        for b in range(label.shape[0]):
            for c in range(b * last, b * last + last):
                i = (b + 1) * (T - last) + c
                pattern[c], irrelevant[c], outlier[c] = pattern[i], irrelevant[i], outlier[i]
                c_pattern[c], c_irrelevant[c] = c_pattern[i], c_irrelevant[i]
                c_outlier[c], c_label[c] = c_outlier[i], c_label[i]
    return Tokens(pattern[:n], irrelevant[:n], outlier[:n], c_pattern[:n], c_irrelevant[:n], c_outlier[:n],
                  c_label[:n], label)
