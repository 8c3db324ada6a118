"""Packs of the cot paper's models for the kernel: the columns of W that queries read, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from iclab.kernels import chains_fused
from iclab.kernels.chain_draw import chain_draw_of, empty_chains
from iclab.models.chain_attention import ChainParams

PADDING = 8
"""Inputs, outputs and codes each take a multiple of this many places of a row."""


class ChainPack:
    """Runs of one structure; those that share their prompts draw them once."""

    def __init__(self, runs: Sequence[Any], params: Sequence[ChainParams], shared: bool):
        first, real = runs[0], np.asarray(params[0].W).dtype.type
        self.runs, self.start, self.shared, self.real = runs, params, shared, real
        prompts = first.prompts
        d, M, K = prompts.dimension, prompts.patterns, prompts.reasoning_steps
        self.queried = np.concatenate([np.arange(M), 2 * d + np.arange(K)])
        """Coordinates in which a query's column is not 0: those of W's second axis."""
        self.attended = np.concatenate([np.arange(M), d + np.arange(M), 2 * d + np.arange(K)])
        """Coordinates in which some column is not 0: those of W's first axis."""
        self.places, D = _padded_places(M, K)
        self.W = np.zeros((len(runs), M + K, D), real)
        for mine, start in zip(self.W, params, strict=True):
            mine[:, self.places] = np.asarray(start.W)[np.ix_(self.attended, self.queried)].T
        self.models = chains_fused.ChainModel(*(np.array(numbers, real) for numbers in zip(*(
            (run.training.learning_rate, run.model.embedding.norm,
             run.model.embedding.norm if run.model.key_positions else 0.0) for run in runs), strict=True)))
        self.draws = [chain_draw_of(run.prompts, run.training.batch_size, real)
                      for run in (runs[:1] if shared else runs)]
        chains, words = empty_chains(self.draws[0])
        self.memory = chains, words, self._scratch(*chains.weight.shape)

    def advance(self, keys: tuple[np.ndarray, np.ndarray]) -> Float[np.ndarray, "runs steps"]:
        """One step per key and run; keys of shape (steps,) if prompts are shared, else (runs, steps)."""
        losses = np.empty((len(self.runs), keys[0].shape[-1]), self.real)
        if self.shared:
            chains_fused.train(self.models, self.W, self.draws[0], tuple(keys), *self.memory, losses)
            return losses
        for r, draw in enumerate(self.draws):
            model = chains_fused.ChainModel(*(numbers[r:r + 1] for numbers in self.models))
            chains_fused.train(model, self.W[r:r + 1], draw, (keys[0][r], keys[1][r]), *self.memory, losses[r:r + 1])
        return losses

    def params(self) -> list[ChainParams]:
        """The weights in the model's own coordinates."""
        trained = []
        for mine, start in zip(self.W, self.start, strict=True):
            W: Any = np.array(start.W)
            W[np.ix_(self.attended, self.queried)] = mine[:, self.places].T
            trained.append(ChainParams(W))
        return trained

    def _scratch(self, columns: int, lanes: int) -> chains_fused.ChainScratch:
        def zeros(*shape: int) -> np.ndarray:
            return np.zeros(shape, self.real)

        (K, M), (_, rows, D) = self.draws[0].route[1:].shape, self.W.shape
        return chains_fused.ChainScratch(zeros(lanes, D), zeros(M, lanes), zeros(M, lanes), zeros(K, lanes),
                                         zeros(columns, lanes), zeros(lanes), zeros(lanes), zeros(lanes, _padded(M)),
                                         zeros(rows, D))


def _padded(count: int) -> int:
    return -(-count // PADDING) * PADDING


def _padded_places(M: int, K: int) -> tuple[Int[np.ndarray, " coordinates"], int]:
    """Where inputs, outputs and codes stand in a row, and the row's length."""
    inputs = _padded(M)
    places = np.concatenate([np.arange(M), inputs + np.arange(M), 2 * inputs + np.arange(K)])
    return places, 2 * inputs + _padded(K)
