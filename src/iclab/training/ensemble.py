"""Many runs, few programs: runs that differ only in numbers are stacked and trained together.

Each pack (`iclab.training.packing`) is one `vmap` of the training loop, and packs run in threads, one a core. Where
there are several devices, each trains its share of a pack.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from iclab.errors import IclabError, SpecError, require
from iclab.models.forward import reader
from iclab.parallel import Compiled, default_workers, each
from iclab.prompts.randomness import Key
from iclab.specs import canonical, replace
from iclab.training.packing import (
    Pack,
    best_width,
    by_structure,
    cut_packs,
    run_of,
    shards_for,
    shares_data,
    stack,
)
from iclab.training.run import Run, Training
from iclab.training.sgd import (
    AHEAD,
    Batch,
    Loop,
    Probe,
    State,
    fill,
    init_key,
    pipelined,
    sgd_step,
    starting_state,
    step_keys,
    stretch,
)
from iclab.training.size import check_size
from iclab.training.trained import Trained, named

STRETCH = 50
"""Steps of one call of a compiled program: its length is part of it, so most runs take the same."""
Progress = Callable[[int, int], None]
"""`(steps done, steps in all)`, over all runs."""
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

    `finished(index, trained)` is called as soon as a run is done and `recorded(index, make)` at every record, the last
    among them, so that they can be kept; `starts` gives runs that were stopped earlier back. `width` fixes the number
    of runs in a pack on a device, `shared` whether packs draw their prompts once, `workers` the number of packs at
    work; `memory` bounds the bytes that they need together. Setting `stop` ends the work with `Interrupted`.
    """
    runs = list(runs)
    starts = [None] * len(runs) if starts is None else list(starts)
    for run, start in zip(runs, starts, strict=True):
        check_size(run)
        _check_start(run, start, probe)
    workers = workers or default_workers()
    share = None if memory is None else memory // workers
    packs = [pack for group in by_structure(runs, starts)
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


class Interrupted(Exception):
    """Another pack failed or the user stopped the work."""


class MemoryLimit(IclabError):
    """Not even one run fits into the memory allowed."""


def _fitting_packs(runs: Sequence[Run], starts: Sequence[Trained | None], group: list[int], width: int | None,
                   shared: bool | None, probe: Probe | None, memory: int | None) -> list[Pack]:
    """The packs of a group, narrowed until one needs at most `memory` bytes."""
    shared = shares_data(runs, group) if shared is None else shared
    width = width or best_width(runs[group[0]], shared)
    while True:
        packs = cut_packs(runs, starts, group, width, shared)
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
    width = -(-len(runs) // shards_for(len(runs)))
    pack = cut_packs(runs, [None] * len(runs), list(range(len(runs))), width, shared)[0]
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

    def advance(self, own: Any, source: Any, keys: Key, loop: Loop) -> tuple[Loop, Any, Any]:
        """One step of all runs for each key, the losses of every step, and what the probe sees then."""
        if self.shared:
            loop, loss = _shared_stretch(own, source, keys, loop)
        else:
            loop, loss = jax.vmap(lambda own, source, keys, loop: stretch(run_of(own, source), loop, keys))(
                own, source, keys, loop)
        if self.probe is None:
            return loop, loss, None
        look = jax.vmap(lambda own, source, params: self.probe(run_of(own, source), params), in_axes=(*self.axes, 0))
        return loop, loss, named(look(own, source, loop.state.params))

    def program(self, own: Any, source: Any, keys: Key, loop: Any) -> Any:
        """`advance` compiled once for each number of keys; over several devices each computes its share of the runs."""
        args = own, source, keys, loop
        length = jax.tree.leaves(keys)[0].shape[-1]
        if self.shards == 1:
            return self.compiled.get(length, self.advance, *args)
        mesh = jax.make_mesh((self.shards,), ("runs",), axis_types=(jax.sharding.AxisType.Auto,))
        over_runs = jax.sharding.PartitionSpec("runs")
        drawn = jax.sharding.PartitionSpec() if self.shared else over_runs
        travels: Any = Loop(over_runs, drawn, drawn)  # type: ignore[arg-type]
        specs, made = (over_runs, drawn, drawn, travels), (travels, over_runs, over_runs)
        split = jax.shard_map(self.advance, mesh=mesh, in_specs=specs, out_specs=made, check_vma=False)
        at = partial(jax.tree.map, lambda spec: jax.sharding.NamedSharding(mesh, spec))
        return self.compiled.get(length, split, *args, in_shardings=at(specs), out_shardings=at(made))

    def begin(self, pack: Pack, own: Any, source: Any, state: State, done: int) -> Loop:
        """The loop before a step, with the batches drawn that are on their way then."""
        prompts, seeds = source
        embedding = reader(own[0], pack.dimension)
        if self.shared:
            embedding = jax.tree.map(lambda leaf: leaf[0], embedding)
        args = prompts, embedding, step_keys(seeds, done, AHEAD)
        return Loop(state, *_fillers.of(_filler(pack.runs[0].training.batch_size, self.shared), *args)(*args))

    def bytes(self, pack: Pack) -> int:
        """Memory that a pack needs while it is trained, by the compiler's own account."""
        own, source = pack.parts()
        loop = self.begin(pack, own, source, _begin(own, pack.dimension), 0)
        keys = step_keys(source[1], AHEAD, self.call_length(pack.runs[0].training, 0))
        used = self.program(own, source, keys, loop).memory_analysis()
        return self.shards * (used.temp_size_in_bytes + used.argument_size_in_bytes + used.output_size_in_bytes)

    def call_length(self, training: Training, done: int, stops: bool = False) -> int:
        """Steps of the next call: up to the next record when something is looked at there, else up to the next whole
        `STRETCH`, which runs of most schedules share; `stops` is whether every record must end a call."""
        every = training.record_every
        fits = self.probe is None and (every % STRETCH == 0 or (STRETCH % every == 0 and not stops))
        cut = STRETCH if fits else every
        return min(cut - done % cut, training.steps - done)

    def train(self, pack: Pack, meter: _Meter, stopped: Callable[[], bool],
              recorded: Recorded | None = None) -> dict[int, Trained]:
        """Train a pack, call by call."""
        own, source = pack.parts()
        training, begun = pack.runs[0].training, pack.starts[0]
        steps: list[int] = [] if begun is None else [int(step) for step in begun.steps]
        records: list[Any] = []
        if begun is None:
            state = _begin(own, pack.dimension)
        else:
            meter.add(steps[-1] * len(set(pack.members)))
            state = stack([State(start.params, start.optimizer, jnp.uint32(steps[-1]))
                            for start in pack.starts if start is not None])
        done, every = steps[-1] if steps else 0, training.record_every
        losses = np.zeros((len(pack.runs), 0))
        loop = self.begin(pack, own, source, state, done)
        while done < training.steps:
            if stopped():
                raise Interrupted
            length = self.call_length(training, done, recorded is not None)
            keys = step_keys(source[1], done + AHEAD, length)
            loop, loss, probed = self.program(own, source, keys, loop)(own, source, keys, loop)
            done += length
            losses = np.concatenate([losses, np.asarray(loss)], axis=1)
            ends = [end for end in range(done - losses.shape[1] + 1, done + 1)
                    if end % every == 0 or end == training.steps]
            for end in ends:
                here, losses = np.split(losses, [losses.shape[1] - (done - end)], axis=1)
                steps.append(end)
                records.append((here.mean(axis=1), jax.tree.map(np.asarray, probed)))
            meter.add(length * len(set(pack.members)))
            if recorded is not None and losses.shape[1] == 0:
                for member in dict.fromkeys(pack.members):
                    now = partial(_unpack, pack, loop.state, tuple(steps), tuple(records))
                    recorded(member, lambda member=member, now=now: now()[member])
        return _unpack(pack, loop.state, steps, records)


_fillers = Compiled()


@lru_cache(maxsize=64)
def _filler(batch_size: int, shared: bool) -> Any:
    """`fill` for all runs; the same program for all models that read prompts of a structure."""
    def filled(prompts: Any, embedding: Any, keys: Key) -> Any:
        return fill(prompts, embedding, batch_size, keys)

    return filled if shared else jax.vmap(filled)


def _begin(own: Any, dimension: int) -> State:
    """Starting weights of all runs. Not one program: its parts are the same for most models and compiled once."""
    model, training, init_seed = own
    return jax.vmap(lambda model, training, key: starting_state(model, training, key, dimension))(
        model, training, init_key(init_seed))


@lru_cache(maxsize=64)
def _program(structure: Any, shared: bool, shards: int, probe: Probe | None) -> _Program:
    """The program of a structure, kept so that training the same shapes again compiles nothing."""
    return _Program(shared, shards, probe)


def _unpack(pack: Pack, state: State, steps: Sequence[int], records: Sequence[Any]) -> dict[int, Trained]:
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


def _shared_stretch(own: Any, source: Any, keys: Key, loop: Loop) -> tuple[Loop, Any]:
    """`stretch` for runs that read the same prompts: each batch is drawn once."""
    first = run_of(jax.tree.map(lambda leaf: leaf[0], own), source)

    def step(state: State, batch: Batch) -> tuple[State, Any]:
        return jax.vmap(lambda own, state: sgd_step(run_of(own, source), state, batch))(own, state)

    return pipelined(first, step, loop, keys)
