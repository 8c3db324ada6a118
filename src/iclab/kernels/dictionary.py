"""Packs of models whose tokens are sparse in a dictionary: coordinates, weights in them and back, and what to draw.

The axes are orthonormal rows that span all tokens; rows of the dictionary are the axes themselves, or mixtures of them
where prompts mix patterns or outliers. Outliers of one's own may point anywhere: all axes of the inputs are then among
the axes here. Weights are trained in the coordinates of the axes, where rotations and unused
dimensions do not appear: only the part of a weight along the axes meets a token and changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from iclab.kernels.fitting import LOSSES
from iclab.kernels.products import padded
from iclab.kernels.tokens import draw_of, empty_tokens
from iclab.kernels.traces import PackTrace, empty_trace
from iclab.prompts.patterns import pattern_basis


class Dictionary(NamedTuple):
    """The dictionary over the axes and its transpose; without rows where it is the axes themselves."""

    rows: Float[np.ndarray, "D axes"]
    transposed: Float[np.ndarray, "axes D"]


def axes_of(prompts: Any, width: int) -> Float[np.ndarray, "axes width"]:
    """Orthonormal rows that span all tokens: the directions of the patterns, and the label's coordinate."""
    used = prompts.relevant_patterns + prompts.irrelevant_patterns + prompts.outlier_patterns
    if prompts.outlier_vectors is not None:
        used = prompts.dimension
    axes = np.zeros((used + 1, width))
    axes[:used, :prompts.dimension] = _directions(prompts)[:used]
    axes[used, prompts.dimension] = 1.0
    return axes


def _directions(prompts: Any) -> Float[np.ndarray, "dimension dimension"]:
    """Orthonormal rows that span all inputs, patterns first."""
    basis = pattern_basis(prompts.dimension, prompts.rotation_seed, prompts.basis)
    return np.eye(prompts.dimension) if basis is None else basis


def dictionary_of(prompts: Any) -> Float[np.ndarray, "entries axes"] | None:
    """Rows of the dictionary over the axes; None where the dictionary is the axes themselves."""
    if prompts.pattern_mixtures is None and prompts.outlier_mixtures is None and prompts.outlier_vectors is None:
        return None
    m1, m2, v = prompts.relevant_patterns, prompts.irrelevant_patterns, prompts.outlier_patterns
    relevant = np.eye(m1) if prompts.pattern_mixtures is None else np.asarray(prompts.pattern_mixtures, float)
    outlier, first = np.eye(v), m1 + m2
    if prompts.outlier_mixtures is not None:
        outlier = np.asarray(prompts.outlier_mixtures, float)
        outlier = outlier / np.linalg.norm(outlier, axis=1, keepdims=True)
    elif prompts.outlier_vectors is not None:
        outlier, first = np.asarray(prompts.outlier_vectors, float) @ _directions(prompts).T, 0
    rows = np.zeros((len(relevant) + m2 + len(outlier) + 1, first + outlier.shape[1] + 1))
    rows[:len(relevant), :m1] = relevant
    rows[len(relevant):len(relevant) + m2, m1:m1 + m2] = np.eye(m2)
    rows[len(relevant) + m2:-1, first:-1] = outlier
    rows[-1, -1] = 1.0
    return rows


