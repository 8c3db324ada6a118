"""Looks by the fused kernels: on the same prompts, and so with the same means as in compiled programs, sooner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from iclab.core.spec import lower
from iclab.kernels.fitting import kernel_pack, misfit
from iclab.models import GatedAttention
from iclab.probes.looks import Look, Shown
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
    """Whether the kernels can let all models read all tests, and none is to be read by XLA."""
    if any(trained.run.training.backend == "xla" for trained in models):
        return False
    return not any(misfit(trained.run.model, test) for trained in models for test in tests) and not unsuited_machine()


def kernel_averages(look: Look, models: Sequence[Trained], tests: Sequence[Family], keys: Sequence[Key], batch: int
                    ) -> Float[np.ndarray, "models tests *values"]:
    """Mean of a look over the batches of every test, for every model, those of one entry of `keys` looked at together;
    all models read the same prompts."""
    training = Training(batch_size=batch)
    totals: dict[tuple[int, int], np.ndarray] = {}
    for together in _of_one_structure(models):
        model = models[together[0]].run.model
        params = [jax.tree.map(np.asarray, models[i].params) for i in together]
        for j, test in enumerate(tests):
            pack = kernel_pack(model)([Reading(models[i].run.model, test, training) for i in together], params, True)
            for shown in _shown(pack, look, keys):
                for i, mine in zip(together, shown, strict=True):
                    totals[i, j] = totals.get((i, j), np.zeros(())) + np.asarray(look.means(mine))
    return np.stack([np.stack([totals[i, j] / len(keys) for j in range(len(tests))]) for i in range(len(models))])


def _shown(pack: Any, look: Look, keys: Sequence[Key]) -> Iterator[list[Shown]]:
    """What each run of a pack shows of the batches of each entry of `keys`, as one."""
    if look.inside:
        # One by one: what is inside takes memory.
        for words in keys:
            yield _inside(pack.trace(words, inside=True), pack.tokens, type(pack.runs[0].model) is GatedAttention)
        return
    trace = pack.trace(tuple(np.concatenate(words) for words in zip(*keys, strict=True)), look.lengths)
    for label, outputs in zip(*(np.split(field, len(keys)) for field in (trace.label, trace.outputs)), strict=True):
        by_run = np.moveaxis(outputs, 0, 2).reshape(*outputs.shape[1:3], -1)
        yield [Shown(mine if look.lengths else mine[0], label.reshape(-1)) for mine in by_run]


def _inside(trace: Any, tokens: int, gated: bool) -> list[Shown]:
    """What each run of a trace shows."""
    truth = [field.reshape(-1, tokens) for field in (trace.pattern, trace.outlier)]
    scores, gates = (np.moveaxis(field, 1, 0).reshape(field.shape[1], -1, 1, tokens)
                     for field in (trace.scores, trace.gates))
    return [Shown(trace.outputs[:, r].reshape(-1), trace.label.reshape(-1), scores[r], gates[r] if gated else None,
                  *truth) for r in range(len(scores))]


def _of_one_structure(models: Sequence[Trained]) -> list[list[int]]:
    """Indices of models that can share their prompts in a kernel, group by group."""
    groups: dict[Any, list[int]] = {}
    for i, trained in enumerate(models):
        shapes = tuple(np.shape(leaf) for leaf in jax.tree.leaves(trained.params))
        norm = trained.run.model.embedding.norm
        groups.setdefault((jax.tree.structure(lower(trained.run.model)), shapes, norm), []).append(i)
    return list(groups.values())
