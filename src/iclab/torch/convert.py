"""Trained runs to PyTorch modules and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from torch import nn

from iclab.core.errors import SpecError, not_a, require
from iclab.core.identity import canonical
from iclab.models.forward import reader
from iclab.torch.chain_module import ChainAttentionModule
from iclab.torch.gated_module import GatedAttentionModule
from iclab.torch.gpt2_module import GPT2Module
from iclab.torch.module import PromptModule, as_numpy
from iclab.torch.softmax_module import SoftmaxMLPModule
from iclab.training import Run, Trained
from iclab.training.sgd import Setup, batch_loss, begin, draw_columns, step_keys

MODULES: dict[type, type[PromptModule]] = {cls.spec_type: cls for cls in (GatedAttentionModule, SoftmaxMLPModule,
                                                                          GPT2Module, ChainAttentionModule)}


def to_torch(source: Trained | Run) -> PromptModule:
    """The model of a trained run as a PyTorch module with the same weights; of a run, with its starting weights."""
    if not isinstance(source, Trained | Run):
        own = "iclab.torch.predictor(module) measures a module of your own" if isinstance(source, nn.Module) else ""
        raise not_a("source", source, "a trained run or a Run", own)
    run, params = (source.run, source.params) if isinstance(source, Trained) else (source, begin(source).params)
    kind = type(run.model)
    require(kind in MODULES, "model", kind.__name__,
            f"be one of {', '.join(cls.__name__ for cls in MODULES)}, or be written by you as an nn.Module")
    module = MODULES[kind](run.model, run.prompts.dimension, params=as_numpy(params))
    module.origin = source
    return module


def from_torch(module: nn.Module, run: Run | None = None, *, losses: Sequence[float] | None = None) -> Trained:
    """A module made by `to_torch` as a trained run, for attacks, probes and checkpoints.

    `run` says how it was trained; none is the run that it was made from. `losses` are those of the steps taken, from
    the first one on, and become the records; without them the only record holds the loss of one fresh batch. A module
    whose weights are those it was made from gives back that very run. Weights are in JAX's present precision;
    the optimizer starts afresh.
    """
    module = getattr(module, "_orig_mod", module)  # what torch.compile wraps
    if not isinstance(module, PromptModule):
        raise SpecError(f"module must be made by iclab.torch.to_torch, got {type(module).__name__}; measure a module "
                        "of your own as iclab.torch.predictor(module)")
    if run is None:
        require(module.origin is not None, "run", None, "be given for a module that to_torch did not make")
        run = module.origin.run if isinstance(module.origin, Trained) else module.origin
        assert run is not None
    _check_spec(module, run)
    precision = np.float64 if jax.config.values["jax_enable_x64"] else np.float32
    params = jax.tree.map(lambda leaf: np.asarray(leaf, precision), module.weights())
    origin = module.origin
    if isinstance(origin, Trained) and losses is None and _same_run(origin.run, run) and _equal(origin.params, params):
        return origin
    steps, loss = _fresh_loss(run, params) if losses is None else _records(run, losses)
    optimizer = as_numpy(run.training.transformation().init(params))
    return Trained(run, params, optimizer, steps, loss)


def _check_spec(module: PromptModule, run: Run) -> None:
    """The run must be one of this very model."""
    require(type(run.model) is type(module.model), "run.model", type(run.model).__name__,
            f"be a {type(module.model).__name__}, as the module is")
    for field in dataclasses.fields(module.model):
        mine, asked = getattr(module.model, field.name), getattr(run.model, field.name)
        require(mine == asked, f"run.model.{field.name}", asked, f"be {mine!r}, as in the module")
    require(run.prompts.dimension == module.dimension, "run.prompts.dimension", run.prompts.dimension,
            f"be {module.dimension}, as in the module")


def _same_run(a: Run, b: Run) -> bool:
    return a is b or canonical(a) == canonical(b)


def _equal(a: Any, b: Any) -> bool:
    return all(x.dtype == y.dtype and np.array_equal(x, y)
               for x, y in zip(jax.tree.leaves(as_numpy(a)), jax.tree.leaves(b), strict=True))


def _records(run: Run, losses: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Steps and mean losses of the records that iclab's own training would have made."""
    each = np.asarray([float(loss) for loss in losses])
    count, every = len(each), run.training.record_every
    require(1 <= count <= run.training.steps, "losses", f"{count} of them",
            f"be one per step, up to training.steps = {run.training.steps}")
    ends = np.unique([*range(every, count + 1, every), count])
    return ends, np.array([part.mean() for part in np.split(each, ends[:-1])], np.float32)


def _fresh_loss(run: Run, params: Any) -> tuple[np.ndarray, np.ndarray]:
    """One record at the last step: the loss of the batch that the next step would read."""
    setup, batch_size = Setup.of(run), run.training.batch_size

    @jax.jit
    def loss(params: Any, key: Any) -> Any:
        embedding = reader(setup.model, run.prompts.dimension)
        columns, label = draw_columns(setup.prompts, embedding, setup.prompts.bits(key, batch_size))
        return batch_loss(setup, params, columns, label)

    key = jax.tree.map(lambda words: words[0], step_keys(run.data_seed, run.training.steps, 1))
    return np.array([run.training.steps]), np.array([loss(params, key)])
