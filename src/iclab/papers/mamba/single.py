"""One prompt through a stack of gates, in NumPy: what a figure of a single prompt shows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from iclab.probes.watched import watched_prompts
from iclab.prompts.prompt import Family
from iclab.training import Trained


class OnePrompt(NamedTuple):
    """The gates of one prompt's context examples, nearest to the query first."""

    gates: Float[np.ndarray, "layers examples"]
    outlier: Bool[np.ndarray, " examples"]
    """Which of them are poisoned."""

    def rows(self, layer: int) -> tuple[Float[np.ndarray, "1 examples"], Float[np.ndarray, "1 examples"]]:
        """The gates of clean and of poisoned examples in a layer, each NaN where the other has its own."""
        gates = self.gates[layer][None]
        return np.where(self.outlier, np.nan, gates), np.where(self.outlier, gates, np.nan)


def one_prompt(trained: Trained, prompts: Family, watched: int) -> OnePrompt:
    """The first of the `watched` prompts, which is the same whatever the model."""
    batch = watched_prompts(prompts, watched)
    columns = np.concatenate([batch.x[0], np.asarray(batch.y[0])[:, None]], axis=1)
    return OnePrompt(stack_gates(trained, columns)[:, -2::-1], np.asarray(batch.truth.outlier)[0, -2::-1])


def stack_gates(trained: Trained, columns: Float[np.ndarray, "tokens width"]) -> Float[np.ndarray, "layers tokens"]:
    """`G_{i,l+1}` of every token and layer of a Mamba stack, on the label channel."""
    tokens, seen = len(columns), []
    scale = 1.0 / tokens if trained.run.model.normalise else 1.0
    for layer in trained.params:
        logits = columns @ np.asarray(layer.gate.w, float).T
        step = 1 / (1 + np.exp(-logits))
        kept = np.cumsum(-np.logaddexp(0, logits), axis=0)  # log prod_{k<=t} (1 - s_k)
        past = np.tril(np.ones((tokens, tokens), bool))[..., None]
        gates = step * np.exp(np.where(past, kept[:, None] - kept, -np.inf))  # G_{i,t} by t, i and channel
        scores = (columns @ np.asarray(layer.W_C, float).T) @ (columns @ np.asarray(layer.W_B, float).T).T
        seen.append(gates[-1, :, -1])
        columns = columns + scale * (gates * scores[..., None] * columns).sum(axis=1)
    return np.stack(seen)
