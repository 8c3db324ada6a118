"""The dictionary: orthonormal pattern directions, and rows that mix them."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.core.errors import require

Matrix = tuple[tuple[float, ...], ...]


@cache
def pattern_basis(dimension: int, rotation_seed: int | None, basis: Matrix | None
                  ) -> Float[np.ndarray, "dimension dimension"] | None:
    """Orthonormal rows: relevant patterns first, then irrelevant, then outliers; None stands for the axes."""
    if basis is not None:
        return np.asarray(basis, float)
    if rotation_seed is None:
        return None
    normal = np.random.default_rng(rotation_seed).standard_normal((dimension, dimension))
    q, r = np.linalg.qr(normal)
    return q * np.sign(np.diag(r))


def unit_rows(rows: Any) -> Float[Array, "rows columns"]:
    """Rows scaled to unit length."""
    matrix = jnp.asarray(rows, float)
    return matrix / jnp.linalg.norm(matrix, axis=1, keepdims=True)


def check_rows(rows: Matrix | None, field: str, columns: int) -> None:
    """Each row must have one coefficient per pattern to mix, not all zero."""
    if rows is None:
        return
    require(len(rows) > 0 and all(len(row) == columns for row in rows), field, rows,
            f"be rows of {columns} coefficients")
    require(bool(np.isfinite(np.asarray(rows, float)).all()), field, rows, "be finite")
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(np.asarray(rows, float), axis=1)
    require(bool((lengths > 0).all()), field, rows, "have no row of zeros")
    require(bool(np.isfinite(lengths).all()), field, rows, "have rows of a finite length")
    if field == "pattern_mixtures":
        require(len(rows) >= 2, field, rows, "have at least two rows")


def check_vectors(vectors: Matrix | None, field: str, dimension: int) -> None:
    """Each row must be a vector of the inputs' length."""
    if vectors is None:
        return
    lengths = sorted({len(row) for row in vectors})
    require(lengths == [dimension], field, f"{len(vectors)} rows of {lengths} numbers",
            f"be rows of dimension = {dimension} numbers")
    require(bool(np.isfinite(np.asarray(vectors, float)).all()), field, "NaN or infinity", "be finite")


def check_basis(basis: Matrix | None, rotation_seed: int | None, dimension: int) -> None:
    """A user's own basis must be square and orthonormal, and excludes a random rotation."""
    if rotation_seed is not None:
        require(isinstance(rotation_seed, int) and 0 <= rotation_seed < 2**32, "rotation_seed", rotation_seed,
                "be a whole number in [0, 2^32)")
    if basis is None:
        return
    require(rotation_seed is None, "rotation_seed", rotation_seed, "be None when basis is given")
    lengths = sorted({len(row) for row in basis})
    require(len(basis) == dimension and lengths == [dimension], "basis", f"{len(basis)} rows of {lengths} numbers",
            f"have shape ({dimension}, {dimension})")
    require(orthonormal_rows(basis), "basis", "rows that are not", "have orthonormal rows")


def orthonormal_rows(rows: Any) -> bool:
    """Whether rows have length 1 and are orthogonal to each other."""
    matrix = np.asarray(rows, float)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.allclose(matrix @ matrix.T, np.eye(len(matrix)), atol=1e-6))
