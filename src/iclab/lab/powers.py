"""A theorem's power laws compared with measured ones: checks, panels, table rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel
from iclab.lab.claims import Check
from iclab.lab.entries import Lab
from iclab.probes import Interval
from iclab.probes.scaling import exponent
from iclab.sweeps.sweep import Sweep
from iclab.theory.statements import Constant, Law
from iclab.training import Run

TOLERANCE = 0.35
"""How far a measured exponent may lie from the theorem's."""
HEADER = ("in", "theorem", "measured", "95 % interval")

Counts = Float[np.ndarray, "seeds points"]


def counted(lab: Lab, name: str, axes: Mapping[str, Sequence[float]], run_at: Callable[[str, float], Run],
            measure: Callable[..., float], seeds: Sequence[int]) -> tuple[dict[str, Counts], list[str]]:
    """The value of `measure` for the run at every point of every axis, by axis, and the ids of the runs."""
    plan = [(axis, value) for axis, values in axes.items() for value in values]
    settings = [{"model": run.model, "prompts": run.prompts, "training": run.training}
                for run in (run_at(*point) for point in plan)]
    frame = lab.sweep(Sweep(settings=settings, seeds=seeds, measure=(measure,), name=name)).frame
    counts = np.array(frame[measure.__name__].to_list(), float).reshape(len(plan), len(seeds))
    return {axis: np.stack([row for (swept, _), row in zip(plan, counts, strict=True) if swept == axis], axis=1)
            for axis in axes}, frame["run"].to_list()


def power_checks(name: str, measured: Interval, theory: float, tolerance: float = TOLERANCE) -> list[Check]:
    """The measured exponent lies within the tolerance of the theorem's."""
    return [Check.of(name, measured, ">=", theory - tolerance), Check.of(name, measured, "<=", theory + tolerance)]


@dataclass(frozen=True)
class FittedLaw:
    """A theorem's law with the one constant that fits all measured settings best."""

    law: Law
    constants: list[Constant]
    """One constant, or none if nothing was measured."""
    orders: Mapping[str, Sequence[float]]
    """The law's value without its constant, by axis and point."""

    def line(self, axis: str) -> Float[np.ndarray, " points"]:
        """The law along an axis."""
        return self.along(self.orders[axis])

    def along(self, orders: Iterable[float]) -> Float[np.ndarray, " points"]:
        """The law for these values of its order."""
        return np.array(list(orders), float) * (self.constants[0].value if self.constants else np.nan)

    @property
    def words(self) -> str:
        """The law and its constant."""
        if not self.constants:
            return f"{self.law.quantity}: no measurements to fit {self.law.formula} to."
        constant = self.constants[0]
        return (f"{self.law.quantity} = {constant.value:.3g} * {self.law.formula}: one constant for "
                f"{constant.settings} settings; fitted to single settings, it ranges from {constant.low:.3g} to "
                f"{constant.high:.3g}.")


def fit_law(law: Law, orders: Mapping[str, Sequence[float]], counts: Mapping[str, Counts], lab: Lab) -> FittedLaw:
    """Fit the constant: the geometric mean, over settings, of count (mean over seeds) divided by order.

    A setting shared by several axes counts once; one that some seed did not finish is left out.
    """
    points = np.concatenate([np.stack([np.asarray(orders[axis], float), counts[axis].mean(axis=0)]) for axis in orders],
                            axis=1)
    order, mean_count = np.unique(points[:, np.isfinite(points).all(axis=0)], axis=1)
    ratios = mean_count / order
    constants = [Constant(law.key, float(np.exp(np.log(ratios).mean())), float(ratios.min()), float(ratios.max()),
                          len(ratios), len(next(iter(counts.values()))), lab.scale)] if len(ratios) else []
    return FittedLaw(law, constants, orders)


def law_panel(title: str, x: Sequence[float], curves: dict[str, Counts], law: Float[np.ndarray, " points"],
              x_label: str | None = None) -> Panel:
    """Counts on log-log axes, with the theorem's law."""
    return Panel(title, list(x), [Curve(name, values) for name, values in curves.items()], lines=[("theory", law)],
                 x_label=x_label or title)


def power_row(name: str, x: Sequence[float], counts: Counts, theory: float) -> tuple[Any, ...]:
    """A row under `HEADER`."""
    fitted = exponent(x, counts)
    return name, f"{theory:.3g}", f"{fitted.mean:.2f}", f"[{fitted.low:.2f}, {fitted.high:.2f}]"


def said(fitted: Interval) -> str:
    """An exponent with its interval, as text."""
    return f"{fitted.mean:.2f} [{fitted.low:.2f}, {fitted.high:.2f}]"
