"""The laboratory: what an entry trains and measures with. Everything is remembered by what it is computed from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from iclab.core.errors import IclabError, require
from iclab.core.identity import function_name
from iclab.core.spec import replace
from iclab.lab.entries import SCALES, Entry, Size
from iclab.probes import model_errors
from iclab.sweeps.engines import Tally, run_sweep
from iclab.sweeps.results import Results
from iclab.sweeps.store import Store, run_id
from iclab.sweeps.sweep import Sweep
from iclab.training import Run, Trained
from iclab.training.sgd import Probe
from iclab.training.trainer import Progress

SEARCH_SEEDS = 500
"""The first seed of searches; those that judge are below it."""


@dataclass
class Lab:
    """What an entry works with: the scale, the base seed, and a store that remembers finished work."""

    store: Store
    scale: str = "full"
    base_seed: int = 0
    progress: Progress | None = None
    entry: Entry | None = None
    """The entry at work."""
    runs: dict[str, Run] = field(default_factory=dict)
    """What it has trained or loaded, by id."""

    def __post_init__(self) -> None:
        require(self.scale in SCALES, "scale", self.scale, f"be one of {', '.join(SCALES)}")

    def at(self, entry: Entry) -> Lab:
        """The same laboratory with this entry at work."""
        return Lab(self.store, self.scale, self.base_seed, self.progress, entry)

    @property
    def size(self) -> Size:
        """How much the entry at work measures."""
        if self.entry is None or self.scale not in self.entry.sizes:
            name = "no entry" if self.entry is None else self.entry.id
            raise IclabError(f"sizes of {name} must have the scale {self.scale}")
        return self.entry.sizes[self.scale]

    def seeds(self, count: int | None = None) -> list[int]:
        """`count` seeds (those of the entry's size) that no other base seed and no search shares."""
        return [self.base_seed * 1000 + i for i in range(self.size.seeds if count is None else count)]

    def search_seeds(self, count: int) -> list[int]:
        """Seeds on which settings are chosen."""
        return [self.base_seed * 1000 + SEARCH_SEEDS + i for i in range(count)]

    def train(self, runs: Sequence[Run], probe: Probe | None = None) -> list[Trained]:
        """Train these runs or load them from the store; `probe` is recorded during training."""
        self.runs |= {str(run_id(run, probe)): run for run in runs}
        return self.store.train(runs, self.progress, probe)

    def train_seeds(self, run: Run, seeds: Sequence[int] | None = None, probe: Probe | None = None) -> list[Trained]:
        """The run trained with each of these seeds (the entry's), starting weights and data both."""
        return self.train(per_seed(run, self.seeds() if seeds is None else seeds), probe)

    def sweep(self, sweep: Sweep) -> Results:
        """Run a sweep or load its results from the store; a failed run raises an error."""
        def watch(tally: Tally) -> None:
            if self.progress is not None:
                self.progress(int(1000 * tally.work), 1000)

        results = run_sweep(sweep, store=self.store, watch=watch)
        failed = results.frame.filter(results.frame["status"] == "failed")
        if len(failed):
            raise IclabError(f"{sweep.name}: {len(failed)} trials failed, the first: {failed['reason'][0]}")
        self.runs |= {str(name): trial.run for name, trial in zip(results.frame["run"], results.trials, strict=True)}
        return results

    def errors(self, models: Sequence[Trained], tests: Sequence[Any], prompts: int | None = None, *,
               measure: str = "error") -> Float[np.ndarray, "models tests"]:
        """Error (or `hinge`) of every model on every test; each model draws its prompts with its own seed, so that
        models of one seed are compared on the same ones."""
        count = self.size.prompts if prompts is None else prompts
        seeds = [trained.run.init_seed for trained in models]
        return np.asarray(self.remember(model_errors, models, tests, count=count, seeds=seeds, measure=measure))

    def remember(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """`function(*args, **options)`, computed once for equal arguments; of trained models their weights count.

        It may return arrays, numbers and texts, in lists, tuples and dictionaries; tuples come back as lists.
        """
        arguments = _identity([list(args), options])
        stored = self.store.recall(function.__name__.strip("_"), [function_name(function).split("#")[0], arguments],
                                   _Packed(partial(function, *args, **options)))
        return _unpacked(stored)


class _Packed(partial):
    """A computation whose arrays are written as lists."""

    def __call__(self) -> Any:
        return _packed(super().__call__())


def _packed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _packed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_packed(item) for item in value]
    if isinstance(value, (np.ndarray, jax.Array)) and np.ndim(value):
        return {"array": np.asarray(value).tolist(), "shape": list(np.shape(value))}
    return value.item() if hasattr(value, "item") else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"array", "shape"}:
            return np.array(value["array"]).reshape(value["shape"])
        return {key: _unpacked(item) for key, item in value.items()}
    return [_unpacked(item) for item in value] if isinstance(value, list) else value


def _identity(value: Any) -> Any:
    """What a value is computed from: of a trained model its run and its weights."""
    if isinstance(value, Trained):
        return [value.run, [np.asarray(leaf) for leaf in jax.tree.leaves(value.params)]]
    if isinstance(value, Mapping):
        return {str(key): _identity(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not is_dataclass(value):
        return [_identity(item) for item in value]
    return value


def per_seed(run: Run, seeds: Sequence[int]) -> list[Run]:
    """The same run with each seed, for its starting weights and its data."""
    return [replace(run, init_seed=seed, data_seed=seed) for seed in seeds]


def crossed(run: Run, starts: Sequence[int], data: Sequence[int]) -> list[Run]:
    """The same run with every pair of a seed for its starting weights and one for its data, starts first."""
    return [replace(run, init_seed=start, data_seed=order) for start in starts for order in data]
