"""Many runs, few programs: runs that differ only in numbers are stacked and trained together.

Runs of one structure are cut into packs of a fixed width (the last one padded), each pack is one `vmap` of the
training loop, and packs run in threads, one a core. Runs that see the same prompts in the same order (equal prompts
and data seed) draw them once for the pack: common random numbers, for comparing settings. Where there are several
devices, a pack is that many times wider and each device trains its share.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from iclab.errors import IclabError, SpecError, require
from iclab.parallel import Compiled, cores, each
from iclab.specs import canonical, replace
from iclab.training.run import Run
from iclab.training.sgd import Batch, Probe, State, begin, pipelined, sgd_step, step_keys, stretch

WIDTH = 4
"""Runs in a pack with prompts of their own: what fits a core's cache (benchmarks/ensemble_width.py)."""
SHARED_WIDTH = 16
"""Runs in a pack that share their prompts; wider, because drawing is paid once for all."""


Progress = Callable[[int, int], None]
"""`(steps done, steps in all)`, over all runs."""


@dataclass(frozen=True)
class Trained:
    """A finished run."""

    run: Run
    params: Any
    optimizer: Any
    steps: np.ndarray
    """Step number of each record."""
    loss: np.ndarray
    """Mean training loss over the steps of each record."""
    probes: dict[str, np.ndarray] | None = None
    """What the probe returned at each record, by name, stacked along the first axis."""

    @property
    def status(self) -> str:
        """`trained`, or `diverged at step N` when the loss or a weight stopped being a number."""
        bad = ~np.isfinite(self.loss)
        if bad.any():
            return f"diverged at step {int(self.steps[np.argmax(bad)])}"
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(self.params)):
            return f"diverged at step {int(self.steps[-1])}"
        return "trained"

    def predict(self, prompts: Any) -> np.ndarray:
        """Scores of a batch of prompts: a trained run is a predictor."""
        return np.asarray(_scores(self.run.model, self.params, prompts))

    def look(self, prompts: Any) -> tuple[np.ndarray, Any]:
        """Scores and the model's named intermediates for a batch of prompts."""
        return jax.tree.map(np.asarray, _outputs(self.run.model, self.params, prompts))

    __call__ = predict


@jax.jit
def _outputs(model: Any, params: Any, prompts: Any) -> Any:
    return jax.vmap(model, in_axes=(None, 0))(params, prompts)


@jax.jit
def _scores(model: Any, params: Any, prompts: Any) -> Any:
    return jax.vmap(model, in_axes=(None, 0))(params, prompts)[0]


Recorded = Callable[[int, Callable[[], Trained]], None]
"""`(index, make)`: at a record of a run; `make()` gives it as it stands, should it be kept."""


def train(run: Run, *, start: Trained | None = None, probe: Probe | None = None, progress: Progress | None = None,
          recorded: Recorded | None = None) -> Trained:
    """Train one model, from the beginning or from where `start` (the same run, stopped earlier) ended."""
    return train_many([run], starts=[start], probe=probe, progress=progress, recorded=recorded, width=1)[0]


def train_many(runs: Sequence[Run], *, starts: Sequence[Trained | None] | None = None, probe: Probe | None = None,
               progress: Progress | None = None, finished: Callable[[int, Trained], None] | None = None,
               recorded: Recorded | None = None, width: int | None = None, shared: bool | None = None,
               workers: int | None = None, memory: int | None = None, stop: threading.Event | None = None
               ) -> list[Trained]:
    """Train many models; the result of each is that of training it alone.

    `finished(index, trained)` is called as soon as a run is done and `recorded(index, make)` at every record on the
    way, so that they can be kept; `starts` gives runs that were stopped earlier back. `width` fixes the number of runs
    in a pack on a device, `shared` whether packs draw their prompts once, `workers` the number of packs at work;
    `memory` bounds the bytes that they need together. Setting `stop` ends the work with `Interrupted`.
    """
    runs = list(runs)
    starts = [None] * len(runs) if starts is None else list(starts)
    for run, start in zip(runs, starts, strict=True):
        _check_start(run, start, probe)
    workers = workers or (cores() if len(jax.devices()) == 1 else 1)
    share = None if memory is None else memory // workers
    packs = [pack for group in _by_structure(runs, starts)
             for pack in _fitting_packs(runs, starts, group, width, shared, probe, share)]
    meter = _Meter(sum(runs[i].training.steps for pack in packs for i in set(pack.members)), progress)
    programs = [_program(pack.structure, pack.shared, pack.shards, probe) for pack in packs]
    results: list[Trained | None] = [None] * len(runs)
    failed = threading.Event()

    def stopped() -> bool:
        return failed.is_set() or (stop is not None and stop.is_set())

    def work(number: int) -> dict[int, Trained]:
        return programs[number].train(packs[number], meter, stopped, recorded)

    for _, done in each(work, range(len(packs)), workers, failed):
        for member, trained in done.items():
            results[member] = trained
            if finished is not None:
                finished(member, trained)
    return results  # type: ignore[return-value]


