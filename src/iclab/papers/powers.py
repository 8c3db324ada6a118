"""Power laws that a theorem states, beside those that were measured: checks, panels, rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel
from iclab.papers.claims import Check
from iclab.papers.entries import Lab
from iclab.probes import Interval
from iclab.probes.scaling import exponent
from iclab.runs.sweep import Sweep
from iclab.theory.statements import Constant, Law
from iclab.training import Run

TOLERANCE = 0.35
"""How far a measured exponent may lie from the theorem's."""
HEADER = ("in", "theorem", "measured", "95 % interval")

Counts = Float[np.ndarray, "seeds points"]


def counted(lab: Lab, name: str, axes: Mapping[str, Sequence[float]], run_at: Callable[[str, float], Run],
            measure: Callable[..., float], seeds: Sequence[int]) -> tuple[dict[str, Counts], list[str]]:
    """What `measure` says of the run at every value of every axis, by axis; and the ids of the runs."""
    plan = [(axis, value) for axis, values in axes.items() for value in values]
    settings = [{"model": run.model, "prompts": run.prompts, "training": run.training}
                for run in (run_at(*point) for point in plan)]
    frame = lab.sweep(Sweep(settings=settings, seeds=seeds, measure=(measure,), name=name)).frame
    kept = np.array(frame[measure.__name__].to_list(), float).reshape(len(plan), len(seeds))
    return {axis: np.stack([row for (mine, _), row in zip(plan, kept, strict=True) if mine == axis], axis=1)
            for axis in axes}, frame["run"].to_list()


def power_checks(name: str, found: Interval, theory: float, tolerance: float = TOLERANCE) -> list[Check]:
    """The measured exponent lies within the tolerance of the theorem's."""
    return [Check.of(name, found, ">=", theory - tolerance), Check.of(name, found, "<=", theory + tolerance)]


@dataclass(frozen=True)
class FittedLaw:
    """A theorem's law with the one constant that fits all measured settings best."""

    law: Law
    constants: list[Constant]
    """One, or none where nothing was measured."""
    orders: Mapping[str, Sequence[float]]
    """What the law says without its constant, by axis and value."""

    def line(self, axis: str) -> Float[np.ndarray, " points"]:
        """The law along an axis."""
        return self.along(self.orders[axis])

    def along(self, orders: Iterable[float]) -> Float[np.ndarray, " points"]:
        """The law where its order has these values."""
        return np.array(list(orders), float) * (self.constants[0].value if self.constants else np.nan)

    @property
    def words(self) -> str:
        """The law and its constant."""
        if not self.constants:
            return f"{self.law.quantity}: nothing to fit {self.law.formula} to."
        found = self.constants[0]
        return (f"{self.law.quantity} = {found.value:.3g} * {self.law.formula}: one constant for {found.settings} "
                f"settings, which taken alone ask for {found.low:.3g} to {found.high:.3g}.")


def fit_law(law: Law, orders: Mapping[str, Sequence[float]], counts: Mapping[str, Counts], lab: Lab) -> FittedLaw:
    """The constant is the geometric mean, over settings, of what was counted (mean over seeds) over the order.

    A setting that several axes share counts once; one that not every seed brought to its end does not count.
    """
    points = np.concatenate([np.stack([np.asarray(orders[axis], float), counts[axis].mean(axis=0)]) for axis in orders],
                            axis=1)
    order, counted_there = np.unique(points[:, np.isfinite(points).all(axis=0)], axis=1)
    known = counted_there / order
    found = [Constant(law.key, float(np.exp(np.log(known).mean())), float(known.min()), float(known.max()), len(known),
                      len(next(iter(counts.values()))), lab.scale)] if len(known) else []
    return FittedLaw(law, found, orders)


def law_panel(title: str, x: Sequence[float], curves: dict[str, Counts], law: Float[np.ndarray, " points"],
              x_label: str | None = None) -> Panel:
    """Counts in double logarithmic axes, with the theorem's law."""
    return Panel(title, list(x), [Curve(name, values) for name, values in curves.items()], lines=[("theory", law)],
                 x_label=x_label or title)


def power_row(name: str, x: Sequence[float], counts: Counts, theory: float) -> tuple[Any, ...]:
    """A row under `HEADER`."""
    found = exponent(x, counts)
    return name, f"{theory:.3g}", f"{found.mean:.2f}", f"[{found.low:.2f}, {found.high:.2f}]"


def said(found: Interval) -> str:
    """An exponent in words."""
    return f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"
