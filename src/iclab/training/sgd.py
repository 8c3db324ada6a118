"""One compiled loop: draw a batch, take a gradient step, again; data is made inside it, memory does not grow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from iclab.models.forward import read, reader
from iclab.prompts.randomness import Key, fold, jax_key, seed_key
from iclab.training.losses import LOSSES
from iclab.training.run import Run, Training

INIT_STREAM, DATA_STREAM = 1, 2
Probe = Callable[[Run, Any], Any]
"""`(run, params) -> a pytree of arrays`, recorded on the training schedule."""


class State(NamedTuple):
    """Everything that changes during training; enough to go on from."""

    params: Any
    optimizer: Any
    step: Int[Array, ""]


def begin(run: Run) -> State:
    """The state before the first step."""
    return starting_state(run.model, run.training, init_key(run.init_seed), run.prompts.dimension)


def init_key(init_seed: Any) -> Array:
    """The key of the starting weights, in JAX's form; one a seed."""
    return jax_key(fold(seed_key(init_seed), 0, INIT_STREAM))


def starting_state(model: Any, training: Training, key: Array, dimension: int) -> State:
    """The state before the first step, of a model that reads inputs of this dimension."""
    params = model.init(key, dimension)
    return State(params, training.transformation().init(params), jnp.uint32(0))


class Batch(NamedTuple):
    """What a training step reads of a batch of prompts."""

    columns: Float[Array, "batch tokens width"]
    label: Float[Array, batch *answer]


def batch_loss(run: Run, params: Any, batch: Batch) -> Float[Array, ""]:
    """Mean loss over a batch of prompts."""
    loss = LOSSES[run.training.loss]
    outputs, _ = jax.vmap(lambda columns: read(run.model, params, columns, run.prompts.dimension))(batch.columns)
    return jax.vmap(loss)(outputs, batch.label).mean()


def step_keys(data_seeds: Any, first: int, steps: int) -> Key:
    """The keys of `steps` batches: functions of the data seed and the step alone, so a resumed run sees the same data.

    Seeds of several runs give a row each.
    """
    return fold(seed_key(np.asarray(data_seeds)[..., None]), first + np.arange(steps), DATA_STREAM)


class Loop(NamedTuple):
    """What travels from step to step: the state, the batch that it reads next, the bits of the batch after that.

    What travels is written to memory once. Drawn where it is used, XLA would fuse the making of a token into each of
    its 31 coordinates and the making of the batch into every product that reads it.
    """

    state: State
    batch: Batch
    ahead: Any


AHEAD = 2
"""A step draws the bits of the batch that is read so many steps later."""


def make_batch(prompts: Any, embedding: Any, bits: Any) -> Batch:
    """The batch that some random bits determine, in the columns that this embedding makes."""
    drawn = prompts.prompts(bits)
    return Batch(jax.vmap(embedding.columns)(drawn), drawn.label)


def fill(prompts: Any, embedding: Any, batch_size: int, keys: Key) -> tuple[Batch, Any]:
    """The first batch and the bits of the second, by their keys."""
    # In one call: written twice they would be compiled twice.
    bits = jax.vmap(lambda key: prompts.bits(key, batch_size))(keys)
    here, ahead = (jax.tree.map(lambda words, i=i: words[i], bits) for i in range(AHEAD))
    return make_batch(prompts, embedding, here), ahead


def sgd_step(run: Run, state: State, batch: Batch) -> tuple[State, Float[Array, ""]]:
    """One gradient step (li2025mamba, algorithm 1)."""
    loss, gradient = jax.value_and_grad(lambda params: batch_loss(run, params, batch))(state.params)
    updates, optimizer = run.training.transformation().update(gradient, state.optimizer, state.params)
    return State(optax.apply_updates(state.params, updates), optimizer, state.step + 1), loss


def stretch(run: Run, loop: Loop, keys: Key) -> tuple[Loop, Float[Array, " steps"]]:
    """Take one step for each key, the key of a batch two steps ahead; also the loss of each."""
    return pipelined(run, partial(sgd_step, run), loop, keys)


def pipelined(source: Run, step: Callable[[State, Batch], tuple[State, Array]], loop: Loop, keys: Key
              ) -> tuple[Loop, Float[Array, "*runs steps"]]:
    """Scan `step` over the batches of `source`."""
    def body(loop: Loop, key: Key) -> tuple[Loop, Array]:
        state, loss = step(loop.state, loop.batch)
        batch = make_batch(source.prompts, reader(source.model, source.prompts.dimension), loop.ahead)
        return Loop(state, batch, source.prompts.bits(key, source.training.batch_size)), loss

    loop, losses = jax.lax.scan(body, loop, keys)
    return loop, jnp.moveaxis(losses, 0, -1)
