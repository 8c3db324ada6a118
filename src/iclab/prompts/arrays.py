"""Prompts from a user's own labelled array: classes are the patterns, any perturbation is the outlier."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, overload

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from iclab.core.errors import SpecError, did_you_mean, require, shown
from iclab.core.spec import array, encoded, note, number, require_count, spec
from iclab.prompts.attacks import placement_code, rule_code
from iclab.prompts.prompt import Family, Prompt, Truth
from iclab.prompts.randomness import Bits, Key, TokenWords, as_key, draw_bits, uniform23
from iclab.prompts.roles import carried_labels, check_context, draw_roles, stratified_cells
from iclab.prompts.tasks import Task, tasks_code

FEW = 20
"""Classes that labels of any kind may have without being named."""
ARGUMENTS = ("classes", "perturb", "standardize", "holdout", "holdout_seed")
"""What `from_labelled` and `from_csv` take besides fields."""
MADE = ("rows", "poisoned", "dimension", "class_sizes", "class_names")
"""The fields that they make."""


@spec
class ArrayPrompts(Family):
    """Prompts whose inputs are rows of a labelled array; make one with `from_labelled`.

    A task is an ordered pair of classes; a context example is a random row of its class, and a poisoned one the same
    row after the user's perturbation.
    """

    any_size: ClassVar[bool] = True
    rows: Float[np.ndarray, "rows dimension"] = array()
    """The inputs, sorted by class."""
    poisoned: Float[np.ndarray, "rows dimension"] = array()
    """The same inputs after the perturbation."""
    dimension: int
    """Length of an input vector."""
    class_sizes: tuple[int, ...]
    """How many rows each class has."""
    prompt_length: int = 20
    """l: context examples in a prompt."""
    decisive_fraction: float = number(default=1.0)
    """Fraction of context examples that belong to one of the task's two classes."""
    outlier_fraction: float = number(default=0.0)
    """Probability that an example is poisoned."""
    label_rule: str | Callable[..., Any] = encoded(rule_code, default="random")
    """Label of a poisoned example: flip, target, random, or a function (clean, coin, x) -> labels."""
    placement: str = encoded(placement_code, default="random")
    """Where poisoned examples stand: random, far from the query, close to it."""
    tasks: str | tuple[Task, ...] = encoded(tasks_code, default="all")
    """all, cyclic:U, unseen:U, or pairs of class positions."""
    class_names: tuple[str, ...] | None = note()
    """What each class is called."""

    def check(self) -> None:
        require_count(self, "prompt_length", 1)
        check_context(self, self.task_patterns)
        require(self.outlier_fraction == 0 or self.poisoned is not self.rows, "outlier_fraction", self.outlier_fraction,
                "be 0 without perturb, which makes what poisoned examples look like (perturb=lambda rows: rows poisons "
                "their labels only)")

    def elsewhere(self, name: str) -> str | None:
        """The arguments from which the rows were made are not kept."""
        if name in ("outlier_scale", "outlier_vectors", "outlier_mixtures"):
            return "perturb makes what poisoned examples look like: call from_labelled or from_csv again, with another"
        made = name in (*ARGUMENTS, "columns", "drop", "label", "names")
        return "its rows are made with it: call from_labelled or from_csv again" if made else None

    @property
    def task_patterns(self) -> int:
        """How many classes there are."""
        return len(self.class_sizes)

    def bits(self, key: Key | Array | int, batch: int) -> Bits:
        """The randomness of a batch, a few words per token."""
        return draw_bits(as_key(key), batch, self.prompt_length + 1)

    def prompts(self, bits: Bits) -> Prompt:
        """The batch of prompts that the bits determine."""
        cells = stratified_cells(self, bits)
        return jax.vmap(self._prompt)(cells, bits.tokens)

    def _prompt(self, cell: Int[Array, " 3"], words: TokenWords) -> Prompt:
        roles = draw_roles(self, self.task_patterns, cell, words)
        sizes = jnp.asarray(self.class_sizes)
        starts = jnp.asarray(np.concatenate([[0], np.cumsum(self.class_sizes)[:-1]]))
        within = (uniform23(words.third) * sizes[roles.pattern]).astype(jnp.int32)
        row = starts[roles.pattern] + jnp.minimum(within, sizes[roles.pattern] - 1)
        x = jnp.where(roles.outlier[:, None], jnp.asarray(self.poisoned)[row], jnp.asarray(self.rows)[row])
        x = x.astype(float)
        y = carried_labels(roles, self.label_rule, x)
        return Prompt(x, y, roles.label, Truth(roles.pattern, roles.outlier, roles.clean, roles.task, row,
                                               jnp.zeros_like(row)))


@overload
def from_labelled(inputs: Any, labels: Any, *, holdout: None = None, **options: Any) -> ArrayPrompts: ...


@overload
def from_labelled(inputs: Any, labels: Any, *, holdout: float, **options: Any) -> tuple[ArrayPrompts, ArrayPrompts]: ...


