"""How much each example's label moves the output of a model, whatever the model: |dF / dy_i|.

In the papers' one-layer models this is the weight G_{i,l+1} p_i^T W_B^T W_C p_query of the example; a model that has no
such weight, because of norms, convolutions or layers, still has this slope.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.core.errors import require
from iclab.models.forward import IN_CACHE, forward
from iclab.probes.error_rate import averages
from iclab.prompts.prompt import Family, Prompt
from iclab.training.trained import Trained


class LabelWeights(NamedTuple):
    """Mean |dF / dy_i| of the context examples with the query's pattern, by distance from it, nearest first; NaN where
    there was no such example."""

    clean: Float[np.ndarray, "*models examples"]
    poisoned: Float[np.ndarray, "*models examples"]

    @property
    def share(self) -> Float[np.ndarray, "*models"]:
        """What a poisoned example weighs, divided by what a clean one does; means over all distances. NaN without
        poisoned examples."""
        poisoned, clean = (np.where(np.isfinite(kind), kind, 0.0).sum(axis=-1)
                           / np.maximum(np.isfinite(kind).sum(axis=-1), 1) for kind in (self.poisoned, self.clean))
        return np.where(np.isfinite(self.poisoned).any(axis=-1), poisoned, np.nan) / clean


def label_weights(trained: Trained, prompts: Family, *, count: int = 1000, seed: int = 0) -> LabelWeights:
    """The weights of clean and of poisoned examples in the answers of a trained model."""
    require(prompts.labels.name in ("sign", "number"), "prompts", type(prompts).__name__,
            "have labels that are signs or numbers")
    return weights_of(averages(slope_sums, [trained], [prompts], count, [seed])[0, 0])


def weights_of(sums: Float[np.ndarray, "*models 4 examples"]) -> LabelWeights:
    """Label weights from the means of `slope_sums`."""
    clean, number_clean, poisoned, number_poisoned = np.moveaxis(sums, -2, 0)

    def mean(total: np.ndarray, number: np.ndarray) -> np.ndarray:
        return np.where(number > 0, total / np.maximum(number, 1e-12), np.nan)

    return LabelWeights(mean(clean, number_clean), mean(poisoned, number_poisoned))


def slopes(model: Any, params: Any, batch: Prompt
           ) -> tuple[Float[Array, " batch"], Float[Array, "batch tokens"], Any]:
    """Outputs, dF / dy_i of every token, and what the model shows of a batch."""
    def of(prompt: Prompt) -> tuple[Array, Array, Any]:
        def output(y: Array) -> tuple[Array, Any]:
            return forward(model, params, prompt._replace(y=y))

        (F, seen), slope = jax.value_and_grad(output, has_aux=True)(prompt.y)
        return F, slope, seen

    return jax.lax.map(of, batch._replace(label=None, truth=None), batch_size=IN_CACHE)


def summed_slopes(slope: Float[Array, "batch tokens"], batch: Prompt) -> Float[Array, "4 examples"]:
    """For clean and for poisoned examples with the query's pattern, nearest first: |dF / dy_i| summed, and their
    number, per prompt."""
    pattern, outlier = batch.truth.pattern, batch.truth.outlier[:, -2::-1]
    same = pattern[:, -2::-1] == pattern[:, -1:]
    size = jnp.abs(slope[:, -2::-1])
    return jnp.stack([(values * (same & kind)).mean(axis=0) for kind in (~outlier, outlier)
                      for values in (size, jnp.ones_like(size))])


def slope_sums(model: Any, params: Any, batch: Prompt) -> Float[Array, "4 examples"]:
    """`summed_slopes` of a model, as a judge."""
    return summed_slopes(slopes(model, params, batch)[1], batch)
