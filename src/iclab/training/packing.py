"""Which runs are trained together: those of one structure, cut into packs of a fixed width, the last one padded.

Runs that see the same prompts in the same order (equal prompts and data seed) draw them once for the pack: common
random numbers, for comparing settings. Where there are several devices, a pack is that many times wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iclab.core.spec import lower
from iclab.training.run import Run
from iclab.training.sgd import Learner, Setup, Source
from iclab.training.trained import Trained

WIDTH = 4
"""Most runs in a pack when each draws its own prompts: what fits a core's cache (benchmarks/ensemble_width.py)."""
SHARED_WIDTH = 16
"""Most runs in a pack that share their prompts; wider, because prompts are drawn once for all."""
WEIGHTS = 2**18
"""Most weights in a pack: a model as large as GPT-2 fills a core alone, and four of them would leave others idle."""


@dataclass(frozen=True)
class Pack:
    """Runs side by side in one program."""

    runs: tuple[Run, ...]
    starts: tuple[Trained | None, ...]
    members: tuple[int, ...]
    shared: bool
    shards: int

    @property
    def structure(self) -> Any:
        """What a compiled program depends on."""
        leaves, tree = jax.tree.flatten((self.learners(), self.source()))
        return tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves)

    @property
    def dimension(self) -> int:
        """Length of an input vector."""
        return self.runs[0].prompts.dimension

    def learners(self) -> Learner:
        """What programs read of each run except its prompts, stacked."""
        return stack([lower(Learner(run.model, run.training, run.init_seed)) for run in self.runs])

    def source(self) -> Source:
        """Where the prompts come from: one source for all runs that share it, else stacked."""
        sources = [lower(Source(run.prompts, run.data_seed)) for run in self.runs]
        return jax.tree.map(jnp.asarray, sources[0]) if self.shared else stack(sources)


def stack(trees: Sequence[Any]) -> Any:
    """Equal trees as one, their leaves stacked."""
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *trees)


def by_structure(runs: Sequence[Run], starts: Sequence[Trained | None]) -> list[list[int]]:
    """Indices of runs that one program can train, group by group."""
    groups: dict[Any, list[int]] = {}
    structures: dict[Any, Any] = {}
    for index, (run, start) in enumerate(zip(runs, starts, strict=True)):
        specs = id(run.model), id(run.training), id(run.prompts)  # the same objects in most runs that differ in seeds
        if specs not in structures:
            leaves, tree = jax.tree.flatten(Setup.of(run))
            structures[specs] = tree, tuple(np.shape(leaf) for leaf in leaves)
        begun = 0 if start is None else int(start.steps[-1])
        schedule = (run.training.steps, run.training.record_every, run.training.backend, begun)
        groups.setdefault((structures[specs], schedule), []).append(index)
    return list(groups.values())


def same_data(a: Run, b: Run) -> bool:
    """Whether two runs of one structure read the same batches: prompts, data seed, and how labels become columns."""
    if a.prompts is b.prompts and a.model.embedding is b.model.embedding:
        return a.data_seed == b.data_seed
    mine, yours = (jax.tree.leaves(lower((run.prompts, run.model.embedding, run.data_seed))) for run in (a, b))
    return all(np.array_equal(x, y) for x, y in zip(mine, yours, strict=True))


class Group(NamedTuple):
    """Runs that one program trains: their indices, whether they share their prompts, and how many make a pack."""

    members: list[int]
    shared: bool
    width: int
    """Runs in a pack on one device."""
    size: int
    """Runs in a pack on all devices."""


def groups(runs: Sequence[Run]) -> list[Group]:
    """How best to pack runs that are all to be trained."""
    packed = []
    for members in by_structure(runs, [None] * len(runs)):
        shared = shares_data(runs, members)
        width = width_for(len(members), best_width(runs[members[0]], shared))
        packed.append(Group(members, shared, width, width * shards_for(len(members))))
    return packed


def shares_data(runs: Sequence[Run], group: list[int]) -> bool:
    """Whether all runs of a group read the same batches."""
    return len(group) > 1 and all(same_data(runs[group[0]], runs[i]) for i in group[1:])


def best_width(run: Run, shared: bool) -> int:
    """Most runs like this one in a pack on one device."""
    params = jax.eval_shape(lambda key: run.model.init(key, run.prompts.dimension), jax.random.key(0))
    weights = sum(leaf.size for leaf in jax.tree.leaves(params))
    return max(1, min(SHARED_WIDTH if shared else WIDTH, WEIGHTS // max(weights, 1)))


def width_for(count: int, best: int) -> int:
    """How wide the packs of a group are: as few packs as the best width allows, and then evenly filled."""
    share = -(-count // shards_for(count))
    packs = -(-share // best)
    return -(-share // packs)


def shards_for(count: int) -> int:
    """Over how many devices a group of runs is spread."""
    return len(jax.devices()) if count >= len(jax.devices()) else 1


def cut_packs(runs: Sequence[Run], starts: Sequence[Trained | None], group: list[int], width: int, shared: bool
           ) -> list[Pack]:
    """A group in packs of `width` runs per device, the last one padded with copies of its last run."""
    packs, shards = [], shards_for(len(group))
    for start in range(0, len(group), width * shards):
        members = group[start:start + width * shards]
        members = members + [members[-1]] * (width * shards - len(members))
        packs.append(Pack(tuple(runs[i] for i in members), tuple(starts[i] for i in members), tuple(members), shared,
                           shards))
    return packs
