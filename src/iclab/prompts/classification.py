"""Classification prompts made of orthogonal patterns: the data model of the mamba, icl and selectors papers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from iclab.core.errors import require
from iclab.core.spec import encoded, number, require_count, require_range, rows, spec
from iclab.prompts.attacks import placement_code, rule_code
from iclab.prompts.patterns import Matrix, check_basis, check_rows, check_vectors, pattern_basis, unit_rows
from iclab.prompts.prompt import Family, Prompt, Truth
from iclab.prompts.randomness import (
    Bits,
    Key,
    TokenWords,
    as_key,
    choice,
    draw_bits,
    high_half,
    in_unit_ball,
    low_half,
    uniform16,
    uniform23,
)
from iclab.prompts.roles import carried_labels, check_context, draw_roles, stratified_cells
from iclab.prompts.tasks import Task, tasks_code


@spec(part="prompts")
class Classification(Family):
    """A distribution of prompts `x = lam mu_j + kappa nu_k + [outlier] kappa_a v_s + noise`, labels by the task.

    mu, nu: orthogonal patterns of norm `pattern_norm`; v: unit vectors orthogonal to both. Training and test prompts
    are two instances of this class. Reference: li2025mamba, eqs. 6, 7, definitions 1, 2; li2024icl, section 3.2;
    li2024selectors, section 2.

    Differs from the paper: each example is poisoned independently, so the number of poisoned examples varies.
    """

    dimension: int = 30
    """d: length of an input vector."""
    relevant_patterns: int = 6
    """M1: patterns that decide the label."""
    irrelevant_patterns: int = 10
    """M2: patterns that do not."""
    outlier_patterns: int = 3
    """V: outlier directions."""
    prompt_length: int = 20
    """l: context examples in a prompt, the query not counted."""
    pattern_norm: float = number(default=3.0)
    """beta: norm of every relevant and irrelevant pattern."""
    irrelevant_scale: float = number(default=0.5)
    """K: the irrelevant pattern's coefficient is uniform in (-K, K)."""
    decisive_fraction: float = number(default=1.0)
    """alpha of the icl paper: fraction of context examples that carry one of the task's two patterns."""
    outlier_fraction: float = number(default=0.0)
    """p_a (training) or alpha (test) of the mamba paper: probability that an example is poisoned."""
    outlier_scale: float = number(default=2.0)
    """kappa_a: what the outlier is multiplied by when it is added to a poisoned input."""
    coefficient_low: float = number(default=1.0)
    """Least coefficient lam of the relevant pattern (selectors); 1 elsewhere."""
    coefficient_high: float = number(default=1.0)
    """Largest coefficient lam of the relevant pattern."""
    noise_norm: float | None = number(default=None)
    """tau: noise uniform in a ball of this radius (selectors); none draws no noise."""
    label_rule: str | Callable[..., Any] = encoded(rule_code, default="random")
    """Label of a poisoned example: flip, target, random, or a function (clean, coin, x) -> labels."""
    placement: str = encoded(placement_code, default="random")
    """Where poisoned examples stand: random, far from the query, close to it."""
    tasks: str | tuple[Task, ...] = encoded(tasks_code, default="all")
    """all, cyclic:U, unseen:U (tasks outside cyclic:U), or pairs (a, b)."""
    outlier_mixtures: Matrix | None = rows(default=None)
    """Rows of coefficients over v_1..v_V: the outlier directions v' of test prompts, normalised to unit length."""
    outlier_vectors: Matrix | None = rows(default=None, later=True)
    """Outliers of your own instead of v_1..v_V: rows of `dimension` numbers, which keep their lengths."""
    pattern_mixtures: Matrix | None = rows(default=None)
    """Rows of coefficients over mu_1..mu_M1: out-of-domain patterns mu'; the task's patterns are then these rows."""
    rotation_seed: int | None = None
    """None: patterns along the axes; a number: a random rotation of them drawn with this seed."""
    basis: Matrix | None = rows(default=None, varies=False)
    """Orthonormal rows (dimension x dimension) to use as pattern directions instead."""

    def check(self) -> None:
        for field, least in (("dimension", 1), ("relevant_patterns", 2), ("irrelevant_patterns", 0),
                             ("outlier_patterns", 0), ("prompt_length", 1)):
            require_count(self, field, least)
        total = self.relevant_patterns + self.irrelevant_patterns + self.outlier_patterns
        require(total <= self.dimension, "dimension", self.dimension,
                f"be at least relevant_patterns + irrelevant_patterns + outlier_patterns = {total}")
        for field in ("irrelevant_scale", "outlier_scale"):
            require_range(self, field, 0, np.inf, open_high=True)
        for field in ("pattern_norm", "coefficient_low"):
            require_range(self, field, 0, np.inf, open_low=True, open_high=True)
        require_range(self, "coefficient_high", self.coefficient_low, np.inf, open_high=True)
        if self.noise_norm is not None:
            require_range(self, "noise_norm", 0, np.inf, open_high=True)
        check_rows(self.outlier_mixtures, "outlier_mixtures", self.outlier_patterns)
        check_rows(self.pattern_mixtures, "pattern_mixtures", self.relevant_patterns)
        check_vectors(self.outlier_vectors, "outlier_vectors", self.dimension)
        require(self.outlier_vectors is None or self.outlier_mixtures is None, "outlier_vectors",
                self.outlier_vectors, "be None when outlier_mixtures is given")
        check_basis(self.basis, self.rotation_seed, self.dimension)
        require(self.outlier_fraction == 0 or self.directions > 0, "outlier_fraction", self.outlier_fraction,
                "be 0 when outlier_patterns is 0 and there are no outlier_vectors")
        check_context(self, self.task_patterns)

    @property
    def task_patterns(self) -> int:
        """How many patterns the tasks use: M1, or M1' out of domain."""
        return self.relevant_patterns if self.pattern_mixtures is None else len(self.pattern_mixtures)

    def bits(self, key: Key | Array | int, batch: int) -> Bits:
        """The randomness of a batch, a few words per token."""
        return draw_bits(as_key(key), batch, self.prompt_length + 1)

    def prompts(self, bits: Bits) -> Prompt:
        """The batch that the bits determine, in which every query pattern occurs equally often (algorithm 1)."""
        cells = stratified_cells(self, bits)
        return jax.vmap(self._prompt)(cells, bits.tokens, bits.key)

    def _prompt(self, cell: Int[Array, " 3"], words: TokenWords, key: Key) -> Prompt:
        """One prompt from its cell and its random words."""
        beta, kappa_a, K = self.pattern_norm, self.outlier_scale, self.irrelevant_scale
        roles = draw_roles(self, self.task_patterns, cell, words)
        lam = self.coefficient_low + (self.coefficient_high - self.coefficient_low) * uniform16(high_half(words.fourth))
        kappa = (2.0 * uniform23(words.second) - 1.0) * K
        k = choice(low_half(words.third), max(self.irrelevant_patterns, 1))
        s = choice(high_half(words.third), max(self.directions, 1))

        # One-hot comparison: a gather would cost more than the model that reads the prompt.
        relevant = jnp.where(jnp.arange(self.task_patterns) == roles.pattern[:, None], (lam * beta)[:, None], 0.0)
        irrelevant = jnp.where(jnp.arange(self.irrelevant_patterns) == k[:, None], (kappa * beta)[:, None], 0.0)
        carrier = jnp.where(roles.outlier, s, -1)
        outlier = jnp.where(jnp.arange(self.directions) == carrier[:, None], kappa_a, 0.0)
        if self.pattern_mixtures is not None:
            relevant = relevant @ jnp.asarray(self.pattern_mixtures, float)
        if self.outlier_mixtures is not None:
            outlier = outlier @ unit_rows(self.outlier_mixtures)
        added, outlier = (None, outlier) if self.outlier_vectors is None else (outlier, outlier[:, :0])
        used = relevant.shape[1] + irrelevant.shape[1] + outlier.shape[1]
        rest = jnp.zeros((roles.pattern.shape[0], self.dimension - used))
        x = jnp.concatenate([relevant, irrelevant, outlier, rest], axis=1)
        basis = pattern_basis(self.dimension, self.rotation_seed, self.basis)
        if basis is not None:
            x = x @ jnp.asarray(basis, x.dtype)
        if added is not None:
            x = x + added @ jnp.asarray(self.outlier_vectors, x.dtype)
        if self.noise_norm is not None:
            x = x + self.noise_norm * in_unit_ball(key, *x.shape)
        y = carried_labels(roles, self.label_rule, x)
        return Prompt(x, y, roles.label, Truth(roles.pattern, roles.outlier, roles.clean, roles.task, k, s))

    @property
    def directions(self) -> int:
        """How many outliers a poisoned input may carry one of: V, or as many as there are rows of one's own."""
        own = self.outlier_mixtures if self.outlier_vectors is None else self.outlier_vectors
        return self.outlier_patterns if own is None else len(own)

    def patterns(self) -> Float[np.ndarray, "patterns dimension"]:
        """The relevant pattern vectors mu (or mu' out of domain), one per row."""
        basis = pattern_basis(self.dimension, self.rotation_seed, self.basis)
        rows = (np.eye(self.dimension) if basis is None else basis)[: self.relevant_patterns]
        mixed = rows if self.pattern_mixtures is None else np.asarray(self.pattern_mixtures, float) @ rows
        return float(self.pattern_norm) * mixed

    def outliers(self) -> Float[np.ndarray, "directions dimension"]:
        """The outlier directions v of training, unit vectors, one per row."""
        basis = pattern_basis(self.dimension, self.rotation_seed, self.basis)
        first = self.relevant_patterns + self.irrelevant_patterns
        return (np.eye(self.dimension) if basis is None else basis)[first:first + self.outlier_patterns]

    def carried(self) -> Float[np.ndarray, "directions dimension"]:
        """What a poisoned input carries one of, a vector per row: `outlier_scale` times v, v', or outliers of one's
        own."""
        if self.outlier_vectors is not None:
            return float(self.outlier_scale) * np.asarray(self.outlier_vectors, float)
        if self.outlier_mixtures is None:
            return float(self.outlier_scale) * self.outliers()
        rows = np.asarray(self.outlier_mixtures, float)
        return float(self.outlier_scale) * rows / np.linalg.norm(rows, axis=1, keepdims=True) @ self.outliers()
