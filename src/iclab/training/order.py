"""Order parameters: the few numbers of a one-layer gated model that matter on prompts made of patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.errors import require
from iclab.prompts import Chain, Classification
from iclab.prompts.patterns import pattern_basis
from iclab.training.chain_order import ChainWeights, chain_order, chain_weights
from iclab.training.sgd import Probe


class PatternWeights(NamedTuple):
    """The weights along the unit directions of the patterns: relevant, irrelevant, outliers, then the label.

    Written with methods that NumPy and JAX share, order parameters can be read during training as well.
    """

    W_B: Float[Any, "patterns patterns"]
    W_C: Float[Any, "patterns patterns"]
    w: Float[Any, " patterns"]
    """Gate weights; zeros where the member has none."""
    relevant: int
    """M1: how many patterns of each kind there are."""
    irrelevant: int
    outliers: int

    @property
    def scores(self) -> Float[Any, "patterns patterns"]:
        """`W_B^T W_C`."""
        return self.W_B.T @ self.W_C

    def between(self, matrix: Float[Any, "patterns patterns"], shift: int) -> Any:
        """The mean entry of a matrix between a relevant pattern and the `shift`-th next one; 0 is the diagonal."""
        at = np.arange(self.relevant)
        return matrix[at, (at + shift) % self.relevant].mean()

    def mean_gate(self, kind: str) -> Any:
        """The mean of w over patterns of a kind (relevant, irrelevant, outlier), or w on the label entry."""
        ends = np.cumsum([0, self.relevant, self.irrelevant, self.outliers, 1])
        kinds = ("relevant", "irrelevant", "outlier", "label")
        require(kind in kinds, "kind", kind, f"be one of {', '.join(kinds)}")
        first, last = ends[kinds.index(kind)], ends[kinds.index(kind) + 1]
        return self.w[first:last].mean() if last > first else 0.0 * self.w.sum()


Order = Callable[[Any], Mapping[str, Any]]
"""From `PatternWeights`, or `ChainWeights` of chains, to order parameters by name."""


def order_parameters(weights: PatternWeights | ChainWeights) -> dict[str, Any]:
    """The entries of W_B^T W_C on relevant patterns by shift (0 is the diagonal), and w by kind of pattern; of chains,
    what a score gains from the query's pattern and from its step."""
    if isinstance(weights, ChainWeights):
        return dict(chain_order(weights))
    scores = weights.scores
    return {**{f"score, shift {k}": weights.between(scores, k) for k in range(weights.relevant // 2 + 1)},
            **{f"w, {kind}": weights.mean_gate(kind) for kind in ("relevant", "irrelevant", "outlier", "label")}}


def unit_directions(prompts: Classification, width: int) -> Float[np.ndarray, "patterns width"]:
    """The unit directions of relevant patterns, irrelevant ones, outliers, and the label, in a column's coordinates."""
    used = prompts.relevant_patterns + prompts.irrelevant_patterns + prompts.outlier_patterns
    basis = pattern_basis(prompts.dimension, prompts.rotation_seed, prompts.basis)
    rows = np.zeros((used + 1, width))
    rows[:used, :prompts.dimension] = (np.eye(prompts.dimension) if basis is None else basis)[:used]
    rows[used, prompts.dimension] = 1.0
    return rows


def pattern_weights(params: Any, prompts: Classification) -> PatternWeights:
    """The weights of a one-layer gated model along the patterns of its prompts."""
    require(len(params) == 1 and hasattr(params[0], "W_B"), "params", type(params).__name__,
            "be those of a GatedAttention with one layer")
    layer = params[0]
    axes = unit_directions(prompts, layer.W_B.shape[1])
    gate = layer.gate.w[-1] if len(layer.gate.w) else np.zeros(axes.shape[1])
    return PatternWeights(axes @ layer.W_B @ axes.T, axes @ layer.W_C @ axes.T, axes @ gate, prompts.relevant_patterns,
                          prompts.irrelevant_patterns, prompts.outlier_patterns)


@lru_cache(maxsize=64)
def order_probe(prompts: Classification | Chain, order: Order = order_parameters) -> Probe:
    """A probe that reads order parameters along training; one object for equal arguments, so that it is compiled once.
    """
    def read_order(setup: Any, params: Any) -> Any:
        weights = chain_weights(params, prompts) if isinstance(prompts, Chain) else pattern_weights(params, prompts)
        return dict(order(weights))

    return read_order
