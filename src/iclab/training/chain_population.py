"""The population dynamics of chains: steps of a `ChainAttention` under the expected gradient, and what is seen in one.

Exchanging patterns does not change the prompts' law, so the expected gradient leaves weights alone that have only the
numbers of `ChainWeights`; the other coordinates of W are 0 from the mean start on. A query's columns sum up to 0 in
dL/du over inputs, outputs and codes each, so nothing moves along the terms that attention does not see.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from iclab.kernels.fitting import kernel_pack
from iclab.training.chain_order import ChainWeights, chain_weights, reduced
from iclab.training.run import Run
from iclab.training.sgd import begin, step_keys


class ChainAttended(NamedTuple):
    """The attention of the prompts' queries in a step."""

    own: Float[np.ndarray, " prompts"]
    """On columns of the query's step and pattern: p_n of li2024cot, definition F.4."""
    step: Float[np.ndarray, " prompts"]
    """On all columns of its step."""
    chain: Float[np.ndarray, " prompts"]
    """On columns of other steps in chains that begin where the query's does."""


class FollowedChains:
    """A `ChainAttention` trained by steps on large batches, its weights averaged after each."""

    def __init__(self, run: Run, own_start: bool):
        self.run, self.own_start, self.batch = run, own_start, run.training.batch_size
        self.pack = kernel_pack(run.model)([run], [jax.tree.map(np.asarray, begin(run).params)], True)
        if not own_start:
            self.pack.W[:] = 0.0

    def advance(self, seed: int, step: int) -> tuple[float, float]:
        """Take the step of this number: the loss and the error of its batch."""
        loss = self.pack.advance(step_keys(np.array(seed), step, 1))[0, 0]
        if not self.own_start:
            self.place(reduced(self._entries(self.pack.W[0]), self.run.prompts.patterns))
        return float(loss), self._error()

    def weights(self) -> ChainWeights:
        """The weights along patterns and codes."""
        return chain_weights(self.pack.params()[0], self.run.prompts)

    def place(self, weights: ChainWeights) -> None:
        """Go on from these weights."""
        self.pack.W[0][:, self.pack.places] = weights.matrix(self.run.prompts.patterns).T

    def gradient(self) -> ChainWeights:
        """That of the last step."""
        scratch = self.pack.memory[2]
        return reduced(self._entries(scratch.gradient) / self.batch, self.run.prompts.patterns)

    def attended(self) -> ChainAttended:
        """Where the queries of the last step looked. Without wrong steps, the query's chain begins at the first place
        of the task's order, and only chains that begin there have its pattern at its step."""
        chains, _, scratch = self.pack.memory
        K, M = self.run.prompts.reasoning_steps, self.run.prompts.patterns
        attention = (scratch.attention * scratch.total).reshape(K, M, -1)[..., :self.batch]
        asked, each = chains.asked[:self.batch], np.arange(self.batch)
        own = attention[asked, 0, each]
        return ChainAttended(own, attention.sum(axis=1)[asked, each], attention[:, 0].sum(axis=0) - own)

    def _entries(self, rows: Float[np.ndarray, "queried places"]) -> Float[np.ndarray, "attended queried"]:
        return rows[:, self.pack.places].T

    def _error(self) -> float:
        """The share of answers that are wrong; the kernel leaves F - z, up to a constant, for every prompt."""
        chains, _, scratch = self.pack.memory
        label, M = chains.label[:self.batch], self.run.prompts.patterns
        output = scratch.F[:self.batch, :M] + (label[:, None] == np.arange(M))
        return float((output.argmax(axis=1) != label).mean())
