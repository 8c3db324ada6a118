"""What the gated kernel reads, writes and works with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float


class GatedModel(NamedTuple):
    """What a step reads of a run besides its weights; for a pack, arrays of one number per run."""

    learning_rate: Any
    gain: Any
    """g: what the label channel is multiplied by to give the output."""
    retention: Any
    temperature: Any


class GatedWeights(NamedTuple):
    """Weights in the coordinates of the axes; rows of W_B and W_C that are 0 and stay so are left out. For a pack, with
    an axis of runs in front."""

    W_B: Float[np.ndarray, "*runs rows axes"]
    W_C: Float[np.ndarray, "*runs rows axes"]
    w: Float[np.ndarray, "*runs axes"]
    a: Float[np.ndarray, "*runs 1"]


class GatedBatch(NamedTuple):
    """What a batch of prompts looks like from inside: per token, and the output per prompt."""

    scores: Float[np.ndarray, " batch*tokens"]
    """t_i."""
    reach: Float[np.ndarray, " batch*tokens"]
    """r_i."""
    outputs: Float[np.ndarray, " batch"]


class GatedScratch(NamedTuple):
    """Memory that a step needs while it works. D: entries of the dictionary, padded."""

    W_B: Float[np.ndarray, "rows D"]
    """W_B, W_C and w over the dictionary, as they were before the step."""
    W_C: Float[np.ndarray, "rows D"]
    w: Float[np.ndarray, " D"]
    A: Float[np.ndarray, "D D"]
    """Row j: what a query with entry j looks for."""
    dA: Float[np.ndarray, "D D"]
    dA_T: Float[np.ndarray, "D D"]
    dw: Float[np.ndarray, " D"]
    z: Float[np.ndarray, " D"]
    """sum_i y_i r_i b_i p_i of one prompt, times the slope."""
    gradient: Float[np.ndarray, "rows D"]
    u: Float[np.ndarray, " D"]
    """U of one prompt."""
    decay: Float[np.ndarray, " batch*tokens"]
    intake: Float[np.ndarray, " batch*tokens"]
    decay_slope: Float[np.ndarray, " batch*tokens"]
    """dlog d/dz."""
    intake_slope: Float[np.ndarray, " batch*tokens"]
    """db/dz."""
