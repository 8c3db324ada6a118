"""Packs of one-layer gated models for the kernel: weights into the coordinates of the dictionary, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.kernels import gated
from iclab.kernels.fitting import LOSSES
from iclab.kernels.tokens import axes_of, dictionary_of, draw_of, empty_tokens
from iclab.models.gated_attention import LayerParams
from iclab.models.gates import MEMBERS

PADDING = 8
"""Rows of tables are as long as a multiple of this, as vector instructions like it."""


class GatedPack:
    """Runs of one structure; those that share their prompts draw them once."""

    def __init__(self, runs: Sequence[Any], params: Sequence[tuple[LayerParams]], shared: bool):
        first, real = runs[0], np.asarray(params[0][0].W_B).dtype.type
        self.runs, self.start, self.shared, self.real = runs, params, shared, real
        self.member, self.loss = MEMBERS.index(first.model.member), LOSSES.index(first.training.loss)
        prompts, width = first.prompts, first.model.embedding.width(first.prompts.dimension)
        self.axes = axes_of(prompts, width)
        rows = dictionary_of(prompts)
        entries = len(self.axes) if rows is None else len(rows)
        D = -(-entries // PADDING) * PADDING
        self.columns = D if rows is None else len(self.axes)
        """Coordinates of the weights: the axes, padded where they are the dictionary; the label comes last."""
        self.dictionaries = [self._padded(dictionary_of(run.prompts), D) for run in runs]
        self.gate_row = prompts.dimension if first.model.gate_per_channel else 0
        self.models = gated.GatedModel(*(np.array(numbers, real) for numbers in zip(*(
            (run.training.learning_rate, self._gain(run), run.model.retention, run.model.temperature)
            for run in runs), strict=True)))
        self.weights = self._weights()
        self.draws = [draw_of(run.prompts, run.model.embedding.norm, real) for run in (runs[:1] if shared else runs)]
        batch_size, tokens = first.training.batch_size, prompts.prompt_length + 1
        self.memory = (*empty_tokens(batch_size, tokens, real), *self._memory(batch_size, tokens, D))

    def advance(self, keys: tuple[np.ndarray, np.ndarray]) -> Float[np.ndarray, "runs steps"]:
        """One step per key and run; keys of shape (steps,) if prompts are shared, else (runs, steps)."""
        losses = np.empty((len(self.runs), keys[0].shape[-1]), self.real)
        if self.shared:
            self._train(slice(None), self.draws[0], keys, losses)
        else:
            for r, draw in enumerate(self.draws):
                self._train(slice(r, r + 1), draw, (keys[0][r], keys[1][r]), losses[r:r + 1])
        return losses

    def _train(self, chosen: slice, draw: Any, keys: Any, losses: np.ndarray) -> None:
        models = gated.GatedModel(*(numbers[chosen] for numbers in self.models))
        weights = gated.GatedWeights(*(part[chosen] for part in self.weights))
        gated.train(self.member, self.loss, models, weights, self.dictionaries[chosen.start or 0], draw, keys,
                    *self.memory, losses)

    def errors(self, keys: tuple[np.ndarray, np.ndarray]) -> Float[np.ndarray, "runs 2"]:
        """Wrong answers and hinge losses of every run, summed over the batches of all keys; prompts are shared."""
        totals = np.zeros((len(self.runs), 2))
        gated.judge(self.member, self.models, self.weights, self.dictionaries[0], self.draws[0], keys, *self.memory,
                    totals)
        return totals

    def params(self) -> list[tuple[LayerParams]]:
        """The weights in the model's own coordinates."""
        return [(self._layer(r),) for r in range(len(self.runs))]

    def _layer(self, r: int) -> LayerParams:
        start: Any = self.start[r][0]
        W_B, W_C = (self._restored(np.asarray(old), part[r], self.rows[r])
                    for old, part in ((start.W_B, self.weights.W_B), (start.W_C, self.weights.W_C)))
        w, a = np.array(start.gate.w), np.array(start.gate.a)
        if len(w):
            w[self.gate_row] = self._restored(w[self.gate_row][None], self.weights.w[r][None], slice(None))[0]
        if len(a):
            a[:] = self.weights.a[r]
        return start._replace(W_B=W_B, W_C=W_C, gate=start.gate._replace(w=w, a=a))

    def _restored(self, start: np.ndarray, trained: np.ndarray, rows: Any) -> np.ndarray:
        """The starting weights with their part along the axes replaced by the trained one."""
        weights = np.asarray(start, float)
        part = weights @ self.axes.T
        change = -part
        change[rows] += self._from_columns(trained[:len(part[rows])].astype(float))
        return (weights + change @ self.axes).astype(start.dtype)

    def _weights(self) -> gated.GatedWeights:
        layers = [layer for (layer,) in self.start]
        parts = [[np.asarray(W, float) @ self.axes.T for W in (layer.W_B, layer.W_C)] for layer in layers]
        self.rows = [np.flatnonzero((np.abs(W_B) + np.abs(W_C)).any(axis=1)) for W_B, W_C in parts]
        count = max(len(rows) for rows in self.rows)
        W_B, W_C = (np.zeros((len(layers), count, self.columns), self.real) for _ in range(2))
        w, a = np.zeros((len(layers), self.columns), self.real), np.zeros((len(layers), 1), self.real)
        for r, (layer, rows) in enumerate(zip(layers, self.rows, strict=True)):
            W_B[r, :len(rows)], W_C[r, :len(rows)] = (self._to_columns(part[rows]) for part in parts[r])
            if len(layer.gate.w):
                w[r] = self._to_columns((np.asarray(layer.gate.w, float) @ self.axes.T)[self.gate_row][None])[0]
            if len(layer.gate.a):
                a[r] = layer.gate.a
        return gated.GatedWeights(W_B, W_C, w, a)

    def _to_columns(self, part: np.ndarray) -> np.ndarray:
        """Zeros between the patterns and the label."""
        pad = np.zeros((len(part), self.columns - part.shape[1]))
        return np.concatenate([part[:, :-1], pad, part[:, -1:]], axis=1)

    def _from_columns(self, columns: np.ndarray) -> np.ndarray:
        return np.concatenate([columns[:, :len(self.axes) - 1], columns[:, -1:]], axis=1)

    def _padded(self, rows: np.ndarray | None, D: int) -> np.ndarray:
        if rows is None:
            return np.zeros((0, 0), self.real)
        pad = np.zeros((D - len(rows), rows.shape[1]))
        return np.concatenate([rows[:-1], pad, rows[-1:]]).astype(self.real)

    @staticmethod
    def _gain(run: Any) -> float:
        tokens = run.prompts.prompt_length + 1
        return run.model.embedding.norm / (tokens if run.model.normalise else 1)

    def _memory(self, batch: int, tokens: int, D: int) -> tuple[gated.GatedScratch, gated.GatedBatch]:
        def zeros(*shape: int) -> np.ndarray:
            return np.zeros(shape, self.real)

        n, rows = batch * tokens, self.weights.W_B.shape[1]
        scratch = gated.GatedScratch(zeros(rows, D), zeros(rows, D), zeros(D), zeros(D, D), zeros(D, D), zeros(D),
                                     zeros(3, D), zeros(batch * D), zeros(n), zeros(n), zeros(n), zeros(n))
        return scratch, gated.GatedBatch(zeros(n), zeros(n), zeros(batch))
