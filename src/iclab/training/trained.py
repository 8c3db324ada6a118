"""A finished run: weights, records, and the predictor that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from iclab.training.run import Run


@dataclass(frozen=True)
class Trained:
    """A finished run."""

    run: Run
    params: Any
    optimizer: Any
    steps: np.ndarray
    """Step number of each record."""
    loss: np.ndarray
    """Mean training loss over the steps of each record."""
    probes: dict[str, np.ndarray] | None = None
    """What the probe returned at each record, by name, stacked along the first axis."""

    @property
    def status(self) -> str:
        """`trained`, or `diverged at step N` when the loss or a weight stopped being a number."""
        bad = ~np.isfinite(self.loss)
        if bad.any():
            return f"diverged at step {int(self.steps[np.argmax(bad)])}"
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(self.params)):
            return f"diverged at step {int(self.steps[-1])}"
        return "trained"

    def predict(self, prompts: Any) -> np.ndarray:
        """Scores of a batch of prompts: a trained run is a predictor."""
        return np.asarray(_scores(self.run.model, self.params, prompts))

    def look(self, prompts: Any) -> tuple[np.ndarray, Any]:
        """Scores and the model's named intermediates for a batch of prompts."""
        return jax.tree.map(np.asarray, _outputs(self.run.model, self.params, prompts))

    __call__ = predict


@jax.jit
def _outputs(model: Any, params: Any, prompts: Any) -> Any:
    return jax.vmap(model, in_axes=(None, 0))(params, prompts)


@jax.jit
def _scores(model: Any, params: Any, prompts: Any) -> Any:
    return jax.vmap(model, in_axes=(None, 0))(params, prompts)[0]


def named(tree: Any) -> dict[str, Any]:
    """The leaves of a pytree by their paths; a bare array is called `value`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/") or "value": leaf for path, leaf in leaves}
