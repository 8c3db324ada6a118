"""The records of a training: the mean loss between two records, and what a probe returned at each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from iclab.training.packing import Pack
from iclab.training.sgd import State
from iclab.training.trained import Trained


class Records:
    """The records of a pack of runs that share a schedule."""

    def __init__(self, pack: Pack):
        self.pack, self.every, self.last = pack, pack.runs[0].training.record_every, pack.runs[0].training.steps
        start = pack.starts[0]
        self.steps: list[int] = [] if start is None else [int(step) for step in start.steps]
        self._rows: list[Any] = []
        self._since = np.zeros((len(pack.runs), 0))
        """Losses of the steps since the last record."""

    @property
    def complete(self) -> bool:
        """Whether the last step taken ended a record."""
        return self._since.shape[1] == 0

    def add(self, done: int, losses: Float[np.ndarray, "runs steps"], probed: Any) -> list[tuple[int, Any, Any]]:
        """Take in the losses of the steps up to `done`, and what the probe sees there; returns the records that this
        completes: step, loss of each run, what the probe sees."""
        before = len(self._rows)
        self._since = np.concatenate([self._since, losses], axis=1)
        for end in range(done - self._since.shape[1] + 1, done + 1):
            if end % self.every == 0 or end == self.last:
                mine, self._since = np.split(self._since, [self._since.shape[1] - (done - end)], axis=1)
                self.steps.append(end)
                self._rows.append((mine.mean(axis=1), jax.tree.map(np.asarray, probed)))
        fresh = self._rows[before:]
        return [(step, *row) for step, row in zip(self.steps[len(self.steps) - len(fresh):], fresh, strict=True)]

    def snapshot(self, state: State) -> Snapshot:
        """The runs as they are now; they are assembled only when read."""
        return Snapshot(self.pack, state, tuple(self.steps), tuple(self._rows))


class Snapshot:
    """A pack of runs at one of their records."""

    def __init__(self, pack: Pack, state: State, steps: Sequence[int], rows: Sequence[Any]):
        self.pack, self.state, self.steps, self.rows = pack, state, steps, rows

    def trained(self) -> dict[int, Trained]:
        """Every run of the pack, by its index; a resumed run keeps its earlier records."""
        state = jax.tree.map(np.asarray, self.state)
        loss, probes = jax.tree.map(lambda *rows: np.stack(rows), *self.rows) if self.rows else (None, None)
        runs = {}
        for i, (member, run, start) in enumerate(zip(self.pack.members, self.pack.runs, self.pack.starts,
                                                     strict=True)):
            my_loss = np.zeros(0) if loss is None else loss[:, i]
            my_probes = None if probes is None else {name: rows[:, i] for name, rows in probes.items()}
            if start is not None:
                my_loss = np.concatenate([start.loss, my_loss])
                my_probes = _joined(start.probes, my_probes)
            params, optimizer = jax.tree.map(lambda leaf, i=i: leaf[i], (state.params, state.optimizer))
            runs[member] = Trained(run, params, optimizer, np.array(self.steps), my_loss, my_probes)
        return runs


def _joined(before: dict[str, np.ndarray] | None, after: dict[str, np.ndarray] | None) -> dict[str, np.ndarray] | None:
    """The rows of a probe before and after a run was resumed."""
    if before is None or after is None:
        return before if after is None else after
    return {name: np.concatenate([before[name], rows]) for name, rows in after.items()}
