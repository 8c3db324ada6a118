"""What the kernel of softmax attention reads and writes. D: entries of the dictionary, padded, as all lengths are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int


class SoftmaxModel(NamedTuple):
    """What a step reads of a run besides its weights."""

    learning_rate: Any
    """For a pack, one number per run."""
    a: Float[np.ndarray, " m"]
    """The second layer, the same for all runs of a pack."""


class SoftmaxWeights(NamedTuple):
    """Weights in the coordinates of the axes; rows of W_Q and W_K that are 0 and stay so are left out. For a pack, with
    an axis of runs in front."""

    W_Q: Float[np.ndarray, "*runs m_a axes"]
    W_K: Float[np.ndarray, "*runs m_a axes"]
    W_V: Float[np.ndarray, "*runs m_b axes"]
    W_O: Float[np.ndarray, "*runs m_b m"]
    """Transposed: one column per neuron."""


class SoftmaxTables(NamedTuple):
    """What a step reads of its weights, over the dictionary; for a pack, with an axis of runs in front."""

    W_Q: Float[np.ndarray, "*runs m_a D"]
    W_K: Float[np.ndarray, "*runs m_a D"]
    W_V: Float[np.ndarray, "*runs m_b D"]
    A: Float[np.ndarray, "*runs D D"]
    """Row j: what a query with entry j looks for."""
    R: Float[np.ndarray, "*runs D m"]
    """Transposed: row j is what the neurons read of entry j."""


class SoftmaxBatch(NamedTuple):
    """What a batch of prompts looks like from inside."""

    attention: Float[np.ndarray, " batch*tokens"]
    """att_i, to be divided by `total`; the query's means nothing."""
    total: Float[np.ndarray, " batch"]
    mass: Float[np.ndarray, "batch D"]
    """c; after a step, those of the prompts that had a slope."""
    hidden: Float[np.ndarray, "batch m"]
    outputs: Float[np.ndarray, " batch"]


class SoftmaxScratch(NamedTuple):
    """Memory that a step needs while it works."""

    active: Int[np.ndarray, " batch"]
    """Numbers of the prompts that have a slope."""
    slope: Float[np.ndarray, " batch"]
    """Their slopes."""
    U: Float[np.ndarray, "batch D"]
    """U, and on the way back dU of the active prompts."""
    dc: Float[np.ndarray, "batch D"]
    dh: Float[np.ndarray, "batch m"]
    dA: Float[np.ndarray, "D D"]
    dA_T: Float[np.ndarray, "D D"]
    R_T: Float[np.ndarray, "m D"]
    dR: Float[np.ndarray, "D m"]
    """Transposed as R is."""
    dR_T: Float[np.ndarray, "m D"]
    gradient: Float[np.ndarray, "rows D"]
    """Of a matrix over the dictionary, where that is not the axes."""