def _check_start(run: Run, start: Trained | None, probe: Probe | None) -> None:
    if start is None:
        return
    more = run.training.steps > int(start.steps[-1])
    if more and (probe is None) != (start.probes is None):
        raise SpecError("probe must be given for a start that has records of it, and only then")
    double = any(np.asarray(leaf).dtype == np.float64 for leaf in jax.tree.leaves(start.params))
    require(double == bool(jax.config.values["jax_enable_x64"]), "start", "another", "have the precision now in use")
    training = replace(run.training, steps=start.run.training.steps)
    if canonical(replace(run, training=training)) != canonical(start.run):
        raise SpecError("start must be the same run stopped earlier, got one whose spec differs in more than steps")
    require(int(start.steps[-1]) <= run.training.steps, "steps", run.training.steps,
            f"be at least the {int(start.steps[-1])} steps already taken")


def named(tree: Any) -> dict[str, Any]:
    """The leaves of a pytree by their paths; a bare array is called `value`."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/") or "value": leaf for path, leaf in leaves}


class Interrupted(Exception):
    """Another pack failed or the user stopped the work."""


class MemoryLimit(IclabError):
    """Not even one run fits into the memory allowed."""


@dataclass(frozen=True)
class _Pack:
    runs: tuple[Run, ...]
    starts: tuple[Trained | None, ...]
    members: tuple[int, ...]
    shared: bool
    shards: int

    @property
    def structure(self) -> Any:
        """What a compiled program depends on."""
        leaves, tree = jax.tree.flatten(self.parts())
        return tree, tuple((leaf.shape, leaf.dtype) for leaf in leaves)

    def parts(self) -> tuple[Any, Any]:
        """What each run has of its own, stacked; and where the prompts come from, stacked unless it is shared."""
        # The number of steps steers the loop from outside; runs of any length share a program.
        own = _stack([(run.model, replace(run.training, steps=1), run.init_seed) for run in self.runs])
        sources = [(run.prompts, run.data_seed) for run in self.runs]
        return own, jax.tree.map(jnp.asarray, sources[0]) if self.shared else _stack(sources)


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves)), *trees)


def _run(own: Any, source: Any) -> Run:
    model, training, init_seed = own
    prompts, data_seed = source
    return Run(model=model, prompts=prompts, training=training, init_seed=init_seed, data_seed=data_seed)


def _by_structure(runs: Sequence[Run], starts: Sequence[Trained | None]) -> list[list[int]]:
    groups: dict[Any, list[int]] = {}
    for index, (run, start) in enumerate(zip(runs, starts, strict=True)):
        shapes = tuple(np.shape(leaf) for leaf in jax.tree.leaves(run))
        begun = 0 if start is None else int(start.steps[-1])
        groups.setdefault((jax.tree.structure(run), shapes, begun), []).append(index)
    return list(groups.values())


def _same_data(a: Run, b: Run) -> bool:
    """Whether two runs of one structure read the same batches: prompts, data seed, and how labels become columns."""
    mine, yours = (jax.tree.leaves((run.prompts, run.model.embedding, run.data_seed)) for run in (a, b))
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
    """How `train_many` would pack these runs."""
    found = []
    for members in _by_structure(runs, [None] * len(runs)):
        shared = _shares_data(runs, members)
        width = SHARED_WIDTH if shared else WIDTH
        found.append(Group(members, shared, width, width * _shards(len(members))))
    return found


def _shares_data(runs: Sequence[Run], group: list[int]) -> bool:
    return len(group) > 1 and all(_same_data(runs[group[0]], runs[i]) for i in group[1:])


def _shards(count: int) -> int:
    """Over how many devices a group of runs is spread."""
    return len(jax.devices()) if count >= len(jax.devices()) else 1


def _packs(runs: Sequence[Run], starts: Sequence[Trained | None], group: list[int], width: int, shared: bool
           ) -> list[_Pack]:
    packs, shards = [], _shards(len(group))
    for start in range(0, len(group), width * shards):
        members = group[start:start + width * shards]
        members = members + [members[-1]] * (width * shards - len(members))
        packs.append(_Pack(tuple(runs[i] for i in members), tuple(starts[i] for i in members), tuple(members), shared,
                           shards))
    return packs


def _fitting_packs(runs: Sequence[Run], starts: Sequence[Trained | None], group: list[int], width: int | None,
                   shared: bool | None, probe: Probe | None, memory: int | None) -> list[_Pack]:
    """The packs of a group, narrowed until one needs at most `memory` bytes."""
    shared = _shares_data(runs, group) if shared is None else shared
    width = width or (SHARED_WIDTH if shared else WIDTH)
    while True:
        packs = _packs(runs, starts, group, width, shared)
        if memory is None:
            return packs
        needed = _program(packs[0].structure, shared, packs[0].shards, probe).bytes(packs[0])
        if needed <= memory:
            return packs
        if width == 1:
            raise MemoryLimit(f"memory must allow {needed / 2**20:.1f} MiB for each pack at work, got "
                              f"{memory / 2**20:.1f} MiB")
        width = max(1, min(width - 1, width * memory // needed))


def pack_bytes(runs: Sequence[Run], shared: bool) -> int:
    """Bytes that the compiled program for a pack of these runs needs (compiles it)."""
    pack = _packs(runs, [None] * len(runs), list(range(len(runs))), -(-len(runs) // _shards(len(runs))), shared)[0]
    return _program(pack.structure, shared, pack.shards, None).bytes(pack)


class _Meter:
    def __init__(self, total: int, progress: Progress | None):
        self.done, self.total, self.progress, self.lock = 0, total, progress, threading.Lock()

    def add(self, steps: int) -> None:
        with self.lock:
            self.done += steps
            if self.progress is not None:
                self.progress(self.done, self.total)


class _Program:
    """The compiled training of one structure and width."""

    def __init__(self, shared: bool, shards: int, probe: Probe | None):
        self.probe, self.shared, self.shards = probe, shared, shards
        self.axes = (0, None if shared else 0)
        self.compiled = Compiled()

    def begin(self, own: Any, source: Any) -> State:
        """Starting weights of all runs."""
        return jax.vmap(lambda own, source: begin(_run(own, source)), in_axes=self.axes)(own, source)

    def advance(self, steps: int, own: Any, source: Any, state: State) -> tuple[State, Any, Any]:
        """`steps` steps of all runs, their mean losses, and what the probe sees then."""
        if self.shared:
            state, loss = _shared_stretch(own, source, state, steps)
        else:
            state, loss = jax.vmap(lambda own, source, state: stretch(_run(own, source), state, steps))(
                own, source, state)
        if self.probe is None:
            return state, loss, None
        look = jax.vmap(lambda own, source, params: self.probe(_run(own, source), params), in_axes=(*self.axes, 0))
        return state, loss, named(look(own, source, state.params))

    def program(self, name: Any, function: Callable[..., Any], *args: Any) -> Any:
        """A function of (own, source, ...) compiled once; over several devices each computes its share of the runs."""
        if self.shards == 1:
            return self.compiled.get(name, function, *args)
        mesh = jax.make_mesh((self.shards,), ("runs",), axis_types=(jax.sharding.AxisType.Auto,))
        over_runs = jax.sharding.PartitionSpec("runs")
        specs = (over_runs, jax.sharding.PartitionSpec() if self.shared else over_runs, *[over_runs] * (len(args) - 2))
        split = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=over_runs, check_vma=False)
        placed = [jax.sharding.NamedSharding(mesh, spec) for spec in specs]
        return self.compiled.get(name, split, *args, in_shardings=tuple(placed), out_shardings=placed[0])

    def bytes(self, pack: _Pack) -> int:
        """Memory that a pack needs while it is trained, by the compiler's own account."""
        own, source = pack.parts()
        length = min(pack.runs[0].training.record_every, pack.runs[0].training.steps)
        state = jax.eval_shape(self.begin, own, source)
        used = self.program(length, partial(self.advance, length), own, source, state).memory_analysis()
        return self.shards * (used.temp_size_in_bytes + used.argument_size_in_bytes + used.output_size_in_bytes)

    def train(self, pack: _Pack, meter: _Meter, stopped: Callable[[], bool],
              recorded: Recorded | None = None) -> dict[int, Trained]:
        """Train a pack, stretch by stretch."""
        own, source = pack.parts()
        training, begun = pack.runs[0].training, pack.starts[0]
        steps: list[int] = [] if begun is None else [int(step) for step in begun.steps]
        records: list[Any] = []
        if begun is None:
            state = self.program("begin", self.begin, own, source)(own, source)
        else:
            meter.add(steps[-1] * len(set(pack.members)))
            state = _stack([State(start.params, start.optimizer, jnp.uint32(steps[-1]))
                            for start in pack.starts if start is not None])
        while (done := steps[-1] if steps else 0) < training.steps:
            if stopped():
                raise Interrupted
            length = min(training.record_every - done % training.record_every, training.steps - done)
            program = self.program(length, partial(self.advance, length), own, source, state)
            state, loss, probed = program(own, source, state)
            steps.append(done + length)
            records.append(jax.tree.map(np.asarray, (loss, probed)))
            meter.add(length * len(set(pack.members)))
            if recorded is not None and steps[-1] < training.steps:
                for member in dict.fromkeys(pack.members):
                    now = partial(_unpack, pack, state, tuple(steps), tuple(records))
                    recorded(member, lambda member=member, now=now: now()[member])
        return _unpack(pack, state, steps, records)


