"""Packs of one-layer gated models for the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from iclab.kernels import gated
from iclab.kernels.dictionary import Dictionary, DictionaryPack, moving_rows
from iclab.kernels.gated_arrays import GatedBatch, GatedModel, GatedScratch, GatedWeights
from iclab.kernels.gated_follow import follow_gated
from iclab.kernels.products import ROWS, padded
from iclab.kernels.traces import PackTrace
from iclab.kernels.vectors import roomy
from iclab.models.gated_attention import LayerParams
from iclab.models.gates import MEMBERS


class GatedPack(DictionaryPack):
    """Runs of one member."""

    def __init__(self, runs: Sequence[Any], params: Sequence[tuple[LayerParams]], shared: bool):
        super().__init__(runs, params, shared, np.asarray(params[0][0].W_B).dtype.type)
        first = runs[0]
        self.member = MEMBERS.index(first.model.member)
        self.gate_row = np.array([first.prompts.dimension if first.model.gate_per_channel else 0])
        """The row of the gate's weights that reaches the label."""
        self.models = GatedModel(*(np.array(numbers, self.real) for numbers in zip(*(
            (run.training.learning_rate, run.model.embedding.norm / (self.tokens if run.model.normalise else 1),
             run.model.retention, run.model.temperature) for run in runs), strict=True)))
        self.weights = self._weights()
        self.memory = (*self.drawn, *self._memory())

    def train(self, chosen: slice, dictionary: Dictionary, draw: Any, keys: Any, losses: np.ndarray) -> None:
        """Take a step per key with the chosen runs, on the same batches."""
        models = GatedModel(*(numbers[chosen] for numbers in self.models))
        weights = GatedWeights(*(part[chosen] for part in self.weights))
        gated.train(self.member, self.loss, models, weights, dictionary, draw, keys, *self.memory, losses)

    def follow(self, marks: Any, outlier_scale: Any, keys: Any, trace: PackTrace) -> None:
        """Fill a trace with what every run makes of the batches of all keys."""
        follow_gated(self.member, self.models, self.weights, self.dictionaries[0], marks, outlier_scale, keys,
                     *self.memory, trace)
        if self.runs[0].model.normalise and len(trace.lengths) > 0:
            trace.outputs[:] *= (self.tokens / (trace.lengths + 1.0))[:, None]

    def params(self) -> list[tuple[LayerParams]]:
        """The weights in the model's own coordinates."""
        return [(self._layer(r),) for r in range(len(self.runs))]

    def _layer(self, r: int) -> LayerParams:
        start: Any = self.start[r][0]
        W_B, W_C = (self.restored(old, part[r], self.rows[r])
                    for old, part in ((start.W_B, self.weights.W_B), (start.W_C, self.weights.W_C)))
        w, a = np.array(start.gate.w), np.array(start.gate.a)
        if len(w):
            w[self.gate_row] = self.restored(w[self.gate_row], self.weights.w[r][None], np.arange(1))
        if len(a):
            a[:] = self.weights.a[r]
        return start._replace(W_B=W_B, W_C=W_C, gate=start.gate._replace(w=w, a=a))

    def _weights(self) -> GatedWeights:
        layers = [layer for (layer,) in self.start]
        parts = [[self.along_axes(W) for W in (layer.W_B, layer.W_C)] for layer in layers]
        self.rows = [moving_rows(*part) for part in parts]
        count = padded(max(1, *(len(rows) for rows in self.rows)), ROWS)
        W_B, W_C = (self.zeros(len(layers), count, self.columns) for _ in range(2))
        w, a = self.zeros(len(layers), self.columns), self.zeros(len(layers), 1)
        for r, (layer, rows) in enumerate(zip(layers, self.rows, strict=True)):
            W_B[r, :len(rows)], W_C[r, :len(rows)] = (part[rows] for part in parts[r])
            if len(layer.gate.w):
                w[r] = self.along_axes(np.asarray(layer.gate.w)[self.gate_row])[0]
            if len(layer.gate.a):
                a[r] = layer.gate.a
        return GatedWeights(W_B, W_C, w, a)

    def _memory(self) -> tuple[GatedScratch, GatedBatch]:
        zeros, D, batch, n, rows = (self.zeros, self.entries, self.batch, self.batch * self.tokens,
                                    self.weights.W_B.shape[1])
        decay, intake, decay_slope, intake_slope, scores, reach = (roomy(n, self.real) for _ in range(6))
        scratch = GatedScratch(zeros(rows, D), zeros(rows, D), roomy(D, self.real),
                               roomy(D * D, self.real).reshape(D, D), zeros(D, D), zeros(D, D), zeros(D), zeros(D),
                               zeros(rows, D), roomy(D, self.real), decay, intake, decay_slope, intake_slope)
        return scratch, GatedBatch(scores, reach, zeros(batch))
