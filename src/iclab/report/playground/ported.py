"""What the page's program reads of a model: the models that it has a port of, and their weights as text."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from iclab.models import ChainAttention, GatedAttention, SoftmaxMLP
from iclab.prompts import Chain, Regression
from iclab.training import Run

Arrays = dict[str, Float[np.ndarray, "*shape"]]


def _gated(run: Run, params: Any) -> list[Arrays]:
    """Products of keys and queries, except for gla, whose gate lies on the key axis, between the two factors."""
    model, used = run.model, used_coordinates(run)

    def layer(weights: Any) -> Arrays:
        w = np.asarray(weights.gate.w)[:, used]
        if len(w) > 1 and model.member != "gla":
            w = w[used]  # one row for every channel
        gate = {"w": w, "a": np.asarray(weights.gate.a)}
        if model.member == "gla":
            return {"W_B": np.asarray(weights.W_B)[:, used], "W_C": np.asarray(weights.W_C)[:, used], **gate}
        return {"A": _product(weights.W_C.T, weights.W_B)[np.ix_(used, used)], **gate}

    return [layer(weights) for weights in params]


def _softmax(run: Run, params: Any) -> list[Arrays]:
    used, neurons = used_coordinates(run), _product(params.W_O, params.W_V)
    return [{"A": _product(params.W_Q.T, params.W_K)[np.ix_(used, used)], "R": neurons[:, used].astype(np.float32),
             "norms": np.linalg.norm(neurons, axis=1)}]


def _chain(run: Run, params: Any) -> list[Arrays]:
    return [{"W": np.asarray(params.W)}]


PORTS: dict[type, tuple[str, Callable[[Run, Any], list[Arrays]]]] = {
    GatedAttention: ("gated", _gated), SoftmaxMLP: ("softmax", _softmax), ChainAttention: ("chain", _chain)}
"""The models that the page can run: how it calls them, and the arrays it needs of every layer.

Where a model uses only products of weights these are formed here; A, which gives scores and logits and multiplies
large numbers, stays in float64."""


def read_weights(run: Run, params: Any) -> list[Arrays]:
    """The arrays that the page needs, layer by layer, for the coordinates in use."""
    return PORTS[type(run.model)][1](run, params)


def described(run: Run, steps: list[int], weights: list[list[Arrays]]) -> dict[str, Any]:
    """A model as the page's program reads it, with its weights at each of these steps."""
    model = run.model
    kind, _ = PORTS[type(model)]
    values = {"kind": kind, "member": getattr(model, "member", kind), "steps": steps,
              "norm": float(getattr(model.embedding, "norm", 1.0)),
              "retention": float(getattr(model, "retention", 1.0)),
              "temperature": float(getattr(model, "temperature", 1.0)),
              "causal": getattr(model, "causal", True), "normalise": getattr(model, "normalise", False),
              "keyPositions": getattr(model, "key_positions", True)}
    return values | {"weights": [[{name: packed(array) for name, array in layer.items()} for layer in layers]
                                 for layers in weights]}


def used_coordinates(run: Run) -> Int[np.ndarray, " used"]:
    """The coordinates of a column that can be nonzero: those of the input, and the label's; all of a chain's."""
    if isinstance(run.prompts, Chain):
        return np.arange(run.model.embedding.width(run.prompts.dimension))
    return np.append(np.arange(used_inputs(run.prompts)), run.prompts.dimension)


def used_inputs(prompts: Any) -> int:
    """How many coordinates an input needs: those of patterns and outliers, or all where these lie across the axes
    or inputs are no patterns."""
    if isinstance(prompts, Regression) or has_basis(prompts) or prompts.noise_norm is not None:
        return prompts.dimension
    return prompts.relevant_patterns + prompts.irrelevant_patterns + prompts.outlier_patterns


def has_basis(prompts: Any) -> bool:
    """Whether patterns lie along other directions than the axes."""
    return prompts.basis is not None or prompts.rotation_seed is not None


def packed(array: Float[np.ndarray, "*shape"]) -> str:
    """An array as text, row by row: its precision in bytes, then base64 of little-endian numbers."""
    kind = "<f8" if array.dtype == np.float64 else "<f4"
    return f"{kind[-1]}{base64.b64encode(np.ascontiguousarray(array, kind).tobytes()).decode()}"


def _product(left: Any, right: Any) -> Float[np.ndarray, "rows width"]:
    return np.asarray(left, np.float64) @ np.asarray(right, np.float64)