@lru_cache(maxsize=64)
def _program(structure: Any, shared: bool, shards: int, probe: Probe | None) -> _Program:
    """The program of a structure, kept so that training the same shapes again compiles nothing."""
    return _Program(shared, shards, probe)


def _unpack(pack: _Pack, state: State, steps: Sequence[int], records: Sequence[Any]) -> dict[int, Trained]:
    """The finished runs of a pack; a run that went on from a start keeps the start's records."""
    state = jax.tree.map(np.asarray, state)
    loss, probes = jax.tree.map(lambda *rows: np.stack(rows), *records) if records else (None, None)
    finished = {}
    for i, (member, run, start) in enumerate(zip(pack.members, pack.runs, pack.starts, strict=True)):
        def mine(tree: Any, i: int = i) -> Any:
            return jax.tree.map(lambda leaf: leaf[i], tree)

        my_loss = np.zeros(0) if loss is None else loss[:, i]
        my_probes = None if probes is None else {name: rows[:, i] for name, rows in probes.items()}
        if start is not None:
            my_loss = np.concatenate([start.loss, my_loss])
            if my_probes is None:
                my_probes = start.probes
            elif start.probes is not None:
                my_probes = {name: np.concatenate([start.probes[name], rows]) for name, rows in my_probes.items()}
        finished[member] = Trained(run, mine(state.params), mine(state.optimizer), np.array(steps), my_loss, my_probes)
    return finished


def _shared_stretch(own: Any, source: Any, state: State, steps: int) -> tuple[State, Any]:
    """`stretch` for runs that read the same prompts: each batch is drawn once."""
    first = _run(jax.tree.map(lambda leaf: leaf[0], own), source)

    def step(state: State, batch: Batch) -> tuple[State, Any]:
        return jax.vmap(lambda own, state: sgd_step(_run(own, source), state, batch))(own, state)

    return pipelined(first, step, state, step_keys(first, state.step[0], steps))
