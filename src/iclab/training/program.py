"""The compiled training of a pack: one `vmap` of the training loop, split over the devices where there are several."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp

from iclab.core.parallel import Compiled
from iclab.models.forward import reader
from iclab.prompts.randomness import Key
from iclab.training.callbacks import Followers
from iclab.training.packing import Pack, stack
from iclab.training.records import Records, Snapshot
from iclab.training.run import Training
from iclab.training.sgd import (
    AHEAD,
    Learner,
    Loop,
    Probe,
    Setup,
    Source,
    State,
    first_batches,
    init_key,
    pipelined,
    sgd_step,
    starting_state,
    step_keys,
    stretch,
)
from iclab.training.trained import named

STRETCH = 50
"""Steps per call of a compiled program. The number is compiled into it, so most runs use the same."""


class Interrupted(Exception):
    """Another pack failed or the user stopped the work."""


class Stepper(ABC):
    """A pack of runs in training."""

    @abstractmethod
    def advance(self, done: int, length: int, stopped: Callable[[], bool]) -> tuple[Any, Any]:
        """Take `length` steps from step `done` on, unless `stopped()`: the losses of every run and step, and what the
        probe sees after the last."""

    @abstractmethod
    def state(self, done: int) -> State:
        """The runs as they are after step `done`, stacked."""


class PackProgram(ABC):
    """What trains packs of one structure."""

    def __init__(self, shared: bool, shards: int, probe: Probe | None):
        self.probe, self.shared, self.shards = probe, shared, shards
        self.compiled = Compiled()

    @abstractmethod
    def stepper(self, pack: Pack, state: State, done: int) -> Stepper:
        """The pack at a state, about to go on from step `done`."""

    @abstractmethod
    def call_length(self, training: Training, done: int, stops: bool = False) -> int:
        """Steps of the next call. `stops`: whether every record must end a call."""

    @abstractmethod
    def bytes(self, pack: Pack) -> int:
        """Memory that a pack needs while it is trained."""

    def start(self, pack: Pack) -> State:
        """Starting weights of all runs. Not one program: most models share its parts, which are compiled once."""
        model, training, init_seed = pack.learners()
        return jax.vmap(lambda model, training, key: starting_state(model, training, key, pack.dimension))(
            model, training, init_key(init_seed))

    def look(self, pack: Pack, state: State) -> Any:
        """What the probe sees of every run, by name."""
        args = pack.learners(), pack.source(), state.params
        return self.compiled.get("look", self.probed, *args)(*args)

    def probed(self, learners: Learner, source: Source, params: Any) -> Any:
        """`look` inside a program."""
        probe = self.probe
        if probe is None:
            return None
        look = jax.vmap(lambda learner, source, params: probe(Setup(*learner, *source), params),
                        in_axes=(0, None if self.shared else 0, 0))
        return named(look(learners, source, params))

    def train(self, pack: Pack, meter: Callable[[int], None], stopped: Callable[[], bool],
              recorded: Callable[[int, Snapshot], None] | None = None, followers: Followers | None = None
              ) -> Snapshot:
        """Train a pack, call by call; `meter(steps)` counts them, `recorded(index, snapshot)` gets every record, and
        `followers` hears of each after the call that made it: records need not end a call for that."""
        training, records = pack.runs[0].training, Records(pack)
        runs = len(set(pack.members))
        done = records.steps[-1] if records.steps else 0
        if done == 0:
            state = self.start(pack)
        else:
            meter(done * runs)
            state = stack([State(start.params, start.optimizer, jnp.uint32(done))
                           for start in pack.starts if start is not None])
        stepper = self.stepper(pack, state, done)
        while done < training.steps:
            if stopped():
                raise Interrupted
            length = self.call_length(training, done, recorded is not None)
            began = time.perf_counter()
            losses, seen = stepper.advance(done, length, stopped)
            speed = length / (time.perf_counter() - began)
            done += length
            for step, loss, probed in records.add(done, losses, seen):
                if followers is not None:
                    followers.recorded(pack.members, step, loss, probed, speed)
            meter(length * runs)
            if recorded is not None and records.complete:
                for member in dict.fromkeys(pack.members):
                    recorded(member, records.snapshot(stepper.state(done)))
        return records.snapshot(stepper.state(done))


class XlaStepper(Stepper):
    """A pack of runs and the batches drawn for their next steps."""

    def __init__(self, program: Program, pack: Pack, state: State, done: int):
        self.program, self.learners, self.source = program, pack.learners(), pack.source()
        self.loop = program.begin(pack, self.learners, self.source, state, done)

    def advance(self, done: int, length: int, stopped: Callable[[], bool]) -> tuple[Any, Any]:
        """One call of the compiled program, too short to be stopped."""
        keys = step_keys(self.source.data_seed, done + AHEAD, length)
        args = self.learners, self.source, keys, self.loop
        self.loop, losses, seen = self.program.program(*args)(*args)
        return jax.device_get(losses), seen

    def state(self, done: int) -> State:
        """The state that the loop carries."""
        return self.loop.state


class Program(PackProgram):
    """The compiled training of one structure and width: one `vmap` of the training loop."""

    def stepper(self, pack: Pack, state: State, done: int) -> XlaStepper:
        """The pack at a state, about to go on from step `done`."""
        return XlaStepper(self, pack, state, done)

    def advance(self, learners: Learner, source: Source, keys: Key, loop: Loop) -> tuple[Loop, Any, Any]:
        """One step of all runs per key, the losses of every step, and what the probe sees after the last."""
        if self.shared:
            loop, losses = _shared_stretch(learners, source, keys, loop)
        else:
            loop, losses = jax.vmap(lambda learner, source, keys, loop: stretch(Setup(*learner, *source), loop, keys))(
                learners, source, keys, loop)
        return loop, losses, self.probed(learners, source, loop.state.params)

    def program(self, learners: Learner, source: Source, keys: Key, loop: Any) -> Any:
        """`advance` compiled once per number of keys; over several devices each computes its share of the runs."""
        args = learners, source, keys, loop
        length = jax.tree.leaves(keys)[0].shape[-1]
        if self.shards == 1:
            return self.compiled.get(length, self.advance, *args)
        mesh = jax.make_mesh((self.shards,), ("runs",), axis_types=(jax.sharding.AxisType.Auto,))
        over_runs = jax.sharding.PartitionSpec("runs")
        of_prompts = jax.sharding.PartitionSpec() if self.shared else over_runs
        carried: Any = Loop(over_runs, of_prompts, of_prompts, of_prompts)  # type: ignore[arg-type]
        inputs, outputs = (over_runs, of_prompts, of_prompts, carried), (carried, over_runs, over_runs)
        split = jax.shard_map(self.advance, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=False)
        at = partial(jax.tree.map, lambda spec: jax.sharding.NamedSharding(mesh, spec))
        return self.compiled.get(length, split, *args, in_shardings=at(inputs), out_shardings=at(outputs))

    def begin(self, pack: Pack, learners: Learner, source: Source, state: State, done: int) -> Loop:
        """The loop before a step, with the batches already drawn at that point."""
        embedding = reader(learners.model, pack.dimension)
        if self.shared:
            embedding = jax.tree.map(lambda leaf: leaf[0], embedding)
        args = source.prompts, embedding, step_keys(source.data_seed, done, AHEAD)
        return Loop(state, *_drawing.of(_first_batches(pack.runs[0].training.batch_size, self.shared), *args)(*args))

    def bytes(self, pack: Pack) -> int:
        """Memory that a pack needs while it is trained, as the compiler reports it."""
        learners, source = pack.learners(), pack.source()
        loop = self.begin(pack, learners, source, self.start(pack), 0)
        keys = step_keys(source.data_seed, AHEAD, self.call_length(pack.runs[0].training, 0))
        used = self.program(learners, source, keys, loop).memory_analysis()
        return self.shards * (used.temp_size_in_bytes + used.argument_size_in_bytes + used.output_size_in_bytes)

    def call_length(self, training: Training, done: int, stops: bool = False) -> int:
        """Steps of the next call: up to the next record when something is read there, else up to the next multiple of
        `STRETCH`, which most schedules share. `stops`: whether every record must end a call."""
        every = training.record_every
        fits = self.probe is None and (every % STRETCH == 0 or (STRETCH % every == 0 and not stops))
        cut = STRETCH if fits else every
        return min(cut - done % cut, training.steps - done)


_drawing = Compiled()


@lru_cache(maxsize=64)
def _first_batches(batch_size: int, shared: bool) -> Any:
    """`first_batches` for all runs; the same program for all models that read prompts of one structure."""
    def batches(prompts: Any, embedding: Any, keys: Key) -> Any:
        return first_batches(prompts, embedding, batch_size, keys)

    return batches if shared else jax.vmap(batches)


def _shared_stretch(learners: Learner, source: Source, keys: Key, loop: Loop) -> tuple[Loop, Any]:
    """`stretch` for runs that read the same prompts: each batch is drawn once."""
    first: Learner = jax.tree.map(lambda leaf: leaf[0], learners)

    def step(state: State, columns: Any, label: Any) -> tuple[State, Any]:
        def one(learner: Learner, state: State) -> tuple[State, Any]:
            return sgd_step(Setup(*learner, *source), state, columns, label)

        return jax.vmap(one)(learners, state)

    return pipelined(Setup(*first, *source), step, loop, keys)
