"""Runs, tests and measurements of `mamba.tasks`: training on a few shifts, tests on tasks of every shift.

Shift k pairs every pattern with the k-th next one; a family is trained on the tasks of U shifts.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.papers.mamba.settings import attacked_prompts, one_layer_run, training_prompts
from iclab.prompts import Classification
from iclab.training import Run, Trained

LARGEST_SHIFT = 6
SCALES, FRACTION = (1.0, 3.0), 0.5
"""Scales over that of training, and the fraction, of the outliers with which unseen tasks are tested."""


class Family(NamedTuple):
    """What Mamba, trained on one family, does on tasks of every shift and on all."""

    M1: int
    U: int
    shifts: Float[np.ndarray, "seeds shifts"]
    """Errors on tasks of shift 1, 2, ..."""
    error: Float[np.ndarray, " seeds"]
    """Mean over all tasks."""
    unseen: Float[np.ndarray, " seeds"]
    """Mean over the tasks outside the family."""
    hinge: Float[np.ndarray, " seeds"]
    """Mean hinge loss over all tasks, on prompts of the training distribution."""
    scores: Float[np.ndarray, "seeds shifts"]
    """Entries of W_B^T W_C over its diagonal, by shift."""
    prompts: int
    entries: Float[np.ndarray, "seeds matrices shifts"] | None = None
    """Entries of W_B and of W_C over their diagonals, by shift."""
    attacked: Float[np.ndarray, "seeds scales"] | None = None
    """Mean errors over all tasks with outliers, at `SCALES`."""

    @property
    def name(self) -> str:
        """Its M1 and U."""
        return f"M1 {self.M1}, U {self.U}"


class Study(NamedTuple):
    """All families; and those of M1 6, U = 1 by batch size, and by T and delta."""

    families: list[Family]
    batches: dict[int, Family]
    starts: dict[tuple[int, float], Family]
    short: Mapping[int, Float[np.ndarray, "seeds matrices shifts"]] = MappingProxyType({})
    """Entries of W_B and W_C after T_M steps on one shift, by M1."""
    all_tasks: Float[np.ndarray, "seeds scales"] | None = None
    """Errors with outliers of a model that was trained on all tasks."""

    @property
    def least(self) -> list[Family]:
        """The families of one shift."""
        return [of for of in self.families if of.U == 1]


def a_run(M1: int, U: int, steps: int, delta: float = 0.2, batch: int = 128) -> Run:
    """Mamba trained on a family; with more patterns in a larger space."""
    run = one_layer_run("mamba", steps)
    return replace(run, model=replace(run.model, init_scale=delta),
                   prompts=training_prompts(U, relevant_patterns=M1, dimension=max(30, M1 + 20)),
                   training=replace(run.training, batch_size=batch))


def shift_tasks(M1: int, shift: int) -> tuple[tuple[int, int], ...]:
    """All tasks that pair a pattern with the `shift`-th next one."""
    return tuple((j, (j + shift) % M1) for j in range(M1))


def shifts_of(M1: int) -> range:
    """Shifts that are measured; shift M1 - k holds the reversed tasks of shift k."""
    return range(1, min(M1 // 2, LARGEST_SHIFT) + 1)


def test_of(run: Run, tasks: str | tuple[tuple[int, int], ...]) -> Classification:
    """Test prompts without outliers."""
    return replace(run.prompts, outlier_fraction=0.0, irrelevant_scale=1.2, tasks=tasks)


def tests_of(run: Run, U: int) -> list[Classification]:
    """All tasks, those outside the family, and those of every shift."""
    M1 = run.prompts.relevant_patterns
    return [test_of(run, "all"), test_of(run, f"unseen:{U}"),
            *(test_of(run, shift_tasks(M1, k)) for k in shifts_of(M1))]


def attacks() -> list[Classification]:
    """All tasks with outliers, at every scale."""
    return [attacked_prompts("flip", FRACTION, scale) for scale in SCALES]


def scores_by_shift(trained: Trained) -> Float[np.ndarray, " shifts"]:
    """Mean entries of W_B^T W_C between a pattern and the k-th next one, over the mean of the diagonal."""
    layer = trained.params[0]
    return by_shift(np.asarray(layer.W_B).T @ np.asarray(layer.W_C), trained.run.prompts.relevant_patterns)


def entries_by_shift(trained: Trained) -> Float[np.ndarray, "matrices shifts"]:
    """The same of W_B and of W_C alone."""
    layer, M1 = trained.params[0], trained.run.prompts.relevant_patterns
    return np.stack([by_shift(np.asarray(W), M1) for W in (layer.W_B, layer.W_C)])


def by_shift(W: Float[np.ndarray, "rows columns"], M1: int) -> Float[np.ndarray, " shifts"]:
    """Mean entries of a matrix between a pattern and the k-th next one, over the mean of its diagonal."""
    square, at = W[:M1, :M1], np.arange(M1)
    return np.array([square[at, (at + k) % M1].mean() for k in shifts_of(M1)]) / np.diag(square).mean()
