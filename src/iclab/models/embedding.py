"""How a prompt becomes columns: inputs above, labels below."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.specs import number, require_count, require_range, spec


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
        """The prompt as the model reads it, one row a column of the paper's matrix P."""
        rest = jnp.zeros((x.shape[0], self.size - 1), x.dtype)
        return jnp.concatenate([x, (y * self.norm)[:, None], rest], axis=1)

    def label_index(self, width: int) -> int:
        """The coordinate that carries the label."""
        return width - self.size
