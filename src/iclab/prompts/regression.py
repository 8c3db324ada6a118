"""Regression prompts: `y = w.x + noise`, a new w in every prompt or one of a finite pool, with poisoned examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, UInt32

from iclab.core.errors import require
from iclab.core.spec import encoded, number, require_choice, require_count, require_range, spec
from iclab.prompts.attacks import LABEL_RULES, PLACEMENTS, label_rule, place, placement_code, rule_code
from iclab.prompts.labels import REAL, LabelKind
from iclab.prompts.prompt import Family, Prompt
from iclab.prompts.randomness import (
    Bits,
    Key,
    TokenWords,
    as_key,
    choice,
    draw_bits,
    high_half,
    low_half,
    normals,
    threefry,
    uniform16,
)
from iclab.prompts.roles import try_rule

WEIGHTS, SUPPORT = 11, 12
"""What the words of a task are for: the upper word of their counter."""


class RegressionTruth(NamedTuple):
    """The truth about a regression prompt."""

    weights: Float[Array, " dimension"]
    """w, 0 in coordinates without a signal."""
    outlier: Bool[Array, " tokens"]
    """Which examples are poisoned; never the query."""
    clean: Float[Array, " tokens"]
    """The label each example would carry without poison; the true label at the query."""


def pool_code(prompts: Any, pool: int | None) -> Any:
    """The size of the pool; 0 stands for no pool."""
    return np.uint32(0 if pool is None else pool)


@spec(part="prompts")
class Regression(Family):
    """`x ~ N(0, I)`, `y = w.x + noise e`, `w ~ N(0, I / signals)`, so that `w.x` has variance 1.

    The last `outlier_patterns` coordinates carry no signal: a poisoned example has `outlier_scale` in one of them, and
    its label follows `label_rule`; elsewhere they are 0.
    """

    labels: ClassVar[LabelKind] = REAL
    dimension: int = 8
    """Length of an input vector."""
    prompt_length: int = 32
    """l: context examples in a prompt, the query not counted."""
    noise: float = number(default=0.1)
    """sigma: standard deviation of a label's noise, the query's too."""
    nonzero: int | None = None
    """How many weights of a task are not 0, each then with variance 1 / nonzero; none: all of them."""
    pool: int | None = encoded(pool_code, default=None)
    """k: how many tasks there are; none: a new one in every prompt."""
    pool_seed: int = number(default=0)
    """Which pool."""
    mirrored: bool = False
    """Whether a task of the pool occurs with either sign; odd moments of the tasks are then 0, as without a pool."""
    constant: bool = False
    """Whether the coordinate after the signals is 1 in every input: gates have no bias of their own, and Gaussian
    inputs no direction that could serve as one."""
    outlier_patterns: int = 0
    """V: outlier directions."""
    outlier_fraction: float = number(default=0.0)
    """Probability that an example is poisoned."""
    outlier_scale: float = number(default=2.0)
    """kappa_a: a poisoned input's coordinate in its outlier direction."""
    outlier_label: float = number(default=1.0)
    """Size of the label that the random rule gives with a random sign."""
    label_rule: str | Callable[..., Any] = encoded(rule_code, default="random")
    """Label of a poisoned example: flip (-y), target (1), random, or a function (clean, coin, x) -> labels."""
    placement: str = encoded(placement_code, default="random")
    """Where poisoned examples stand: random, far from the query, close to it."""

    def check(self) -> None:
        for field, least in (("dimension", 1), ("prompt_length", 1), ("outlier_patterns", 0), ("pool_seed", 0)):
            require_count(self, field, least)
        require(self.signals >= 1, "dimension", self.dimension,
                f"be above {self.dimension - self.signals}, the coordinates without a signal")
        if self.pool is not None:
            require_count(self, "pool", 1)
        require(self.pool is not None or not self.mirrored, "mirrored", self.mirrored, "be false without a pool")
        if self.nonzero is not None:
            require_count(self, "nonzero", 1)
            require(self.nonzero <= self.signals, "nonzero", self.nonzero,
                    f"be at most {self.signals}, the coordinates with a signal")
        for field in ("noise", "outlier_scale", "outlier_label"):
            require_range(self, field, 0, np.inf, open_high=True)
        require_range(self, "outlier_fraction", 0, 1, open_high=True)
        require(self.outlier_fraction == 0 or self.outlier_patterns > 0, "outlier_fraction", self.outlier_fraction,
                "be 0 when outlier_patterns is 0")
        require_choice(self, "placement", PLACEMENTS)
        if callable(self.label_rule):
            try_rule(self)
        else:
            require_choice(self, "label_rule", LABEL_RULES)

    @property
    def signals(self) -> int:
        """Coordinates that the labels depend on."""
        return self.dimension - self.outlier_patterns - self.constant

    def bits(self, key: Key | Array | int, batch: int) -> Bits:
        """The randomness of a batch; inputs and noise are drawn from one key per prompt."""
        return draw_bits(as_key(key), batch, self.prompt_length + 1)

    def prompts(self, bits: Bits) -> Prompt:
        """The batch of prompts that the bits determine."""
        return jax.vmap(self._prompt)(bits.prompt, bits.tokens, bits.key)

    def _prompt(self, word: UInt32[Array, ""], words: TokenWords, key: Key) -> Prompt:
        tokens = self.prompt_length + 1
        query = jnp.arange(tokens) == self.prompt_length
        gaussian = normals(key, tokens, self.signals + 1)
        signal, noise = gaussian[:, :-1], gaussian[:, -1]
        pool = jnp.asarray(self.pool, jnp.uint32)
        weights = self._task(jnp.where(pool == 0, word, word % jnp.maximum(pool, 1)))
        if self.mirrored:
            weights = jnp.where(words.second[-1] & 1 == 1, weights, -weights)
        clean = signal @ weights + self.noise * noise
        outlier = place((uniform16(low_half(words.first)) < self.outlier_fraction) & ~query, self.placement)
        direction = jnp.where(outlier, choice(high_half(words.third), max(self.outlier_patterns, 1)), -1)
        marks = jnp.where(jnp.arange(self.outlier_patterns) == direction[:, None], self.outlier_scale, 0.0)
        x = jnp.concatenate([signal, jnp.ones((tokens, int(self.constant))), marks], axis=1)
        coin = jnp.where((words.second & 2) == 2, self.outlier_label, -self.outlier_label)
        poisoned = label_rule(self.label_rule)(clean, coin, x)
        y = jnp.where(query, 0.0, jnp.where(outlier, poisoned, clean))
        truth = RegressionTruth(jnp.pad(weights, (0, self.dimension - self.signals)), outlier, clean)
        return Prompt(x, y, clean[-1], truth)

    def _task(self, index: UInt32[Array, ""]) -> Float[Array, " signals"]:
        """The weights of a task by its number: nothing needs to hold the pool."""
        high, low = threefry(Key(jnp.uint32(WEIGHTS), jnp.asarray(self.pool_seed, jnp.uint32)), jnp.uint32(0), index,
                             rounds=20)
        key = Key(high, low)
        weights = normals(key, 1, self.signals)[0]
        if self.nonzero is None:
            return weights / jnp.sqrt(self.signals)
        luck, _ = threefry(key, jnp.uint32(SUPPORT), jnp.arange(self.signals, dtype=jnp.uint32))
        chosen = jnp.argsort(jnp.argsort(luck)) < self.nonzero
        return jnp.where(chosen, weights, 0.0) / jnp.sqrt(self.nonzero)

    def pool_weights(self) -> Float[np.ndarray, "pool dimension"]:
        """The tasks of the pool, one per row; those with the opposite sign, if there are any, follow."""
        require(self.pool is not None, "pool", self.pool, "be a number of tasks")
        tasks = np.asarray(jax.jit(jax.vmap(self._task))(jnp.arange(self.pool, dtype=jnp.uint32)))
        tasks = np.pad(tasks, ((0, 0), (0, self.dimension - self.signals)))
        return np.concatenate([tasks, -tasks]) if self.mirrored else tasks
