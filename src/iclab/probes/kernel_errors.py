"""Error rates by the fused kernels: the same prompts and means as those of the compiled programs, sooner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from iclab.core.spec import lower
from iclab.kernels.fitting import kernel_pack, misfit
from iclab.prompts.prompt import Family
from iclab.prompts.randomness import Key
from iclab.training.fused import unsuited_machine
from iclab.training.run import Training
from iclab.training.trained import Trained


class Reading(NamedTuple):
    """A model that reads test prompts; a kernel takes it for a run."""

    model: Any
    prompts: Any
    training: Training


def kernels_can_read(models: Sequence[Trained], tests: Sequence[Family]) -> bool:
    """Whether the kernels can measure the errors of all models on all tests, and none is to be read by XLA."""
    if any(trained.run.training.backend == "xla" for trained in models):
        return False
    return not any(misfit(trained.run.model, test) for trained in models for test in tests) and not unsuited_machine()


def kernel_errors(models: Sequence[Trained], tests: Sequence[Family], keys: Key, batch: int
                  ) -> Float[np.ndarray, "models tests 2"]:
    """Mean error and mean hinge loss of every model on the batches of every test; all read the same prompts."""
    training, means = Training(batch_size=batch), np.empty((len(models), len(tests), 2))
    for together in _of_one_structure(models):
        first = models[together[0]].run.model
        params = [jax.tree.map(np.asarray, models[i].params) for i in together]
        for j, test in enumerate(tests):
            readings = [Reading(models[i].run.model, test, training) for i in together]
            totals = kernel_pack(first)(readings, params, shared=True).errors((keys.high, keys.low))
            means[together, j] = totals / (batch * len(keys.high))
    return means


def _of_one_structure(models: Sequence[Trained]) -> list[list[int]]:
    """Indices of models that can share their prompts in a kernel, group by group."""
    groups: dict[Any, list[int]] = {}
    for i, trained in enumerate(models):
        shapes = tuple(np.shape(leaf) for leaf in jax.tree.leaves(trained.params))
        norm = trained.run.model.embedding.norm
        groups.setdefault((jax.tree.structure(lower(trained.run.model)), shapes, norm), []).append(i)
    return list(groups.values())
