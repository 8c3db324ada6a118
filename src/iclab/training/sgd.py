"""One compiled loop: draw a batch, take a gradient step, repeat. Prompts are drawn in it, so memory does not grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from iclab.core.errors import require
from iclab.core.spec import lower
from iclab.models.forward import read, reader
from iclab.prompts.randomness import Key, fold, jax_key, seed_key
from iclab.training.losses import loss_function
from iclab.training.run import Run, Training

INIT_STREAM, DATA_STREAM = 1, 2


class Learner(NamedTuple):
    """What a program reads of a run, except its prompts."""

    model: Any
    training: Training
    init_seed: Int[Array, "*runs"] | int


class Source(NamedTuple):
    """Where the batches of a run come from."""

    prompts: Any
    data_seed: Int[Array, "*runs"] | int


class Setup(NamedTuple):
    """What a program reads of a run: its specs, lowered, and its seeds."""

    model: Any
    training: Training
    init_seed: Int[Array, ""] | int
    prompts: Any
    data_seed: Int[Array, ""] | int

    @classmethod
    def of(cls, run: Run) -> Setup:
        """The setup of one run."""
        return lower(cls(run.model, run.training, run.init_seed, run.prompts, run.data_seed))


Probe = Callable[[Setup, Any], Any]
"""`(setup, params) -> a pytree of arrays`, recorded on the training schedule."""


def probed(probe: Probe, run: Run, params: Any) -> Any:
    """What a probe sees of a run at some weights."""
    return _probed(probe, Setup.of(run), params)


@partial(jax.jit, static_argnums=0)
def _probed(probe: Probe, setup: Setup, params: Any) -> Any:
    return probe(setup, params)


class State(NamedTuple):
    """Everything that changes during training; enough to resume from."""

    params: Any
    optimizer: Any
    step: Int[Array, ""]


def begin(run: Run) -> State:
    """The state before the first step."""
    return begin_each([run])[0]


def begin_each(runs: Sequence[Run]) -> list[State]:
    """The states before the first step, each computed alone: no digit depends on how many there are."""
    learners: dict[Any, Any] = {}
    states = []
    for run in runs:
        specs = id(run.model), id(run.training)  # the same objects in most runs that differ in seeds
        if specs not in learners:
            learners[specs] = lower((run.model, run.training))
        states.append(_begun(*learners[specs], _init_words(run.init_seed), run.prompts.dimension))
    return states


@partial(jax.jit, static_argnums=3)
def _begun(model: Any, training: Training, words: Key, dimension: int) -> State:
    return starting_state(model, training, jax_key(words), dimension)


def init_key(init_seed: Any) -> Array:
    """The key of the starting weights, in JAX's form; one per seed."""
    return jax_key(_init_words(init_seed))


def _init_words(init_seed: Any) -> Key:
    return fold(seed_key(init_seed), 0, INIT_STREAM)


def starting_state(model: Any, training: Training, key: Array, dimension: int) -> State:
    """The state before the first step, of a model that reads inputs of this dimension."""
    params = model.init(key, dimension)
    return State(params, training.transformation().init(params), jnp.uint32(0))


def batch_loss(setup: Setup, params: Any, columns: Float[Array, "batch tokens width"], label: Array
               ) -> Float[Array, ""]:
    """Mean loss over a batch of prompts."""
    loss = loss_function(setup.training.loss)
    outputs, _ = jax.vmap(lambda columns: read(setup.model, params, columns, setup.prompts.dimension))(columns)
    losses = jax.vmap(loss)(outputs, label)
    require(losses.ndim == 1, "training.loss", f"shape {losses.shape[1:]}", "return one number per prompt, of shape ()")
    return losses.mean()


def step_keys(data_seeds: Any, first: int, steps: int) -> Key:
    """The keys of `steps` batches. They depend on the data seed and the step only, so a resumed run sees the same data.

    Several seeds give one row each.
    """
    return fold(seed_key(np.asarray(data_seeds)[..., None]), first + np.arange(steps), DATA_STREAM)


class Loop(NamedTuple):
    """What is carried from step to step: the state, the batch it reads next, and the random bits of the batch after.

    What is carried is written to memory once. If a batch were drawn where it is used, XLA would fuse the drawing of a
    token into each of its 31 coordinates, and the drawing of the batch into every product that reads it.
    """

    state: State
    columns: Float[Array, "batch tokens width"]
    label: Float[Array, "batch *answer"]
    ahead: Any


AHEAD = 2
"""A step draws the bits of the batch that is read this many steps later."""


def draw_columns(prompts: Any, embedding: Any, bits: Any) -> tuple[Float[Array, "batch tokens width"], Array]:
    """Columns and labels of the batch that the random bits determine."""
    batch = prompts.prompts(bits)
    return jax.vmap(embedding.columns)(batch), batch.label


def first_batches(prompts: Any, embedding: Any, batch_size: int, keys: Key) -> tuple[Array, Array, Any]:
    """Columns and labels of the first batch and the bits of the second, given their keys."""
    # In one call: written twice, the generator would be compiled twice.
    bits = jax.vmap(lambda key: prompts.bits(key, batch_size))(keys)
    first, second = (jax.tree.map(lambda words, i=i: words[i], bits) for i in range(AHEAD))
    return *draw_columns(prompts, embedding, first), second


def sgd_step(setup: Setup, state: State, columns: Float[Array, "batch tokens width"], label: Array
             ) -> tuple[State, Float[Array, ""]]:
    """One gradient step (li2025mamba, algorithm 1)."""
    loss, gradient = jax.value_and_grad(lambda params: batch_loss(setup, params, columns, label))(state.params)
    updates, optimizer = setup.training.transformation().update(gradient, state.optimizer, state.params)
    return State(optax.apply_updates(state.params, updates), optimizer, state.step + 1), loss


def stretch(setup: Setup, loop: Loop, keys: Key) -> tuple[Loop, Float[Array, " steps"]]:
    """Take one step per key, each the key of a batch two steps ahead; also the loss of each step."""
    return pipelined(setup, partial(sgd_step, setup), loop, keys)


def pipelined(setup: Setup, step: Callable[[State, Array, Array], tuple[State, Array]], loop: Loop, keys: Key
              ) -> tuple[Loop, Float[Array, "*runs steps"]]:
    """Scan `step` over the batches of `setup`."""
    def body(loop: Loop, key: Key) -> tuple[Loop, Array]:
        state, loss = step(loop.state, loop.columns, loop.label)
        embedding = reader(setup.model, setup.prompts.dimension)
        columns, label = draw_columns(setup.prompts, embedding, loop.ahead)
        return Loop(state, columns, label, setup.prompts.bits(key, setup.training.batch_size)), loss

    loop, losses = jax.lax.scan(body, loop, keys)
    return loop, jnp.moveaxis(losses, 0, -1)
