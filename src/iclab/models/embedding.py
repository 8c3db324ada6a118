"""How a prompt becomes columns: inputs above, labels below."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.specs import number, require_count, require_range, spec

ALIGNMENT = 8


def aligned(weights: Float[Array, "rows width"], width: int, rows: bool = False) -> Float[Array, "padded width"]:
    """Weights for columns of this width: without the coordinates that are 0 in every column and left out of them, with
    zeros for the filled-up ones, and for those of their rows where these are coordinates too."""
    extra = width - weights.shape[1]
    if extra <= 0:
        return weights[:, :width]
    return jnp.pad(weights, ((0, extra if rows else 0), (0, extra)))


@spec
class LabelEmbedding:
    """Columns `p_i = (x_i, y_i q)`, the query's `(x_query, 0)`; q points along the first of `size` label coordinates.

    `size` 1, `norm` 1 is the scalar label of the mamba paper; the icl and selectors papers use a vector q.
    """

    size: int = 1
    """d_Y: label coordinates."""
    norm: float = number(default=1.0)
    """|q|: length of the vector that stands for the label +1."""

    def check(self) -> None:
        require_count(self, "size", 1)
        require_range(self, "norm", 0, float("inf"), open_low=True, open_high=True)

    def columns(self, x: Float[Array, "tokens dimension"], y: Float[Array, " tokens"]
                ) -> Float[Array, "tokens width"]:
        """The prompt as the model reads it, one row a column of the paper's matrix P.

        Label coordinates after the first are 0 in every column, and left out. Zeros fill the width up to a multiple of
        8: products with rows of 31 numbers take half as long again as with 32.
        """
        rest = jnp.zeros((x.shape[0], -(x.shape[1] + 1) % ALIGNMENT), x.dtype)
        return jnp.concatenate([x, (y * self.norm)[:, None], rest], axis=1)
