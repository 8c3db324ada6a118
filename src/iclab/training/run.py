"""What a run is: a model, the prompts it trains on, how it is trained, and its seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import jax
import optax

from iclab.core.errors import not_a, require
from iclab.core.spec import number, part, replace, require_choice, require_count, require_range, schedule, spec
from iclab.models import GatedAttention
from iclab.models.protocol import require_model
from iclab.prompts import Classification
from iclab.prompts.prompt import require_family
from iclab.training.losses import LOSSES

BACKENDS = ("auto", "xla", "fused")


def optimizer_of(optimizer: str | Callable[..., Any], learning_rate: Any) -> optax.GradientTransformation:
    """The transformation that optax, or a user's function, makes for a learning rate."""
    make = getattr(optax, optimizer) if isinstance(optimizer, str) else optimizer
    return make(learning_rate)


@lru_cache(maxsize=256)
def takes_steps(optimizer: Any) -> bool:
    """Whether training can use an optimizer: two steps on a small problem, traced as training traces them.

    Only shapes are traced, nothing is computed. Optimizers that need more than a learning rate and gradients
    (line searches, Polyak's step) fail here instead of in the middle of a training.
    """
    def steps(learning_rate: Any, params: Any) -> Any:
        step = optimizer_of(optimizer, learning_rate)

        def body(carry: Any, _: Any) -> Any:
            params, state = carry
            updates, state = step.update(params, state, params)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(body, (params, step.init(params)), None, length=2)[0][0]

    params = {"matrix": jax.ShapeDtypeStruct((2, 4, 3), float), "vector": jax.ShapeDtypeStruct((2, 3), float)}
    try:
        after = jax.eval_shape(jax.vmap(steps), jax.ShapeDtypeStruct((2,), float), params)
    except (Exception, SystemExit):  # a user's function may fail in any way
        return False
    return jax.tree.map(lambda leaf: leaf.shape, after) == jax.tree.map(lambda leaf: leaf.shape, params)


@spec
class Training:
    """How a model is trained: fresh prompts every step, one gradient step per batch (Algorithm 1)."""

    steps: int = schedule(default=10_000)
    """T: gradient steps."""
    batch_size: int = 128
    """B: prompts in a batch."""
    learning_rate: float = number(default=1.0)
    """eta: step size."""
    optimizer: str | Callable[..., Any] = "sgd"
    """A name from optax (sgd, adam, ...) or a function learning_rate -> optax transformation."""
    loss: str | Callable[..., Any] = "hinge"
    """hinge, squared, logistic, cross_entropy, token_cross_entropy (at every token), or a function (output, label) ->
    loss of one prompt."""
    clip_norm: float | None = number(default=None)
    """Largest norm of a gradient; none does not clip."""
    record_every: int = schedule(default=250)
    """Steps between two records of the loss and of the probes."""

    backend: str = schedule(default="auto")
    """xla (any model and training), fused (kernels for the papers' one-layer models and plain SGD), auto (the faster
    that can train the run). Both compute the same up to rounding."""

    def check(self) -> None:
        require_choice(self, "backend", BACKENDS)
        for field in ("steps", "batch_size", "record_every"):
            require_count(self, field, 1)
        require_range(self, "learning_rate", 0, float("inf"), open_low=True, open_high=True)
        if self.clip_norm is not None:
            require_range(self, "clip_norm", 0, float("inf"), open_low=True, open_high=True)
        if not callable(self.loss):
            require_choice(self, "loss", LOSSES)
        # An unhashable object is tried again each time.
        tried = takes_steps if isinstance(self.optimizer, Hashable) else takes_steps.__wrapped__
        require(tried(self.optimizer), "optimizer", self.optimizer,
                "be the name of an optax optimizer that needs gradients only (such as sgd or adam), or a function "
                "learning_rate -> optax transformation")

    def transformation(self) -> optax.GradientTransformation:
        """The optax transformation that the fields describe."""
        step = optimizer_of(self.optimizer, self.learning_rate)
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
            require_count(self, field, 0, below=2**32)
        require_model(self.model)
        require_family(self.prompts)
        if not isinstance(self.training, Training):
            raise not_a("training", self.training, "a Training, such as Training(steps=1000)")
        self._check_match()

    def elsewhere(self, name: str) -> str | None:
        """The path of a field of one of its parts."""
        for field in dataclasses.fields(self):
            part = getattr(self, field.name, None)
            if part is None and callable(field.default_factory):  # before it is made
                part = field.default_factory()
            if dataclasses.is_dataclass(part) and any(name == inner.name for inner in dataclasses.fields(part)):
                test = f", or test.{name} in a sweep" if field.name == "prompts" else ""
                return f"it is a field of its {field.name}: {field.name}.{name}{test}"
        return None

    def _check_match(self) -> None:
        """The model must read the labels of its prompts, and the loss must suit them."""
        embedding, labels, loss = self.model.embedding, self.prompts.labels, self.training.loss
        require(labels.name in embedding.reads, "model.embedding", type(embedding).__name__,
                f"read labels of kind {labels.name}, which the prompts have")
        require(callable(loss) or loss in labels.losses, "training.loss", loss,
                f"be {' or '.join(labels.losses)} (or a function) for labels of kind {labels.name}")
        if labels.name == "step":
            require(embedding.steps == self.prompts.reasoning_steps, "model.embedding.steps", embedding.steps,
                    f"be the prompts' reasoning_steps = {self.prompts.reasoning_steps}")

    def seeded(self, seed: int) -> Run:
        """The same run with both seeds set to `seed`."""
        return replace(self, init_seed=seed, data_seed=seed)