class DictionaryPack(ABC):
    """Runs of one structure on classification prompts; those that share their prompts draw them once."""

    def __init__(self, runs: Sequence[Any], params: Sequence[Any], shared: bool, real: Any):
        first = runs[0]
        self.runs, self.start, self.shared, self.real = runs, params, shared, real
        self.loss, prompts = LOSSES.index(first.training.loss), first.prompts
        self.axes = axes_of(prompts, first.model.embedding.width(prompts.dimension))
        self.columns = padded(len(self.axes))
        """Coordinates of the weights: the axes, with zeros before the last, which is the label's."""
        self.dictionaries = [self._dictionary(dictionary_of(run.prompts)) for run in runs]
        self.entries = self.dictionaries[0].rows.shape[0] or self.columns
        """Rows of the dictionary, with zeros before the last, which is the label's."""
        self.draws = [draw_of(run.prompts, run.model.embedding.norm, real) for run in (runs[:1] if shared else runs)]
        self.batch, self.tokens = first.training.batch_size, prompts.prompt_length + 1
        self.drawn = empty_tokens(self.batch, self.tokens, real)

    def advance(self, keys: tuple[np.ndarray, np.ndarray]) -> Float[np.ndarray, "runs steps"]:
        """One step per key and run; keys of shape (steps,) if prompts are shared, else (runs, steps)."""
        losses = np.empty((len(self.runs), keys[0].shape[-1]), self.real)
        if self.shared:
            self.train(slice(None), self.dictionaries[0], self.draws[0], tuple(keys), losses)
        else:
            for r, draw in enumerate(self.draws):
                self.train(slice(r, r + 1), self.dictionaries[r], draw, (keys[0][r], keys[1][r]), losses[r:r + 1])
        return losses

    def trace(self, keys: tuple[np.ndarray, np.ndarray], lengths: Sequence[int] = (), inside: bool = False
              ) -> PackTrace:
        """What every run makes of the batches of all keys, which are shared: outputs and, if asked for, what led to
        them; or outputs with only the last n examples, for every n in `lengths`."""
        rising = sorted(set(lengths))
        trace = empty_trace(len(self.runs), len(keys[0]), self.batch, self.tokens, self.real, rising, inside)
        draw = self.draws[0]
        # Outliers may have size 0 and be poisoned all the same: they are drawn as marks, and get their size later.
        self.follow(draw._replace(kappa_a=self.real(1.0)), draw.kappa_a, tuple(keys), trace)
        return trace._replace(outputs=trace.outputs[:, :, [rising.index(n) for n in lengths]]) if lengths else trace

    @abstractmethod
    def train(self, chosen: slice, dictionary: Dictionary, draw: Any, keys: Any, losses: np.ndarray) -> None:
        """Take a step per key with the chosen runs, on the same batches."""

    @abstractmethod
    def follow(self, marks: Any, outlier_scale: Any, keys: Any, trace: PackTrace) -> None:
        """Fill a trace with what every run makes of the batches of all keys, drawn with outliers of size 1 at first."""

    @abstractmethod
    def params(self) -> list[Any]:
        """The weights in the model's own coordinates."""

    def zeros(self, *shape: int) -> np.ndarray:
        """Memory in the precision of the kernel."""
        return np.zeros(shape, self.real)

    def along_axes(self, weights: Any) -> Float[np.ndarray, "rows columns"]:
        """The part of some weights along the axes."""
        return _before_last(np.asarray(weights, float) @ self.axes.T, self.columns)

    def restored(self, start: Any, trained: np.ndarray, rows: Int[np.ndarray, " rows"]) -> Any:
        """The starting weights with their part along the axes replaced by the trained one, which has these rows."""
        weights = np.asarray(start, float)
        change = -weights @ self.axes.T
        columns = trained[:len(rows)].astype(float)
        change[rows] += np.concatenate([columns[:, :len(self.axes) - 1], columns[:, -1:]], axis=1)
        return (weights + change @ self.axes).astype(self.real)

    def _dictionary(self, rows: np.ndarray | None) -> Dictionary:
        if rows is None:
            return Dictionary(self.zeros(0, 0), self.zeros(0, 0))
        columns = _before_last(rows, self.columns)
        filled = _before_last(columns.T, padded(len(rows))).astype(self.real)
        return Dictionary(np.ascontiguousarray(filled.T), filled)


def moving_rows(first: np.ndarray, second: np.ndarray) -> Int[np.ndarray, " rows"]:
    """Rows in which one of two matrices is not 0. Each is changed by a product with the other, so that where both are
    0 they stay so."""
    return np.flatnonzero((np.abs(first) + np.abs(second)).any(axis=1))


def _before_last(matrix: np.ndarray, columns: int) -> np.ndarray:
    """The matrix with zeros before its last column, so that it has this number of them."""
    pad = np.zeros((len(matrix), columns - matrix.shape[1]))
    return np.concatenate([matrix[:, :-1], pad, matrix[:, -1:]], axis=1)
