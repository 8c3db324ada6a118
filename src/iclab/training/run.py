"""What a run is: a model, the prompts it trains on, how it is trained, and its seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import optax

from iclab.errors import require
from iclab.models import GatedAttention
from iclab.prompts import Classification
from iclab.specs import number, part, replace, require_choice, require_count, require_range, spec
from iclab.training.losses import LOSSES


@spec
class Training:
    """How a model is trained: fresh prompts every step, one gradient step a batch (Algorithm 1)."""

    steps: int = 10_000
    """T: gradient steps."""
    batch_size: int = 128
    """B: prompts in a batch."""
    learning_rate: float = number(default=1.0)
    """eta: step size."""
    optimizer: str | Callable[..., Any] = "sgd"
    """A name from optax (sgd, adam, ...) or a function learning_rate -> optax transformation."""
    loss: str = "hinge"
    """hinge or squared."""
    clip_norm: float | None = number(default=None)
    """Largest norm of a gradient; none does not clip."""
    record_every: int = 250
    """Steps between two records of the loss and of the probes."""

    def check(self) -> None:
        for field in ("steps", "batch_size", "record_every"):
            require_count(self, field, 1)
        require_range(self, "learning_rate", 0, float("inf"), open_low=True, open_high=True)
        if self.clip_norm is not None:
            require_range(self, "clip_norm", 0, float("inf"), open_low=True, open_high=True)
        require_choice(self, "loss", LOSSES)
        rule = "be the name of an optax optimizer, or a function learning_rate -> optax transformation"
        make = getattr(optax, self.optimizer, None) if isinstance(self.optimizer, str) else self.optimizer
        try:
            made = make(0.1)  # type: ignore[misc]
        except Exception:
            made = None
        require(isinstance(made, optax.GradientTransformation), "optimizer", self.optimizer, rule)

    def transformation(self) -> optax.GradientTransformation:
        """The optax transformation that the fields describe."""
        make = getattr(optax, self.optimizer) if isinstance(self.optimizer, str) else self.optimizer
        step = make(self.learning_rate)
        return step if self.clip_norm is None else optax.chain(optax.clip_by_global_norm(self.clip_norm), step)


@spec
class Run:
    """One training: everything that determines the trained weights."""

    model: Any = part(default_factory=GatedAttention)
    """The model to train."""
    prompts: Any = part(default_factory=lambda: Classification(outlier_fraction=0.6, tasks="cyclic:5"))
    """The distribution of training prompts."""
    training: Training = part(default_factory=Training)
    """How it is trained."""
    init_seed: int = number(default=0)
    """Seed of the starting weights."""
    data_seed: int = number(default=0)
    """Seed of the training prompts; runs with equal prompts and data seed see the same batches."""

    def check(self) -> None:
        for field in ("init_seed", "data_seed"):
            require_count(self, field, 0)
            require_range(self, field, 0, 2**32, open_high=True)
        self._check_match()

    def _check_match(self) -> None:
        """The model must read the kind of prompts that it is given."""
        embedding = getattr(self.model, "embedding", None)
        reads, given = (getattr(part, "kind", "labels") for part in (embedding, self.prompts))
        require(reads == given, "model.embedding", type(embedding).__name__,
                f"read {given}, which the prompts speak of")
        if given == "chain":
            require(self.model.embedding.steps == self.prompts.reasoning_steps, "model.embedding.steps",
                    self.model.embedding.steps, f"be the prompts' reasoning_steps = {self.prompts.reasoning_steps}")
            require(self.training.loss == "squared", "training.loss", self.training.loss, "be squared for chains")

    def seeded(self, seed: int) -> Run:
        """The same run with both seeds set to `seed`."""
        return replace(self, init_seed=seed, data_seed=seed)
