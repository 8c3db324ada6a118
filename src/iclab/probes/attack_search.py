"""The most harmful attack within a budget: what is added to poisoned inputs, their labels and positions.

Label rules and placements are tried one by one; for each, the vector u that all poisoned inputs carry is found by
projected gradient ascent from several starts. The reported error is measured on fresh prompts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from iclab.core.errors import require
from iclab.core.parallel import Compiled
from iclab.core.spec import replace
from iclab.models.forward import forward_batch
from iclab.probes.error_rate import on_device
from iclab.prompts.attacks import LABEL_RULES, PLACEMENTS, label_rule, place
from iclab.prompts.classification import Classification
from iclab.prompts.prompt import Prompt
from iclab.prompts.randomness import as_key, fold
from iclab.training.trained import Trained

_compiled = Compiled()
SEARCH_STREAM, FRESH_STREAM = 11, 12


@dataclass(frozen=True)
class Budget:
    """What the attacker may do."""

    largest: float
    """Greatest norm of u."""
    smallest: float = 0.0
    """Least norm of u; 0 allows poison that leaves the input as it is."""
    free: bool = False
    """Whether u may point anywhere, or only within the span of the training outliers."""
    least_sum: float | None = None
    """Least sum of the coefficients of u / |u| over the training outliers (theorem 2 requires more than 0)."""
    rules: tuple[str | Callable[..., Any], ...] = tuple(LABEL_RULES)
    placements: tuple[str, ...] = PLACEMENTS

    def __post_init__(self) -> None:
        require(self.largest > 0, "largest", self.largest, "be above 0")
        require(0 <= self.smallest <= self.largest, "smallest", self.smallest, f"lie in [0, {self.largest:g}]")
        require(not (self.free and self.least_sum is not None), "least_sum", self.least_sum,
                "be None when u may point anywhere")
        for placement in self.placements:
            require(placement in PLACEMENTS, "placements", placement, f"be among {', '.join(PLACEMENTS)}")
        for rule in self.rules:
            require(callable(rule) or rule in LABEL_RULES, "rules", rule, f"be among {', '.join(LABEL_RULES)}")


class Attack(NamedTuple):
    """An attack and how often the model errs under it.

    `on` and `added_to` make prompts of it, to train on, sweep and measure.
    """

    vector: Float[np.ndarray, " dimension"]
    """u: what every poisoned input carries."""
    rule: str | Callable[..., Any]
    placement: str
    error: float
    """On fresh prompts."""
    coefficient_sum: float
    """Of u / |u| over the training outliers."""

    @property
    def norm(self) -> float:
        """|u|."""
        return float(np.linalg.norm(self.vector))

    def on(self, prompts: Classification) -> Classification:
        """The same prompts under this attack, with as many poisoned examples; `outlier_scale` then weakens it (below
        1) or strengthens it."""
        return replace(_carrying(prompts, self.vector[None]), label_rule=self.rule, placement=self.placement)

    def added_to(self, prompts: Classification) -> Classification:
        """The same prompts, their label rule and placement unchanged, with u as one more of the outliers that poisoned
        examples carry: what to train on against an attack without unlearning the others."""
        return _carrying(prompts, np.concatenate([prompts.carried(), self.vector[None]]))


def _carrying(prompts: Classification, vectors: Float[np.ndarray, "rows dimension"]) -> Classification:
    """The same prompts, whose poisoned examples carry one of these vectors."""
    return replace(prompts, outlier_vectors=vectors, outlier_mixtures=None, outlier_scale=1.0)


class _Limits(NamedTuple):
    projector: Float[Array, "dimension dimension"]
    diagonal: Float[Array, " dimension"]
    """Sum of the training outliers: its product with u is the coefficient sum."""
    smallest: Float[Array, ""]
    largest: Float[Array, ""]
    least_sum: Float[Array, ""]


def worst_attack(trained: Trained, prompts: Classification, budget: Budget, *, steps: int = 30, starts: int = 4,
                 searched: int = 256, count: int = 4000, seed: int = 0) -> Attack:
    """The worst attack found on a trained run, for `Classification` prompts whose outlier fraction is the attacker's.

    `searched` prompts are used to find it, `count` fresh ones to measure it.
    """
    _require_attackable(trained, prompts)
    require(prompts.outlier_fraction > 0, "outlier_fraction", prompts.outlier_fraction, "be above 0")
    v = prompts.outliers()
    limits = _Limits(*(jnp.asarray(limit, float) for limit in (
        np.eye(prompts.dimension) if budget.free else v.T @ v, v.sum(axis=0), budget.smallest, budget.largest,
        -np.inf if budget.least_sum is None else budget.least_sum)))
    directions = np.random.default_rng(seed).normal(size=(starts, prompts.dimension))
    begin = jnp.asarray(directions * budget.largest, float)
    model = on_device((trained.run.model, trained.params))
    batch = _unmarked(prompts).sample(fold(as_key(seed), 0, SEARCH_STREAM), searched).numpy()
    candidates = []
    for rule in budget.rules:
        for placement in budget.placements:
            args = (*model, _poisoned(batch, rule, placement, seed), begin, limits)
            vectors, errors = _compiled.of(_climb(steps), *args)(*args)
            best = int(np.argmax(errors))
            candidates.append((float(errors[best]), np.asarray(vectors[best], float), rule, placement))
    _, u, rule, placement = max(candidates, key=lambda item: item[0])
    total = float(u @ v.sum(axis=0) / max(np.linalg.norm(u), 1e-12))
    attack = Attack(u, rule, placement, np.nan, total)
    return attack._replace(error=attack_error(trained, prompts, attack, count=count, seed=seed))


def attack_error(trained: Trained, prompts: Classification, attack: Attack, *, count: int = 4000, seed: int = 0
                 ) -> float:
    """Error of a trained run under an attack, on fresh prompts with their outlier fraction."""
    _require_attackable(trained, prompts)
    batch = _unmarked(prompts).sample(fold(as_key(seed), 0, FRESH_STREAM), count).numpy()
    args = (*on_device((trained.run.model, trained.params)), _poisoned(batch, attack.rule, attack.placement, seed + 1),
            jnp.asarray(attack.vector, float))
    return float(_compiled.of(_error, *args)(*args))


def _require_attackable(trained: Trained, prompts: Classification) -> None:
    """Only the weights of a run have the slopes that a search climbs, and only these prompts carry vectors."""
    require(isinstance(trained, Trained), "trained", type(trained).__name__,
            "be a trained run (for a module of a model of iclab's: from_torch(module))")
    require(isinstance(prompts, Classification), "prompts", type(prompts).__name__,
            "be Classification, whose poisoned examples carry a vector; measure other attacks with measure_error")
    trained.require_readable(prompts)


def _unmarked(prompts: Classification) -> Classification:
    """The same prompts with inputs that do not show which examples are poisoned."""
    return replace(prompts, outlier_scale=0.0, label_rule="random", placement="random")


def _poisoned(batch: Prompt, rule: str | Callable[..., Any], placement: str, seed: int) -> Prompt:
    """Prompts whose poisoned examples have this label rule and placement; their inputs are still unmarked."""
    truth = batch.truth
    outlier = np.asarray(_placed(jnp.asarray(truth.outlier), placement))
    coin = np.random.default_rng(seed).choice([-1.0, 1.0], size=batch.y.shape).astype(batch.y.dtype)
    poisoned = np.asarray(jax.vmap(label_rule(rule))(*(jnp.asarray(a) for a in (truth.clean, coin, batch.x))))
    y = np.where(outlier, poisoned, truth.clean).astype(batch.y.dtype)
    y[:, -1] = 0.0
    return jax.tree.map(jnp.asarray, batch._replace(y=jnp.asarray(y), truth=truth._replace(outlier=outlier)))


@partial(jax.jit, static_argnums=1)
def _placed(outlier: Bool[Array, "batch tokens"], placement: str) -> Bool[Array, "batch tokens"]:
    return jax.vmap(partial(place, placement=placement))(outlier)


def _margins(model: Any, params: Any, batch: Prompt, u: Float[Array, " dimension"]) -> Float[Array, " batch"]:
    marked = batch._replace(x=batch.x + batch.truth.outlier[..., None] * u)
    return forward_batch(model, params, marked)[0] * batch.label


def _error(model: Any, params: Any, batch: Prompt, u: Float[Array, " dimension"]) -> Float[Array, ""]:
    return jnp.where(_margins(model, params, batch, u) > 0, 0.0, 1.0).mean()


def _within(limits: _Limits, u: Float[Array, " dimension"]) -> Float[Array, " dimension"]:
    """The vector nearest to u, or nearly so, that the limits allow."""
    u = limits.projector @ u
    unit = u / jnp.maximum(jnp.linalg.norm(u), 1e-9)
    # Too small a coefficient sum: turn towards the diagonal, just as far as needed.
    along = limits.diagonal / jnp.maximum(jnp.linalg.norm(limits.diagonal), 1e-9)
    cosine = limits.least_sum / jnp.maximum(jnp.linalg.norm(limits.diagonal), 1e-9)
    across = unit - (unit @ along) * along
    across = across / jnp.maximum(jnp.linalg.norm(across), 1e-9)
    turned = cosine * along + jnp.sqrt(jnp.maximum(1 - cosine**2, 0.0)) * across
    unit = jnp.where(unit @ along < cosine, turned, unit)
    return unit * jnp.clip(jnp.linalg.norm(u), limits.smallest, limits.largest)


@cache
def _climb(steps: int) -> Any:
    """Projected gradient ascent from every start; the vector with the largest error along the way, and that error."""
    def climb(model: Any, params: Any, batch: Prompt, begin: Float[Array, "starts dimension"], limits: _Limits) -> Any:
        def harm(u: Array) -> tuple[Array, Array]:
            margins = _margins(model, params, batch, u)
            scale = jax.lax.stop_gradient(jnp.abs(margins).mean()) + 1e-6
            return jax.nn.sigmoid(-margins / scale).mean(), jnp.where(margins > 0, 0.0, 1.0).mean()

        def step(carry: Any, size: Array) -> Any:
            u, best, most = carry
            (_, error), slope = jax.value_and_grad(harm, has_aux=True)(u)
            better = error > most
            carried = jnp.where(better, u, best), jnp.where(better, error, most)
            slope = limits.projector @ slope
            move = size * limits.largest * slope / jnp.maximum(jnp.linalg.norm(slope), 1e-9)
            return (_within(limits, u + move), *carried), None

        def one(u: Array) -> Any:
            first = _within(limits, u)
            (_, best, most), _ = jax.lax.scan(step, (first, first, -1.0), jnp.geomspace(0.5, 0.05, steps))
            return best, most

        return jax.vmap(one)(begin)

    return climb