def from_labelled(inputs: Any, labels: Any, *, classes: Sequence[Any] | None = None,
                  perturb: Callable[[np.ndarray], np.ndarray] | None = None, standardize: bool = False,
                  holdout: float | None = None, holdout_seed: int = 0, names: Sequence[str] | None = None,
                  **fields: Any) -> ArrayPrompts | tuple[ArrayPrompts, ArrayPrompts]:
    """Turn a labelled array into prompts, or with `holdout` into a pair: prompts to train on and prompts to test on.

    `inputs` is (rows, dimension), `labels` (rows,); `classes` picks and orders the classes (leave some out and use
    them in a second instance as unseen tasks); `perturb` maps an array of inputs to their poisoned form. `holdout` is
    the fraction of each class's rows that only the test prompts show, drawn with `holdout_seed`. `standardize` gives
    every column mean 0 and standard deviation 1 over all rows that are not held out, those of other classes too;
    `perturb` sees the result. `names` are the columns' names, for errors. Other keywords are the fields of
    `ArrayPrompts`.
    """
    require_arguments(fields, (*ARGUMENTS, "names"))
    require(perturb is None or callable(perturb), "perturb", perturb,
            "be a function of rows, such as lambda rows: rows + 3")
    inputs, labels = np.asarray(inputs, dtype=np.float64), np.asarray(labels)
    require(inputs.ndim == 2, "inputs", inputs.shape, "have shape (rows, dimension)")
    require(labels.shape == inputs.shape[:1], "labels", labels.shape, f"have shape ({inputs.shape[0]},)")
    require(bool(np.isfinite(inputs).all()), "inputs", "NaN or infinity", "be finite")
    classes = _distinct(labels) if classes is None else list(classes)
    require(len(set(classes)) == len(classes) >= 2, "classes", classes, "name at least two different classes")
    parts = [np.flatnonzero(labels == name) for name in classes]
    for name, part in zip(classes, parts, strict=True):
        require(len(part) > 0, "classes", name, "occur in labels")
        require(holdout is None or len(part) > 1, "classes", name, "have two rows or more if some are held out")
    fields["class_names"] = tuple(map(str, classes))
    held = [] if holdout is None else _drawn(parts, holdout, holdout_seed)
    if standardize:
        known = np.delete(inputs, np.concatenate(held), axis=0) if held else inputs
        inputs = _standardized(inputs, known, names)
    if not held:
        return _of_rows(inputs, parts, perturb, fields)
    others = [np.setdiff1d(part, gone) for part, gone in zip(parts, held, strict=True)]
    return _of_rows(inputs, others, perturb, fields), _of_rows(inputs, held, perturb, fields)


def _distinct(labels: np.ndarray) -> list[Any]:
    """The different labels, in order; refused where they look like measurements or numbers of rows."""
    distinct = np.unique(labels)
    broken = np.issubdtype(labels.dtype, np.floating) and bool((distinct != np.round(distinct)).any())
    if len(distinct) > FEW and (broken or 2 * len(distinct) > len(labels)):
        raise SpecError(f"labels must be classes, got {len(distinct)} different ones in {len(labels)} rows, such as "
                        f"{shown(distinct[0].item())}; choose another column, or name them in classes")
    return distinct.tolist()


def _drawn(parts: list[np.ndarray], fraction: float, seed: int) -> list[np.ndarray]:
    """The rows of every class that are held out: at least one, and not all."""
    require(0 < fraction < 1, "holdout", fraction, "be between 0 and 1")
    require(isinstance(seed, int) and seed >= 0, "holdout_seed", seed, "be a whole number, 0 or more")
    rng = np.random.default_rng(seed)
    return [np.sort(rng.permutation(part)[:min(max(round(fraction * len(part)), 1), len(part) - 1)]) for part in parts]


def _of_rows(inputs: Float[np.ndarray, "all dimension"], parts: list[np.ndarray],
             perturb: Callable[[np.ndarray], np.ndarray] | None, fields: dict[str, Any]) -> ArrayPrompts:
    """Prompts that show these rows of each class."""
    rows = inputs[np.concatenate(parts)]
    poisoned = rows if perturb is None else perturb(rows.copy())
    require(poisoned is not None, "perturb", poisoned, "return the poisoned rows")
    poisoned = np.asarray(poisoned, dtype=np.float64)
    if poisoned.shape != rows.shape:
        raise SpecError(f"perturb must return as many rows as it gets, of shape {rows.shape}, got {poisoned.shape}")
    require(bool(np.isfinite(poisoned).all()), "perturb", "NaN or infinity", "return finite numbers")
    prompts = ArrayPrompts(rows=rows, poisoned=poisoned, dimension=rows.shape[1],
                           class_sizes=tuple(len(part) for part in parts), **fields)
    prompts.check()
    return prompts


def require_arguments(given: Iterable[str], own: Sequence[str]) -> None:
    """Refuse keywords that are neither a function's own nor fields that may be given."""
    known = [*own, *(field.name for field in dataclasses.fields(ArrayPrompts) if field.name not in MADE)]
    for name in given:
        require(name in known, "argument", name, f"be one of {', '.join(known)}{did_you_mean(name, known)}")


def _standardized(inputs: Float[np.ndarray, "rows dimension"], known: Float[np.ndarray, "known dimension"],
                  names: Sequence[str] | None) -> Float[np.ndarray, "rows dimension"]:
    """The inputs in units in which every column of the known ones has mean 0 and standard deviation 1."""
    spread = known.std(axis=0)
    for column in np.flatnonzero(spread <= 1e-12 * np.abs(known).max(axis=0)):
        name = column if names is None else repr(names[int(column)])
        raise SpecError(f"column {name} must vary to be standardized, got {known[0, column]:g} in every row; leave it "
                        "out")
    return (inputs - known.mean(axis=0)) / spread
