"""A finished run: weights, records, and the predictor that they make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from iclab.core.errors import not_a, require
from iclab.core.html import chart, table
from iclab.core.spec import lower
from iclab.models import forward
from iclab.prompts.prompt import Family, Prompt, require_family
from iclab.training.losses import loss_function
from iclab.training.run import Run
from iclab.training.sgd import begin

FLAT = 1e-7
"""Relative difference up to which two losses are the same: what float32 can tell apart."""


@dataclass(frozen=True, repr=False)
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

    @cached_property
    def status(self) -> str:
        """`trained`; `diverged ...` when the loss or a weight stopped being a number; `stuck ...` when nothing was
        learned. The latter two say where, and what to try."""
        bad = ~np.isfinite(self.loss)
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(self.params)):
            bad[-1] = True
        if bad.any():
            step = int(self.steps[np.argmax(bad)])
            return f"diverged at step {step}; try a smaller learning_rate or a clip_norm{self._or_scale}"
        return self._stuck() or "trained"

    @property
    def state(self) -> str:
        """The status in one word: trained, stuck or diverged."""
        return self.status.partition(" ")[0]

    def _stuck(self) -> str:
        """Why training learned nothing; empty if it did learn.

        Every batch is drawn afresh, so a loss that stays the same to its last digit comes from outputs that do not
        depend on the prompts. A loss of 0 is fully trained; the loss of a single step is inconclusive.
        """
        first, last = self.loss[0], self.loss[-1]
        if last <= FLAT or self.steps[-1] < 2:
            return ""
        flat = np.abs(self.loss - last) <= FLAT * last
        outputs_are_zero = abs(last - self._loss_of_zero()) <= FLAT and flat[-2:].all()
        if flat.all() and (len(flat) > 1 or outputs_are_zero):
            return f"stuck at a loss of {last:.3g}; try a larger learning_rate or init_scale{self._or_scale}"
        if outputs_are_zero:
            step = int(self.steps[len(flat) - np.argmin(flat[::-1])])
            return (f"stuck since step {step}, with outputs that are all 0; try a smaller learning_rate or a clip_norm"
                    f"{self._or_scale}")
        # A run that lowered its loss has moved its weights: no need to draw its starting weights again.
        if last > first / 2 and self._at_starting_weights():
            return f"stuck at its starting weights; try a larger learning_rate{self._or_scale}"
        return ""

    @property
    def _or_scale(self) -> str:
        """What else to try with data of one's own, whose inputs may have any size."""
        scale = ", or scale the inputs (standardize=True of from_csv and from_labelled)"
        return scale if self.run.prompts.any_size else ""

    def _loss_of_zero(self) -> float:
        """Loss of an output of 0 where it is the same for all labels, because they are all of length 1; else NaN."""
        unit = {"sign": 1.0, "step": np.eye(1, self.run.prompts.dimension)[0]}.get(self.run.prompts.labels.name)
        return float("nan") if unit is None else float(loss_function(self.run.training.loss)(0.0 * unit, unit))

    def _at_starting_weights(self) -> bool:
        """Whether no weight moved by more than the last digit of the largest."""
        now, then = (np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])
                     for params in (self.params, begin(self.run).params))
        return bool(np.abs(now - then).max() <= FLAT * np.abs(then).max())

    def __repr__(self) -> str:
        model, prompts = (type(part).__name__ for part in (self.run.model, self.run.prompts))
        return (f"Trained({model} on {prompts}, seeds {self.run.init_seed} and {self.run.data_seed}, "
                f"{self.steps[-1]} steps, loss {self.loss[-1]:.4g}: {self.status})")

    def _repr_html_(self) -> str:
        """In a notebook: what was trained, how it ended, and the loss along the way."""
        model, prompts = (type(part).__name__ for part in (self.run.model, self.run.prompts))
        words = table(("model", "prompts", "seeds (start, data)", "steps", "last loss", "status"), [
            (model, prompts, f"{self.run.init_seed}, {self.run.data_seed}", int(self.steps[-1]), f"{self.loss[-1]:.4g}",
             self.status)])
        return words + chart(self.steps.tolist(), self.loss.tolist(), "training loss by step")

    def require_readable(self, prompts: Family) -> None:
        """Refuse prompts whose labels or columns are not such as the model was trained on."""
        require_family(prompts)
        kind = self.run.prompts.labels.name
        require(prompts.labels.name == kind, f"labels of {type(prompts).__name__}", prompts.labels.name,
                f"be of the kind that the model was trained on, {kind!r}")
        self._require_dimension(prompts.dimension)

    def _require_dimension(self, dimension: int) -> None:
        trained, width = self.run.prompts.dimension, self.run.model.embedding.width
        require(dimension == trained or width(dimension) == width(trained), "dimension of the prompts", dimension,
                f"be that of the model's training, {trained}")

    def _require_batch(self, prompts: Any) -> None:
        if not isinstance(prompts, Prompt):
            raise not_a("prompts", prompts, "a batch of prompts, such as Classification().sample(0, 100)")
        self._require_dimension(np.shape(prompts.x)[-1])

    def predict(self, prompts: Any) -> np.ndarray:
        """Scores of a batch of prompts: a trained run is a predictor."""
        self._require_batch(prompts)
        return np.asarray(_scores(lower(self.run.model), self.params, prompts))

    def look(self, prompts: Any) -> tuple[np.ndarray, Any]:
        """Scores and the model's named intermediates for a batch of prompts."""
        self._require_batch(prompts)
        return jax.tree.map(np.asarray, _outputs(lower(self.run.model), self.params, prompts))

    __call__ = predict


@jax.jit
def _outputs(model: Any, params: Any, prompts: Any) -> Any:
    return jax.vmap(lambda prompt: forward(model, params, prompt))(prompts)


@jax.jit
def _scores(model: Any, params: Any, prompts: Any) -> Any:
    return _outputs(model, params, prompts)[0]


def named(tree: Any) -> dict[str, Any]:
    """The leaves of a pytree by their paths; a bare array is called `value`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/") or "value": leaf for path, leaf in leaves}
