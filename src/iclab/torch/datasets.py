"""iclab's prompts as a PyTorch dataset: one item per training step, a whole batch of fresh prompts.

The batch of a step depends on the prompts' spec, the seed and the step only, so it is the batch that iclab's own
training reads at that step, whatever the number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import jax
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from torch.utils.data._utils.collate import default_collate_fn_map

from iclab.core.errors import SpecError, require
from iclab.core.limits import LARGEST
from iclab.prompts.prompt import Family, Prompt
from iclab.prompts.randomness import Key
from iclab.training.run import Run
from iclab.training.sgd import step_keys


class PromptBatch(NamedTuple):
    """A batch of prompts as tensors; the last token is the query, whose label is 0 in `y`."""

    x: Float[Tensor, "batch tokens dimension"]
    y: Float[Tensor, "batch tokens *size"]
    label: Tensor
    """The queries' true labels."""
    step: Int[Tensor, "batch tokens"] | None = None
    """Which step of its chain each token is; None where examples are not chains."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What a module reads: `module(*batch.inputs)`."""
        return (self.x, self.y) if self.step is None else (self.x, self.y, self.step)

    def to(self, *args: Any, **options: Any) -> PromptBatch:
        """The batch on another device."""
        step = None if self.step is None else self.step.to(*args, **options)
        x, y, label = (part.to(*args, **options) for part in (self.x, self.y, self.label))
        return PromptBatch(x, y, label, step)


def _refuse_to_collate(batches: Any, **_: Any) -> Any:
    """A `DataLoader` with a batch size would make a batch of batches."""
    raise SpecError("batch_size of the DataLoader must be None, since each item is a whole batch; write "
                    "iclab.torch.prompt_loader(dataset)")


default_collate_fn_map[PromptBatch] = _refuse_to_collate


def as_tensors(prompts: Prompt) -> PromptBatch:
    """The parts of a batch of prompts that a model reads, and its labels, as tensors."""
    return PromptBatch(tensor(prompts.x), tensor(prompts.y), tensor(prompts.label),
                       None if prompts.step is None else tensor(prompts.step))


def tensor(values: Any) -> Tensor:
    """A copy of an array as a tensor; whole numbers in PyTorch's usual type for classes and indices."""
    array = np.array(values)
    return torch.from_numpy(array.astype(np.int64) if array.dtype.kind in "iu" else array)


class PromptDataset(IterableDataset[PromptBatch]):
    """The batches of steps `first`, `first + 1`, ... up to `steps` (none: endless); each is drawn when it is read.

    Iterating again gives the same batches; for fresh ones go on with another `first` or `seed`. Of several processes
    that train one model, number `rank` of `ranks` reads every `ranks`-th batch. Batches are whole: use
    `DataLoader(dataset, batch_size=None)`, or `prompt_loader` for workers.
    """

    def __init__(self, prompts: Family, batch_size: int = 128, *, seed: int = 0, steps: int | None = None,
                 first: int = 0, rank: int = 0, ranks: int = 1):
        super().__init__()
        require(isinstance(prompts, Family), "prompts", type(prompts).__name__,
                "be a family of prompts (for a run: PromptDataset.of(run))")
        _require_whole("batch_size", batch_size, 1, LARGEST)
        _require_whole("seed", seed, 0, 2**32)
        _require_whole("first", first, 0, 2**32)
        _require_whole("steps", 0 if steps is None else steps, 0, 2**32)
        _require_whole("ranks", ranks, 1, LARGEST)
        _require_whole("rank", rank, 0, ranks)
        self.prompts, self.batch_size, self.seed, self.steps = prompts, batch_size, seed, steps
        self.first, self.rank, self.ranks = first, rank, ranks
        self._double = bool(jax.config.values["jax_enable_x64"])
        self._process = os.getpid()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A process that got the dataset by pickling has a JAX of its own; a fork never comes here."""
        self.__dict__ |= state | {"_process": os.getpid()}

    @classmethod
    def of(cls, run: Run, *, first: int = 0, rank: int = 0, ranks: int = 1) -> Self:
        """The batches that iclab reads to train this run."""
        return cls(run.prompts, run.training.batch_size, seed=run.data_seed, steps=run.training.steps, first=first,
                   rank=rank, ranks=ranks)

    def batch(self, step: int) -> PromptBatch:
        """The batch of a step."""
        if os.getpid() != self._process:
            raise SpecError("multiprocessing_context must be 'spawn', got 'fork', in which JAX would hang; "
                            "iclab.torch.prompt_loader(dataset, workers) sets it")
        high, low = step_keys(self.seed, step, 1)
        with jax.enable_x64(self._double):
            return as_tensors(self.prompts.sample(Key(high[0], low[0]), self.batch_size))

    def __iter__(self) -> Iterator[PromptBatch]:
        worker = get_worker_info()
        # PyTorch asks its workers in turn: one batch in `num_workers` each keeps the order of the steps.
        number, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        step = self.first + self.rank + self.ranks * number
        while self.steps is None or step < self.steps:
            yield self.batch(step)
            step += self.ranks * count

    def __len__(self) -> int:
        if self.steps is None:
            raise TypeError("a PromptDataset without steps is endless and has no length")
        return len(range(self.first + self.rank, self.steps, self.ranks))


def prompt_loader(dataset: PromptDataset, workers: int = 0, **options: Any) -> DataLoader[PromptBatch]:
    """A `DataLoader` of whole batches, drawn by `workers` processes (0: by this one); `options` are `DataLoader`'s."""
    context = "spawn" if workers else None  # JAX has threads, which a fork would not copy
    options = {"batch_size": None, "num_workers": workers, "multiprocessing_context": context, **options}
    return DataLoader(dataset, **options)


def _require_whole(field: str, value: Any, least: int, below: int) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    require(whole and least <= value < below, field, value, f"be a whole number in [{least}, {below:,})")
