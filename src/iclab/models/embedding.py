"""How a prompt becomes columns: inputs above, labels below."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.specs import number, require_count, require_range, spec

ALIGNMENT = 8


def aligned(weights: Float[Array, "rows width"], width: int, rows: bool = False) -> Float[Array, "padded width"]:
    """Weights with zeros for the filled-up coordinates of the columns, and of their rows where these are such too."""
    extra = width - weights.shape[1]
    return jnp.pad(weights, ((0, extra if rows else 0), (0, extra))) if extra else weights


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

        Zeros fill the width up to a multiple of 8: products with rows of 31 numbers take half as long again as with 32.
        """
        width = x.shape[1] + self.size
        rest = jnp.zeros((x.shape[0], self.size - 1 + -width % ALIGNMENT), x.dtype)
        return jnp.concatenate([x, (y * self.norm)[:, None], rest], axis=1)
