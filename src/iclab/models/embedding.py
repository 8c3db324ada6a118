"""How a prompt becomes columns: inputs above, labels or the outputs of steps below; or tokens alone."""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from iclab.core.spec import number, require_count, require_range, spec
from iclab.prompts.prompt import Prompt


@spec(part="embedding")
class LabelEmbedding:
    """Columns `p_i = (x_i, y_i q)`, the query's `(x_query, 0)`; q points along the first of `size` label coordinates.

    `size` 1, `norm` 1 is the scalar label of the mamba paper; the icl and selectors papers use a vector q.
    """

    reads: ClassVar[tuple[str, ...]] = ("sign", "number")
    """Kinds of labels that can enter its columns."""
    size: int = 1
    """d_Y: label coordinates."""
    norm: float = number(default=1.0)
    """|q|: length of the vector that stands for the label +1."""

    def check(self) -> None:
        require_count(self, "size", 1)
        require_range(self, "norm", 0, float("inf"), open_low=True, open_high=True)

    def width(self, dimension: int) -> int:
        """Coordinates of a column of the paper's matrix P."""
        return dimension + self.size

    def outputs(self, dimension: int) -> int:
        """How many numbers a read-out gives."""
        return 1

    def answer(self, width: int) -> int:
        """Where the output is read in columns of this width: at the first label coordinate."""
        return width - self.size

    def known(self, dimension: int) -> Bool[Array, " width"]:
        """The coordinates in which the query's column carries information: its input."""
        return jnp.arange(self.width(dimension)) < dimension

    def readout(self, output: Float[Array, ""]) -> Float[Array, ""]:
        """`q^T o`, from the first label coordinate."""
        return output * self.norm

    def columns(self, prompt: Prompt) -> Float[Array, "tokens width"]:
        """The prompt as the model reads it, one row per column of the paper's matrix P."""
        labels = jnp.where(jnp.arange(self.size) == 0, (prompt.y * self.norm)[:, None], 0.0)
        return jnp.concatenate([prompt.x, labels], axis=1)


@spec(part="embedding")
class VectorEmbedding:
    """Columns `p_i = (x_i, |q| y_i)`, the query's `(x_query, 0)`, for labels that are vectors, or classes as one-hot
    rows. The output is a vector: the answer itself, or one score per class."""

    reads: ClassVar[tuple[str, ...]] = ("vector", "class")
    size: int = 2
    """Coordinates of a label: its length, or the number of classes."""
    norm: float = number(default=1.0)
    """|q|: what labels are multiplied by."""

    def check(self) -> None:
        require_count(self, "size", 1)
        require_range(self, "norm", 0, float("inf"), open_low=True, open_high=True)

    def width(self, dimension: int) -> int:
        """Coordinates of a column."""
        return dimension + self.size

    def answer(self, width: int) -> slice:
        """Where the output is read in columns of this width: at the label's coordinates."""
        return slice(width - self.size, width)

    def known(self, dimension: int) -> Bool[Array, " width"]:
        """The coordinates in which the query's column carries information: its input."""
        return jnp.arange(self.width(dimension)) < dimension

    def readout(self, output: Float[Array, " size"]) -> Float[Array, " size"]:
        """The output in the labels' own scale."""
        return output / self.norm

    def columns(self, prompt: Prompt) -> Float[Array, "tokens width"]:
        """The prompt as the model reads it."""
        return jnp.concatenate([prompt.x, prompt.y * self.norm], axis=1)


@spec(part="embedding")
class TokenEmbedding:
    """Columns are the tokens, as one-hot rows: a linear read-in is a table of token vectors. The output is a row of
    scores at every token, one for each token that may be asked for."""

    reads: ClassVar[tuple[str, ...]] = ("tokens",)

    def width(self, dimension: int) -> int:
        """Coordinates of a column."""
        return dimension

    def outputs(self, dimension: int) -> int:
        """How many numbers a read-out gives at a token."""
        return dimension

    def columns(self, prompt: Prompt) -> Float[Array, "tokens width"]:
        """The prompt as the model reads it."""
        return prompt.x


@spec(part="embedding")
class ChainEmbedding:
    """Columns `(x; y; c_k)`: the input of a step, its output, and a position code that says which step it is.

    The code has one coordinate per step: c_k is orthogonal to all patterns and is never part of an output
    (li2024cot, section 2.1 and W_V). A column without a step is all zeros.
    """

    reads: ClassVar[tuple[str, ...]] = ("step",)
    steps: int = 3
    """K: steps of a chain."""
    norm: float = number(default=1.0)
    """|c_k|: length of the position code."""

    def check(self) -> None:
        require_count(self, "steps", 1)
        require_range(self, "norm", 0, float("inf"), open_low=True, open_high=True)

    def width(self, dimension: int) -> int:
        """Coordinates of a column of the paper's matrix P, with its code."""
        return 2 * dimension + self.steps

    def answer(self, width: int) -> slice:
        """Where the output is read in columns of this width: in their lower half."""
        dimension = (width - self.steps) // 2
        return slice(dimension, 2 * dimension)

    def code(self, width: int) -> slice:
        """Where the position code stands in columns of this width."""
        return slice(width - self.steps, width)

    def known(self, dimension: int) -> Bool[Array, " width"]:
        """The coordinates in which the query's column carries information: its input and its step."""
        place = jnp.arange(self.width(dimension))
        return (place < dimension) | (place >= 2 * dimension)

    def readout(self, output: Float[Array, " dimension"]) -> Float[Array, " dimension"]:
        """The output as it stands."""
        return output

    def columns(self, prompt: Prompt) -> Float[Array, "columns width"]:
        """The prompt as the model reads it, one row per column of the paper's matrix P."""
        code = jnp.where(prompt.step[:, None] == jnp.arange(self.steps), self.norm, 0.0)
        return jnp.concatenate([prompt.x, prompt.y, code.astype(prompt.x.dtype)], axis=1)
