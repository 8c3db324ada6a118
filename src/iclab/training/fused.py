"""Training by the fused kernels: which runs they train, and a pack of them, call by call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import numpy as np

from iclab.core.errors import SpecError
from iclab.kernels.fitting import kernel_pack, numba_fault, training_misfit
from iclab.training.packing import Pack
from iclab.training.program import Interrupted, PackProgram, Stepper
from iclab.training.run import BACKENDS, Run, Training
from iclab.training.sgd import State, begin_each, step_keys
from iclab.training.size import batch_bytes

AT_ONCE = 2**29
"""Bytes of prompts (which are never stored) that a kernel reads before it looks whether it is to stop: a fraction of a
second."""
SOME = 50
"""Steps of a call at least, where every step is a record and nobody reads it before the end."""


def backend_of(run: Run) -> str:
    """What trains a run here: `fused` where it and the machine allow it, unless the run says `xla`."""
    if run.training.backend == "xla":
        return "xla"
    reason = training_misfit(run.model, run.prompts, run.training)
    if not reason and numba_fault():
        _say_slow(numba_fault())
    reason = reason or unsuited_machine()
    if reason and run.training.backend == "fused":
        raise SpecError(f"training.backend must be one of {', '.join(b for b in BACKENDS if b != 'fused')} here, got "
                        f"'fused': a fused run must {reason}")
    return "xla" if reason else "fused"


@cache
def _say_slow(fault: str) -> None:
    """Warn, once, that trainings take longer than they could."""
    logging.getLogger("iclab").warning("iclab: training without the fused kernels, several times slower: they must %s",
                                       fault)


def unsuited_machine() -> str:
    """Why this machine or process cannot use kernels, as a rule that it breaks."""
    if jax.default_backend() != "cpu" or len(jax.devices()) > 1:
        return "be on one CPU device"
    if jax.config.values["jax_enable_x64"]:
        return "be in single precision"
    return numba_fault()


class FusedProgram(PackProgram):
    """The training of a pack by its kernel."""

    def start(self, pack: Pack) -> State:
        """Starting weights, whose last digits do not depend on the width of the pack."""
        return _stacked(begin_each(pack.runs))

    def stepper(self, pack: Pack, state: State, done: int) -> FusedStepper:
        """The pack at a state, about to go on from step `done`."""
        return FusedStepper(self, pack, state)

    def call_length(self, training: Training, done: int, stops: bool = False) -> int:
        """Steps of the next call: up to the next record that is read, and not too many."""
        every = training.record_every
        cut = every if self.probe is not None or stops else every * -(-SOME // every)
        return min(cut - done % cut, training.steps - done)

    def bytes(self, pack: Pack) -> int:
        """Memory that a pack needs while it is trained."""
        arrays = jax.tree.leaves(vars(self.stepper(pack, self.start(pack), 0).kernel))
        return sum(leaf.nbytes for leaf in arrays if isinstance(leaf, np.ndarray))


class FusedStepper(Stepper):
    """A pack of runs in training; copies that pad the pack are not trained."""

    def __init__(self, program: FusedProgram, pack: Pack, state: State):
        self.program, self.pack = program, pack
        members = list(dict.fromkeys(pack.members))
        self.trained = [pack.members.index(member) for member in members]
        self.copies = [members.index(member) for member in pack.members]
        self.optimizer, runs = state.optimizer, [pack.runs[i] for i in self.trained]
        params = [jax.tree.map(lambda leaf, i=i: np.asarray(leaf[i]), state.params) for i in self.trained]
        self.kernel = kernel_pack(runs[0].model)(runs, params, pack.shared)
        first = runs[0]
        self.seeds = np.array(first.data_seed if pack.shared else [run.data_seed for run in runs])
        self.most = max(1, AT_ONCE // (len(runs) * batch_bytes(first)))

    def advance(self, done: int, length: int, stopped: Callable[[], bool]) -> tuple[np.ndarray, Any]:
        """Take `length` steps from step `done` on: their losses, and what the probe sees after the last."""
        parts = []
        for first in range(done, done + length, self.most):
            if stopped():
                raise Interrupted
            parts.append(self.kernel.advance(step_keys(self.seeds, first, min(self.most, done + length - first))))
        losses = np.concatenate(parts, axis=1)[self.copies]
        return losses, None if self.program.probe is None else self.program.look(self.pack, self.state(done + length))

    def state(self, done: int) -> State:
        """The runs as they are now, stacked."""
        params = self.kernel.params()
        steps: Any = np.full(len(self.copies), done, np.uint32)
        return State(_stacked([params[i] for i in self.copies]), self.optimizer, steps)


def _stacked(trees: Sequence[Any]) -> Any:
    """Equal trees as one, their leaves stacked, in NumPy."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)
