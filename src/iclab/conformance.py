"""Check that a model or a family of prompts, including your own, does what all of them must do.

    check_model(KernelVote())                       # shapes, gradients, batches, checkpoints, bad values
    check_prompts(Halfspaces())                     # shapes, seeds, independence, bad values

A broken rule raises a `ConformanceError` that names it; silence means that all are kept. The checks compile programs
and take some ten seconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from iclab.core.errors import IclabError, SpecError
from iclab.core.parse import hint_of, kinds
from iclab.core.spec import lower, replace
from iclab.models import forward
from iclab.models.protocol import Model
from iclab.prompts.labels import LabelKind, require_answers, require_labels
from iclab.prompts.prompt import Family, Prompt
from iclab.prompts.randomness import as_key
from iclab.training import Run, Training, load_checkpoint, save_checkpoint, train
from iclab.training.losses import LOSSES
from iclab.training.matching import prompts_for

BATCH = 6
NO_SUCH_WORD = "no such word"
EXACT = 1e-9
"""Largest relative difference, in double precision, of numbers that must agree."""
SLOPE = 1e-4
"""Largest relative difference, in double precision, of a gradient from a difference quotient."""


class ConformanceError(IclabError):
    """A model or a family of prompts breaks a rule."""


def _must(holds: bool, rule: str) -> None:
    if not holds:
        raise ConformanceError(rule)


def _obeyed(rule: Callable[[], None]) -> None:
    """A rule that other parts of the package enforce in their own name."""
    try:
        rule()
    except SpecError as error:
        raise ConformanceError(str(error)) from None


def check_model(model: Model, prompts: Family | None = None, folder: Any = None) -> None:
    """Check a model on prompts (by default the first family it reads); with `folder`, also save and load a
    checkpoint there. It returns nothing: a broken rule raises a `ConformanceError`."""
    prompts = prompts_for(model) if prompts is None else prompts
    labels = prompts.labels
    with jax.enable_x64(True):
        batch, lowered = prompts.sample(0, BATCH), lower(model)
        _obeyed(lambda: require_labels(labels, batch.label))
        params = lowered.init(jax.random.key(0), prompts.dimension)
        _check_start(lowered, params, prompts.dimension)
        _check_outputs(lowered, params, batch, labels)
        _check_gradient(lowered, params, batch, labels)
    check_values(model)
    run = Run(model=model, prompts=prompts, training=Training(steps=2, batch_size=BATCH, learning_rate=1e-3,
                                                              loss=labels.losses[0], record_every=1))
    trained = train(run)
    _must(bool(np.isfinite(trained.loss).all()), "two steps of training must have finite losses")
    if folder is not None:
        _check_checkpoint(trained, folder)


def check_prompts(prompts: Family) -> None:
    """Check a family of prompts. It returns nothing: a broken rule raises a `ConformanceError`."""
    length, dimension = prompts.prompt_length, prompts.dimension
    batch = prompts.sample(0, BATCH)
    for name in ("x", "y", "label"):
        field = np.asarray(getattr(batch, name))
        _must(field.shape[:1] == (BATCH,), f"{name} must have one row per prompt of a batch")
        _must(bool(np.isfinite(field).all()), f"{name} must be finite")
    _must(batch.x.shape[2] == dimension, f"inputs must have length dimension = {dimension}, got {batch.x.shape[2]}")
    _must(bool((np.asarray(batch.y)[:, -1] == 0).all()), "the query's label must be 0 where a model reads it")
    if prompts.labels.name != "step":
        _must(batch.x.shape[1] == length + 1, f"a prompt must have prompt_length + 1 = {length + 1} tokens")
    _obeyed(lambda: require_labels(prompts.labels, batch.label))
    again, other = prompts.sample(0, BATCH), prompts.sample(1, BATCH)
    _must(_equal(batch, again), "equal seeds must draw equal prompts")
    _must(not _equal(batch, other), "different seeds must draw different prompts")
    _check_independence(prompts)
    check_values(prompts)


def check_values(spec: Any) -> None:
    """A spec must refuse NaN and unknown words."""
    for field in dataclasses.fields(spec):
        allowed = kinds(hint_of(spec, field.name))
        bad: list[Any] = [float("nan")] if float in allowed else []
        bad += [NO_SUCH_WORD] if str in allowed else []
        for value in bad:
            try:
                replace(spec, **{field.name: value})
            except IclabError:
                continue
            raise ConformanceError(f"{type(spec).__name__} must refuse {field.name} = {value!r} in its `check`")


def _check_start(model: Any, params: Any, dimension: int) -> None:
    leaves = jax.tree.leaves(params)
    _must(len(leaves) > 0, "init must make weights")
    _must(all(bool(jnp.isfinite(leaf).all()) for leaf in leaves), "starting weights must be finite")
    other = model.init(jax.random.key(1), dimension)
    _must(jax.tree.map(jnp.shape, params) == jax.tree.map(jnp.shape, other), "every seed must start with equal shapes")


def _check_outputs(model: Any, params: Any, batch: Prompt, labels: LabelKind) -> None:
    outputs = jax.jit(jax.vmap(lambda prompt: forward(model, params, prompt)[0]))(batch)
    _obeyed(lambda: require_answers(labels, outputs.shape, batch.label))
    alone = jax.jit(lambda prompt: forward(model, params, prompt)[0])
    one_by_one = jnp.stack([alone(jax.tree.map(lambda field, i=i: field[i], batch)) for i in range(BATCH)])
    _must(bool(jnp.allclose(outputs, one_by_one, rtol=EXACT, atol=EXACT)),
          "a batch must give what its prompts give one by one")


def _check_gradient(model: Any, params: Any, batch: Prompt, labels: LabelKind) -> None:
    """The slope along a random direction is that of a difference quotient."""
    # A smooth loss: at the hinge's corner a difference quotient is not a derivative.
    loss = LOSSES["squared" if "squared" in labels.losses else labels.losses[0]]

    @jax.jit
    @jax.value_and_grad
    def loss_and_gradient(params: Any) -> Any:
        return jax.vmap(lambda prompt: loss(forward(model, params, prompt)[0], prompt.label))(batch).mean()

    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(2), len(leaves))
    # Away from the start, where many gradients are 0.
    leaves = [leaf + 0.05 * jax.random.normal(key, leaf.shape) for leaf, key in zip(leaves, keys, strict=True)]
    direction = jax.tree.unflatten(tree, [jax.random.normal(key, leaf.shape) for leaf, key in
                                          zip(leaves, keys[::-1], strict=True)])
    point = jax.tree.unflatten(tree, leaves)
    _, gradient = loss_and_gradient(point)
    _must(all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(gradient)), "gradients must be finite")
    slope = sum(jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(gradient), jax.tree.leaves(direction), strict=True))
    step = 1e-5
    ends = [loss_and_gradient(jax.tree.map(lambda w, d, s=s: w + s * step * d, point, direction))[0] for s in (1, -1)]
    quotient = (ends[0] - ends[1]) / (2 * step)
    _must(bool(abs(slope - quotient) <= SLOPE * max(abs(slope), abs(quotient), 1e-3)),
          f"the gradient must be that of the loss: its slope along a direction is {float(slope):.6g}, a difference "
          f"quotient {float(quotient):.6g}")


def _check_checkpoint(trained: Any, folder: Any) -> None:
    path = f"{folder}/conformance.safetensors"
    save_checkpoint(path, trained)
    _must(_equal(load_checkpoint(path).params, trained.params), "a checkpoint must give back the weights")


def _check_independence(prompts: Any) -> None:
    """A prompt must not change with the randomness of the others in its batch."""
    sampler = lower(prompts)
    mine, others = (sampler.bits(as_key(seed), BATCH) for seed in (0, 1))
    mixed = jax.tree.map(lambda a, b: jnp.concatenate([jnp.asarray(a)[:1], jnp.asarray(b)[1:]]), mine, others)
    alone, among = (jax.tree.map(lambda field: np.asarray(field)[0], sampler.prompts(bits)) for bits in (mine, mixed))
    _must(_equal(alone, among), "a prompt must be a function of its own randomness, not of its neighbours'")


def _equal(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
