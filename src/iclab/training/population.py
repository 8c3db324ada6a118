"""Population dynamics: training under the expected gradient, in the few numbers that symmetry leaves.

Exchanging patterns of a kind, reversing the sign of an irrelevant one, and reversing all labels along with the order of
the relevant patterns change neither the prompts' distribution nor the mean start (W_B = W_C = delta I, w = 0). So the
expected gradient leaves weights alone that are symmetric in the same way:

| block                          | free numbers                                     |
| ------------------------------ | ------------------------------------------------ |
| relevant with relevant         | one per shift k, the same for k and M1 - k       |
| irrelevant with itself         | one                                              |
| outlier with itself, another   | one each                                         |
| relevant with outlier          | one each way                                     |
| w along relevant, outlier      | one each; 0 along irrelevant and on the label    |

Chains have another such list (`iclab.training.chain_population`). Every step takes the gradient of a large batch and
averages the weights over these orbits, which removes most of the sampling noise that is left. Learning rate and number
of steps are those of the run.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from jaxtyping import Float, Int

from iclab.core.errors import SpecError, require
from iclab.core.spec import replace
from iclab.kernels.fitting import kernel_pack, training_misfit
from iclab.models import ChainAttention, GatedAttention
from iclab.prompts import Classification
from iclab.prompts.tasks import parse_tasks
from iclab.training.chain_population import FollowedChains
from iclab.training.fused import unsuited_machine
from iclab.training.order import Order, PatternWeights, order_parameters, pattern_weights
from iclab.training.run import Run
from iclab.training.sgd import begin, step_keys

PROMPTS = 2_048
"""Prompts in the batch of a step."""


@dataclass(frozen=True)
class Population:
    """What the population dynamics predict of a run."""

    run: Run
    steps: Int[np.ndarray, " records"]
    """Step number of each record."""
    loss: Float[np.ndarray, " records"]
    """Mean training loss over the steps of each record."""
    error: Float[np.ndarray, " records"]
    """Mean error on training prompts over the steps of each record."""
    order: dict[str, Float[np.ndarray, " records"]]
    """Order parameters at each record, by name."""
    weights: Any
    """The weights after the last step: `PatternWeights`, or `ChainWeights` of chains."""


class Followed(Protocol):
    """A model on its way under the expected gradient."""

    def advance(self, seed: int, step: int) -> tuple[float, float]:
        """Take the step of this number: the loss and the error of its batch."""
        ...

    def weights(self) -> Any:
        """The weights along the patterns."""
        ...


class Orbits(NamedTuple):
    """Which entries are equal by symmetry: by number, 0 for those that are 0."""

    matrix: Int[np.ndarray, "patterns patterns"]
    gate: Int[np.ndarray, " patterns"]


def orbits_of(prompts: Classification) -> Orbits:
    """The orbits of the entries of W_B (or W_C) and w, the label left out: there all are 0."""
    M1, M2, V = prompts.relevant_patterns, prompts.irrelevant_patterns, prompts.outlier_patterns
    shift = (np.arange(M1)[None] - np.arange(M1)[:, None]) % M1
    relevant, first = slice(0, M1), M1 + M2
    outlier, free = slice(first, first + V), M1 // 2 + 1
    matrix = np.zeros((first + V, first + V), int)
    matrix[relevant, relevant] = 1 + np.minimum(shift, M1 - shift)
    matrix[range(M1, first), range(M1, first)] = free + 1
    matrix[outlier, outlier] = np.where(np.eye(V, dtype=bool), free + 2, free + 3)
    matrix[relevant, outlier], matrix[outlier, relevant] = free + 4, free + 5
    return Orbits(matrix, np.repeat([1, 0, 2], [M1, M2, V]))


def averaged(values: Float[np.ndarray, "*entries"], orbits: Int[np.ndarray, "*entries"]
             ) -> Float[np.ndarray, "*entries"]:
    """Every entry replaced by the mean over its orbit; those of orbit 0 by 0."""
    flat = orbits.ravel()
    means = np.bincount(flat, np.ravel(values)) / np.maximum(np.bincount(flat), 1)
    means[0] = 0.0
    return means[orbits]


def check_symmetric(run: Run) -> None:
    """Refuse runs that have no kernel, or lack the symmetries that the reduction uses."""
    require(type(run.model) in (GatedAttention, ChainAttention), "model", type(run.model).__name__,
            "be a GatedAttention or a ChainAttention")
    reason = training_misfit(run.model, run.prompts, run.training) or unsuited_machine()
    if reason:
        raise SpecError(f"run must {reason} for population dynamics")
    if type(run.model) is GatedAttention:
        _check_symmetric_tasks(run.prompts)
    else:
        require(run.prompts.transitions is None, "prompts.transitions", "matrices", "be None: no step of training goes "
                "wrong")


def _check_symmetric_tasks(prompts: Classification) -> None:
    for field in ("outlier_mixtures", "outlier_vectors", "pattern_mixtures"):
        require(getattr(prompts, field) is None, f"prompts.{field}", getattr(prompts, field), "be None: the outliers "
                "and patterns of training are v and mu")
    require(prompts.label_rule in ("random", "flip"), "prompts.label_rule", prompts.label_rule,
            "be random or flip, which treat both labels alike")
    M1, tasks = prompts.relevant_patterns, Counter(parse_tasks(prompts.tasks, prompts.relevant_patterns))
    require(tasks == Counter(((a + 1) % M1, (b + 1) % M1) for a, b in tasks.elements()), "prompts.tasks", prompts.tasks,
            "stay the same when every pattern is replaced by the next one, as all and cyclic:U do")


class FollowedGates:
    """A one-layer `GatedAttention` trained by steps on large batches, its weights averaged after each."""

    def __init__(self, run: Run, own_start: bool):
        if not own_start:  # the mean start is the same in every basis
            run = replace(run, prompts=replace(run.prompts, rotation_seed=None, basis=None))
        self.run, self.own_start, self.orbits = run, own_start, orbits_of(run.prompts)
        self.pack = kernel_pack(run.model)([run], [jax.tree.map(np.asarray, begin(run).params)], True)
        if not own_start:
            self.pack.weights.w[:] = 0.0

    def advance(self, seed: int, step: int) -> tuple[float, float]:
        """Take the step of this number: the loss and the error of its batch."""
        loss = self.pack.advance(step_keys(np.array(seed), step, 1))[0, 0]
        error = (self.pack.memory[-1].outputs * self.pack.drawn[0].label <= 0).mean()
        if not self.own_start:
            symmetrise(self.pack.weights, self.orbits)
        return float(loss), float(error)

    def weights(self) -> PatternWeights:
        """The weights along the patterns."""
        return pattern_weights(self.pack.params()[0], self.run.prompts)


def population_dynamics(run: Run, *, steps: int | None = None, order: Order = order_parameters,
                        prompts: int = PROMPTS, own_start: bool = False, until: float | None = None, seed: int = 0
                        ) -> Population:
    """Follow the training of a one-layer gated model, or of attention on chains, under the expected gradient, without a
    seed.

    `steps` and the records are those of the run unless given. `order` maps `PatternWeights` (`ChainWeights`) to numbers
    by name. `prompts` is the batch from which each gradient is computed, `seed` that of its sampling. `own_start`
    begins at the run's own w (W of chains) instead of its mean 0; nothing is then averaged over patterns. `until` stops
    at the first record whose loss is at most this.
    """
    check_symmetric(run)
    steps = run.training.steps if steps is None else steps
    for name, value in (("steps", steps), ("prompts", prompts)):
        require(isinstance(value, int) and value >= 1, name, value, "be a whole number of at least 1")
    large = replace(run, training=replace(run.training, batch_size=prompts, steps=steps))
    followed: Followed = (FollowedGates if type(run.model) is GatedAttention else FollowedChains)(large, own_start)
    every, done = run.training.record_every, 0
    rows: list[tuple[float, float, dict[str, Any]]] = []
    ends = [*range(every, steps, every), steps]
    for end in ends:
        losses, errors = np.array([followed.advance(seed, step) for step in range(done, end)]).T
        weights = followed.weights()
        rows.append((losses.mean(), errors.mean(), dict(order(weights))))
        done = end
        if until is not None and losses.mean() <= until:
            break
    loss, error, values = zip(*rows, strict=True)
    return Population(run, np.array(ends[:len(rows)]), np.array(loss), np.array(error),
                      {name: np.array([row[name] for row in values], float) for name in values[0]}, weights)


def symmetrise(weights: Any, orbits: Orbits) -> None:
    """Average the weights of a pack of one run over their orbits, in place."""
    n = len(orbits.gate)
    for W in (weights.W_B[0], weights.W_C[0]):
        W[:n, :n] = averaged(W[:n, :n], orbits.matrix)
        W[:, n:] = 0.0
    gate = averaged(weights.w[0, :n], orbits.gate)
    weights.w[0] = 0.0
    weights.w[0, :n] = gate
