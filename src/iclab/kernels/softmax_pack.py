"""Packs of one-layer softmax Transformers with an MLP for the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from iclab.kernels import softmax
from iclab.kernels.dictionary import Dictionary, DictionaryPack, moving_rows
from iclab.kernels.products import ROWS, padded
from iclab.kernels.softmax_arrays import SoftmaxBatch, SoftmaxModel, SoftmaxScratch, SoftmaxTables, SoftmaxWeights
from iclab.kernels.softmax_follow import follow_softmax
from iclab.kernels.traces import PackTrace
from iclab.models.softmax_mlp import SoftmaxParams


class SoftmaxPack(DictionaryPack):
    """Runs of one size."""

    def __init__(self, runs: Sequence[Any], params: Sequence[SoftmaxParams], shared: bool):
        super().__init__(runs, params, shared, np.asarray(params[0].W_Q).dtype.type)
        self.neurons = runs[0].model.neurons
        self.model = SoftmaxModel(np.array([run.training.learning_rate for run in runs], self.real),
                                  self._second_layer())
        self.weights = self._weights()
        self.memory = (*self.drawn, *self._memory())

    def train(self, chosen: slice, dictionary: Dictionary, draw: Any, keys: Any, losses: np.ndarray) -> None:
        """Take a step per key with the chosen runs, on the same batches."""
        model = self.model._replace(learning_rate=self.model.learning_rate[chosen])
        weights = SoftmaxWeights(*(part[chosen] for part in self.weights))
        softmax.train(self.loss, model, weights, dictionary, draw, keys, *self.memory, losses)

    def follow(self, marks: Any, outlier_scale: Any, keys: Any, trace: PackTrace) -> None:
        """Fill a trace with what every run makes of the batches of all keys."""
        follow_softmax(self.model, self.weights, self.dictionaries[0], marks, outlier_scale, keys, *self.memory, trace)

    def params(self) -> list[SoftmaxParams]:
        """The weights in the model's own coordinates."""
        return [self._params(r) for r in range(len(self.runs))]

    def _params(self, r: int) -> SoftmaxParams:
        start, trained = self.start[r], SoftmaxWeights(*(part[r] for part in self.weights))
        W_Q, W_K = (self.restored(old, part, self.rows[r])
                    for old, part in ((start.W_Q, trained.W_Q), (start.W_K, trained.W_K)))
        W_V = self.restored(start.W_V, trained.W_V, np.arange(len(start.W_V)))
        W_O: Any = np.array(trained.W_O[:len(start.W_V), :self.neurons].T, order="C")
        return SoftmaxParams(W_Q, W_K, W_V, W_O)

    def _weights(self) -> SoftmaxWeights:
        """W_O is transposed: a row per row of W_V. All rows of W_V move, since W_O has no zeros."""
        parts = [[self.along_axes(W) for W in start[:3]] for start in self.start]
        self.rows = [moving_rows(W_Q, W_K) for W_Q, W_K, _ in parts]
        m_a, m_b = max(1, *(len(rows) for rows in self.rows)), len(self.start[0].W_V)
        W_Q, W_K, W_V = (self.zeros(len(parts), padded(rows, ROWS), self.columns) for rows in (m_a, m_a, m_b))
        W_O = self.zeros(len(parts), padded(m_b, ROWS), padded(self.neurons))
        for r, (part, rows) in enumerate(zip(parts, self.rows, strict=True)):
            for packed, old in ((W_Q, part[0][rows]), (W_K, part[1][rows]), (W_V, part[2])):
                packed[r, :len(old)] = old
            W_O[r, :m_b, :self.neurons] = np.asarray(self.start[r].W_O).T
        return SoftmaxWeights(W_Q, W_K, W_V, W_O)

    def _second_layer(self) -> np.ndarray:
        a = self.zeros(padded(self.neurons))
        a[:self.neurons] = np.where(np.arange(self.neurons) < self.neurons // 2, 1.0, -1.0) / self.neurons
        return a

    def _memory(self) -> tuple[SoftmaxTables, SoftmaxScratch, SoftmaxBatch]:
        zeros, D, (_, m_a, _), (_, m_b, m) = (self.zeros, self.entries, self.weights.W_Q.shape,
                                              self.weights.W_O.shape)
        R, B = len(self.runs) if self.shared else 1, padded(self.batch, ROWS)
        tables = SoftmaxTables(zeros(R, m_a, D), zeros(R, m_a, D), zeros(R, m_b, D), zeros(R, D, D), zeros(R, D, m))
        scratch = SoftmaxScratch(np.zeros(B, np.int32), zeros(B), zeros(B, D), zeros(B, D), zeros(B, m), zeros(D, D),
                                 zeros(D, D), zeros(m, D), zeros(D, m), zeros(m, D), zeros(max(m_a, m_b), D))
        attention = zeros(self.batch * self.tokens)
        return tables, scratch, SoftmaxBatch(attention, zeros(B), zeros(B, D), zeros(B, m), zeros(B))
