"""The best any learner can do on a prompt: the floor for one that does not know the rule, and the Bayes predictor.

Reference: ours; none of the papers draws them.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.core.errors import require
from iclab.prompts.attacks import label_rule
from iclab.prompts.prompt import Prompt


@runtime_checkable
class HasFloor(Protocol):
    """Prompts in which an example may be decisive or not and poisoned or not: they have an information floor."""

    @property
    def prompt_length(self) -> int:
        """Examples in a prompt."""

    @property
    def decisive_fraction(self) -> float:
        """Share of the examples that belong to the task."""

    @property
    def outlier_fraction(self) -> float:
        """Share of the examples that are poisoned."""


@runtime_checkable
class HasBayes(Protocol):
    """Prompts whose examples each show one pattern, where two patterns make a task: they have a Bayes predictor."""

    @property
    def decisive_fraction(self) -> float:
        """Share of the examples that belong to the task."""

    @property
    def task_patterns(self) -> int:
        """Patterns of which tasks are made."""


def information_floor(prompts: Any, prompt_length: int | None = None) -> float:
    """`(1 - decisive (1 - outlier))^l / 2`: least error of a learner that knows neither the rule nor the task family.

    Both orientations of every task are equally likely to it, so without a clean decisive example it can only guess.
    A learner that knows that poisoned labels are flipped can undo it and go below the floor; so can one that knows a
    task family (such as cyclic:1) in which the two patterns of a task determine its orientation.
    """
    require(isinstance(prompts, HasFloor), "prompts", type(prompts).__name__,
            "have prompt_length, decisive_fraction and outlier_fraction for an information floor")
    length = prompts.prompt_length if prompt_length is None else prompt_length
    return float((1.0 - prompts.decisive_fraction * (1.0 - prompts.outlier_fraction)) ** length / 2.0)


def bayes_predictor(prompts: Any, *, knows_rule: bool = False) -> Any:
    """The predictor that knows the patterns but not the task (all are equally likely), for prompts such as these.

    It weighs every partner pattern and orientation by the context's patterns and labels and returns the log odds of
    the label +1. Poisoned examples' labels are ignored, or weighed by their rule when `knows_rule`. Ties give +1: the
    label is then a fair coin, so half of them are wrong.
    """
    require(isinstance(prompts, HasBayes), "prompts", type(prompts).__name__,
            "have decisive_fraction and task_patterns for a Bayes predictor")
    rule = prompts.label_rule if knows_rule else None

    def predict(batch: Prompt) -> Float[np.ndarray, " batch"]:
        needed = (jnp.asarray(field) for field in (batch.truth.pattern, batch.truth.outlier, batch.y, batch.x))
        return np.asarray(_log_odds(*needed, jnp.float32(prompts.decisive_fraction), prompts.task_patterns, rule))

    return predict


@partial(jax.jit, static_argnums=(5, 6))
@partial(jax.vmap, in_axes=(0, 0, 0, 0, None, None, None))
def _log_odds(pattern: Array, outlier: Array, y: Array, x: Array, decisive: Array, patterns: int, rule: Any) -> Array:
    """Log odds of one prompt's label over all (partner, orientation), prior uniform over tasks."""
    query, context = pattern[-1], pattern[:-1]
    partner = jnp.arange(patterns)[:, None]
    is_query, is_partner = context[None] == query, context[None] == partner
    decides = is_query | is_partner
    elsewhere = (1.0 - decisive) / max(patterns - 2, 1)
    pattern_weight = jnp.where(decides, decisive / 2.0, elsewhere)

    def log_weight(orientation: float) -> Array:
        clean = jnp.where(is_query, orientation, -orientation)
        agrees = jnp.where(decides, (clean == y[:-1]).astype(float), 0.5)
        poisoned = jnp.full_like(agrees, 0.5)
        if rule is not None:
            def chance(clean: Array) -> Array:
                # A rule may use its coin: the chance of the label seen is the mean over both faces.
                faces = [jax.vmap(lambda c, face=face: label_rule(rule)(c, jnp.full_like(c, face), x[:-1]))(clean)
                         for face in (1.0, -1.0)]
                return ((faces[0] == y[:-1]).astype(float) + (faces[1] == y[:-1])) / 2.0

            either = (chance(jnp.ones_like(clean)) + chance(-jnp.ones_like(clean))) / 2.0
            poisoned = jnp.where(decides, chance(clean), either)
        label_weight = jnp.where(outlier[None, :-1], poisoned, agrees)
        total = jnp.log(jnp.maximum(pattern_weight * label_weight, 1e-30)).sum(axis=1)
        return jax.nn.logsumexp(jnp.where(jnp.arange(patterns) == query, -jnp.inf, total))

    odds = log_weight(1.0) - log_weight(-1.0)
    return jnp.where(jnp.abs(odds) < 1e-4, 1e-6, odds)
