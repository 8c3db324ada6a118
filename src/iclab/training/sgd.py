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
    label: Float[Array, " batch"]


def batch_loss(run: Run, params: Any, batch: Batch) -> Float[Array, ""]:
    """Mean loss over a batch of prompts."""
    loss = LOSSES[run.training.loss]
    outputs, _ = jax.vmap(run.model.apply, in_axes=(None, 0))(params, batch.columns)
    return jax.vmap(loss)(outputs, batch.label).mean()


def step_keys(data_seeds: Any, first: int, steps: int) -> Key:
    """The keys of `steps` batches: functions of the data seed and the step alone, so a resumed run sees the same data.

    Seeds of several runs give a row each.
    """
    return fold(seed_key(np.asarray(data_seeds)[..., None]), first + np.arange(steps), DATA_STREAM)


def make_batch(run: Run, bits: Any) -> Batch:
    """The batch that some random bits determine, as the model reads it."""
    prompts = run.prompts.prompts(bits)
    return Batch(jax.vmap(run.model.embedding.columns)(prompts.x, prompts.y), prompts.label)


def sgd_step(run: Run, state: State, batch: Batch) -> tuple[State, Float[Array, ""]]:
    """One gradient step (li2025mamba, algorithm 1)."""
    loss, gradient = jax.value_and_grad(lambda params: batch_loss(run, params, batch))(state.params)
    updates, optimizer = run.training.transformation().update(gradient, state.optimizer, state.params)
    return State(optax.apply_updates(state.params, updates), optimizer, state.step + 1), loss


def stretch(run: Run, state: State, keys: Key) -> tuple[State, Float[Array, " steps"]]:
    """Take one step for each key; also the loss of each."""
    return pipelined(run, partial(sgd_step, run), state, keys)


def pipelined(source: Run, step: Callable[[State, Batch], tuple[State, Array]], state: State, keys: Key
              ) -> tuple[State, Float[Array, "*runs steps"]]:
    """Scan `step` over the batches of `source`: bits are drawn two steps ahead, the batch made of them one step ahead.

    What travels in the loop's carry is written to memory once. Drawn where it is used, XLA would fuse the making of a
    token into each of its 31 coordinates and the making of the batch into every product that reads it.
    """

    def bits(key: Key) -> Any:
        return source.prompts.bits(key, source.training.batch_size)

    def body(carry: tuple[State, Batch, Any], key: Key) -> tuple[tuple[State, Batch, Any], Array]:
        state, batch, ahead = carry
        state, loss = step(state, batch)
        return (state, make_batch(source, ahead), bits(key)), loss

    # The first two batches' bits in one call: written twice they would be compiled twice.
    first_two = jax.tree.map(lambda words: words[jnp.arange(2) % words.shape[0]], keys)
    here, ahead = (jax.tree.map(lambda words, i=i: words[i], jax.vmap(bits)(first_two)) for i in (0, 1))
    start = (state, make_batch(source, here), ahead)
    two_ahead = jax.tree.map(lambda words: jnp.roll(words, -2), keys)
    (state, _, _), losses = jax.lax.scan(body, start, two_ahead)
    return state, jnp.moveaxis(losses, 0, -1)
