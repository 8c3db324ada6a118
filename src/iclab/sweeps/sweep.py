"""What a sweep is: a base run, values for some of its fields, seeds, a test, and what to measure."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iclab.core import registry
from iclab.core.errors import SpecError, require
from iclab.core.identity import canonical, function_name
from iclab.core.limits import MOST_PROMPTS
from iclab.core.parse import flat, hint_of, is_number, kinds, with_fields
from iclab.core.spec import replace
from iclab.probes.chains import check_test
from iclab.probes.error_rate import TEST_BATCH
from iclab.sweeps.measures import MEASURES, OF_CHAINS, OF_KIND, applies
from iclab.sweeps.sources import Untraceable
from iclab.sweeps.store import key, run_id
from iclab.sweeps.tracing import trace
from iclab.sweeps.versions import code_version, modules_of
from iclab.training import Run

RESEED = {"both": ("init_seed", "data_seed"), "init": ("init_seed",), "data": ("data_seed",)}
TEST = "test."
USUAL = ("error", "hinge", "loss", "floor")
"""Measured by default; those that do not apply to a family are left out."""
MOST_TRIALS = 1_000_000
"""Default limit on the trials of a sweep."""


@dataclass(frozen=True)
class Draws:
    """Random values: `count` points, each field uniform between two ends (log-uniform with `log`) or from choices."""

    fields: Mapping[str, Any]
    """By path: `(low, high)`, `(low, high, "log")`, or a list of choices."""
    count: int
    seed: int = 0

    def points(self, base: Run, test: Any) -> list[dict[str, Any]]:
        """The random points, with integers for integer fields."""
        require(is_whole(self.count, 1), "random.count", self.count, "be a whole number >= 1")
        require(is_whole(self.seed, 0), "random.seed", self.seed, "be a whole number >= 0")
        require(len(self.fields) > 0, "random", {}, "name at least one field")
        rng = np.random.default_rng(self.seed)
        values_by_path = {path: self._draw(path, ends, rng, base, test) for path, ends in self.fields.items()}
        return [{path: values[i] for path, values in values_by_path.items()} for i in range(self.count)]

    def _draw(self, path: str, ends: Any, rng: np.random.Generator, base: Run, test: Any) -> list[Any]:
        if isinstance(ends, list):
            require(len(ends) > 0, f"random.{path}", ends, "have at least one choice")
            return [ends[i] for i in rng.integers(len(ends), size=self.count)]
        rule = "be two ends low < high (above 0 for log), or a list of choices"
        good = isinstance(ends, tuple) and len(ends) in (2, 3) and all(
            is_number(end) and np.isfinite(end) for end in ends[:2])
        require(good and ends[0] < ends[1] and ends[2:] in ((), ("log",), ("linear",)), f"random.{path}", ends, rule)
        low, high = ends[:2]
        log = ends[2:] == ("log",)
        require(not log or low > 0, f"random.{path}", ends, rule)
        require(np.isfinite(float(high) - float(low)), f"random.{path}", ends, "be ends whose distance is finite")
        hint = hint_of(test, path.removeprefix(TEST)) if path.startswith(TEST) else hint_of(base, path)
        whole = int in kinds(hint) and float not in kinds(hint)
        require(not whole or (is_whole(low, 0) and is_whole(high, 0)), f"random.{path}", ends,
                "have whole numbers for ends")
        if whole and not log:
            return [int(value) for value in rng.integers(low, high, endpoint=True, size=self.count)]
        values = np.exp(rng.uniform(np.log(low), np.log(high), self.count)) if log else \
            rng.uniform(low, high, self.count)
        return [round(float(value)) if whole else float(value) for value in values]


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number >= `least`; booleans are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= least)


@dataclass(frozen=True)
class Trial:
    """One measurement: a run, its test, and its point in the sweep."""

    point: dict[str, Any]
    seed: int
    run: Run
    test: Any

    def id(self, measure: Sequence[Any], prompts: int) -> str | None:
        """Hash of everything that determines the measured values; None if any of the code cannot be traced."""
        trained_id = run_id(self.run)
        try:
            words = trace(self.code(measure)).words
        except Untraceable:
            return None
        if trained_id is None:
            return None
        names = [function_name(name) if callable(name) else name for name in measure]
        version = code_version("iclab.sweeps.measures", *modules_of(self.test))
        return key(trained_id, canonical(self.test), str(self.seed), str(prompts), *names, *words, version)

    def code(self, measure: Sequence[Any]) -> list[Any]:
        """The parts that may contain user code."""
        return [self.run, self.test, *(name for name in measure if callable(name))]

    def fields(self) -> dict[str, Any]:
        """Every field of the run and the test by its path, as plain values."""
        return flat(self.run) | {f"{TEST}kind": registry.word(type(self.test))} | flat(self.test, TEST)


@dataclass(frozen=True)
class Sweep:
    """Many runs from one base: every combination of `grid`, for every entry of `settings` and every random draw.

    Fields are named by their paths: `model.member`, `prompts.outlier_scale`, `training.steps`, `test.label_rule`.
    """

    base: Run = field(default_factory=Run)
    """The run that all others modify."""
    test: Any = field(default_factory=dict)
    """Test prompts: a spec, or changes to the run's training prompts."""
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values by path; every combination is run."""
    settings: Sequence[Mapping[str, Any]] = ()
    """Points listed explicitly, each as values by path."""
    random: Draws | None = None
    """Points drawn at random."""
    seeds: int | Sequence[int] = 1
    """How many seeds, or which; each point is run with each."""
    reseed: str = "both"
    """What a seed sets: both (starting weights and data), init, or data."""
    measure: Sequence[str | Callable[..., Any]] = USUAL
    """Names of `MEASURES`, or functions (trained, test, seed) -> a number or a dictionary of numbers."""
    prompts: int = 4000
    """Test prompts per trial, rounded up to a multiple of 500."""
    name: str = "sweep"
    """Name of the results."""
    max_trials: int = MOST_TRIALS
    """Larger sweeps are refused before any trial is created."""

    def __post_init__(self) -> None:
        require(self.reseed in list(RESEED), "reseed", self.reseed, f"be one of {', '.join(RESEED)}")
        require(is_whole(self.prompts, 1), "test_prompts", self.prompts, "be a whole number >= 1")
        require(self.prompts <= MOST_PROMPTS, "test_prompts", self.prompts, f"be at most {MOST_PROMPTS:,}")
        object.__setattr__(self, "prompts", -(-self.prompts // TEST_BATCH) * TEST_BATCH)
        named = isinstance(self.name, str) and re.fullmatch(r"[\w][\w .+-]{,59}", self.name) is not None
        require(named, "name", self.name,
                "be at most 60 letters, digits, spaces and . _ + - only, and begin with a letter or digit")
        require(not isinstance(self.measure, str), "measure", self.measure, "be a list")
        for name in self.measure:
            require(callable(name) or name in MEASURES, "measure", name,
                    f"be one of {', '.join(MEASURES)} or a function")
        require(len(self.measure) > 0, "measure", list(self.measure), "name at least one quantity")
        for path, values in self.grid.items():
            listed = (isinstance(values, Sequence) and not isinstance(values, str)) or isinstance(values, np.ndarray)
            require(listed and len(values) > 0, f"grid.{path}", values, "be a list of at least one value")
        require(is_whole(self.max_trials, 1), "max_trials", self.max_trials, "be a whole number >= 1")
        counts = self._counts()
        require(math.prod(counts.values()) <= self.max_trials, "trials",
                " x ".join(f"{count:,} {name}" if count < 10**15 else f"10^15 {name} and more"
                           for name, count in counts.items()),
                f"be at most {self.max_trials:,} (max_trials allows more)")
        for path, values in self.grid.items():
            plain = [value for value in values if isinstance(value, (bool, int, float, str))]
            require(len(set(plain)) == len(plain), f"grid.{path}", values, "have every value once")

    def _counts(self) -> dict[str, int]:
        """How many values each part of the sweep has; invalid counts are refused where they are read."""
        draws = self.random.count if self.random is not None else 1
        seeds: Any = len(self.seeds) if isinstance(self.seeds, Sized) else self.seeds
        counts = {"values of " + path: len(values) for path, values in self.grid.items()}
        counts |= {"settings": len(self.settings), "random points": draws, "seeds": seeds}
        return {name: int(count) for name, count in counts.items() if is_whole(count, 2)}

    def seed_list(self) -> list[int]:
        """The seeds."""
        rule = "be a whole number >= 1 or a list of different whole numbers in [0, 2^32)"
        if isinstance(self.seeds, (bool, float, str)) or is_whole(self.seeds, -(2**62)):
            require(is_whole(self.seeds, 1), "seeds", self.seeds, rule)
            return list(range(int(self.seeds)))  # type: ignore[arg-type]
        seeds = list(self.seeds)  # type: ignore[arg-type]
        good = all(is_whole(seed, 0) and seed < 2**32 for seed in seeds)
        require(good and len(seeds) > 0 and len(set(seeds)) == len(seeds), "seeds", self.seeds, rule)
        return [int(seed) for seed in seeds]

    @property
    def axes(self) -> list[str]:
        """The swept fields, those of settings first."""
        named = [path for point in self.settings for path in point]
        random_paths = list(self.random.fields) if self.random is not None else []
        return list(dict.fromkeys([*named, *random_paths, *self.grid]))

    def points(self) -> Iterator[dict[str, Any]]:
        """Every combination of values, by path."""
        test = self.test if not isinstance(self.test, Mapping) else self.base.prompts
        random_points = [{}] if self.random is None else self.random.points(self.base, test)
        listed = [dict(point) for point in self.settings] or [{}]
        crossed = [dict(zip(self.grid, values, strict=True)) for values in itertools.product(*self.grid.values())]
        for parts in itertools.product(listed, random_points, crossed):
            point: dict[str, Any] = {}
            for values in parts:
                for path, value in values.items():
                    if path in point:
                        raise SpecError(f"{path} must be swept once, got it in two of list, random and grid")
                    point[path] = value
            yield point

    def trials(self) -> list[Trial]:
        """Every trial; all specs are checked before anything runs."""
        seeds, trials = self.seed_list(), []
        for point in self.points():
            if clash := [path for path in point if path in RESEED[self.reseed]]:
                raise SpecError(f"{clash[0]} is set by the sweep's seeds; give reseed = "
                                f"{'data' if clash[0] == 'init_seed' else 'init'!r} to sweep it")
            run, test = self.place(point)
            trials += [Trial(point, seed, replace(run, **dict.fromkeys(RESEED[self.reseed], seed)), test)
                       for seed in seeds]
        return trials

    def place(self, point: Mapping[str, Any]) -> tuple[Run, Any]:
        """The run and the test at a point, before seeds are set."""
        run = with_fields(self.base, {k: v for k, v in point.items() if not k.startswith(TEST)})
        given = self.test if isinstance(self.test, Mapping) else {}
        changes = {k.removeprefix(TEST): v for k, v in point.items() if k.startswith(TEST)}
        start = run.prompts if isinstance(self.test, Mapping) else self.test
        test = with_fields(start, {**given, **changes}, TEST)
        kind = test.labels.name
        for name in self.measure:
            require(callable(name) or name in OF_KIND[kind], "measure", name,
                    f"be a function, or for labels of kind {kind} one of {', '.join(OF_KIND[kind])}")
            # A sweep file without measures passes the defaults explicitly, so compare values.
            require(applies(name, test) or tuple(self.measure) == USUAL, "measure", name,
                    f"be a quantity that {type(test).__name__} prompts have")
        if any(name in OF_CHAINS for name in self.measure):
            check_test(run, test)
        require(test.dimension == run.prompts.dimension, "test.dimension", test.dimension,
                f"be that of the training prompts, {run.prompts.dimension}")
        return run, test

    def run(self, store: Any = None, **options: Any) -> Any:
        """Run the sweep (`iclab.sweeps.engines.run_sweep`) and return its results."""
        from iclab.sweeps.engines import run_sweep

        return run_sweep(self, store=store, **options)

