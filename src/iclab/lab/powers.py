"""A theorem's power laws compared with measured ones: one regression, checks, panels, table rows, constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel
from iclab.lab.claims import Check, between, short
from iclab.lab.estimates import Power, Share, powers
from iclab.lab.laboratory import Lab
from iclab.lab.premises import Spec
from iclab.sweeps.sweep import Sweep
from iclab.theory.statements import Constant, Law
from iclab.training import Run

TOLERANCE = 0.35
"""How far a measured exponent may lie from the theorem's."""
HEADER = ("in", "theorem", "measured", "95 % interval", "curvature")

Counts = Float[np.ndarray, "seeds points"]


@dataclass(frozen=True)
class Scaling:
    """A number measured along several axes, one setting varied at a time."""

    axes: Mapping[str, Sequence[float]]
    counts: Mapping[str, Counts]
    """By axis; NaN where a run did not reach what is counted."""
    usual: Mapping[str, float]
    """The value of every setting while another is varied."""

    @property
    def exponents(self) -> dict[str, Power]:
        """Of all axes, from one regression over all points and seeds."""
        columns = {axis: np.concatenate([values if swept == axis else np.full(len(values), self.usual[axis])
                                         for swept, values in self.axes.items()]).tolist() for axis in self.axes}
        return powers(columns, np.concatenate([self.counts[axis] for axis in self.axes], axis=1))

    def checks(self, theory: Mapping[str, float], tolerance: float = TOLERANCE, prefix: str = "") -> list[Check]:
        """Every exponent lies within the tolerance of the theorem's."""
        exponents = self.exponents
        return [check for axis in self.axes for check in between(
            f"{prefix}exponent of {axis}", exponents[axis], theory[axis] - tolerance, theory[axis] + tolerance)]

    def rows(self, theory: Mapping[str, float], prefix: str = "") -> list[tuple[Any, ...]]:
        """Rows under `HEADER`."""
        return [power_row(f"{prefix}{axis}", exponent, theory[axis]) for axis, exponent in self.exponents.items()]


def counted(lab: Lab, name: str, axes: Mapping[str, Sequence[float]], usual: Mapping[str, float],
            run_at: Callable[[str, float], Run], measure: Callable[..., float], seeds: Sequence[int]) -> Scaling:
    """The value of `measure` for the run at every point of every axis."""
    plan = [(axis, value) for axis, values in axes.items() for value in values]
    settings = [{"model": run.model, "prompts": run.prompts, "training": run.training}
                for run in (run_at(*point) for point in plan)]
    frame = lab.sweep(Sweep(settings=settings, seeds=seeds, measure=(measure,), name=name)).frame
    counts = np.array(frame[measure.__name__].to_list(), float).reshape(len(plan), len(seeds))
    return Scaling(axes, {axis: np.stack([row for (swept, _), row in zip(plan, counts, strict=True) if swept == axis],
                                         axis=1) for axis in axes}, usual)


def end_specs(axes: Mapping[str, Sequence[float]], run_at: Callable[[str, float], Run]) -> list[Spec]:
    """The runs at both ends of every axis, each tested on its training prompts: where the premises must be met."""
    runs = [run_at(axis, value) for axis, values in axes.items() for value in (min(values), max(values))]
    return [(run, run.prompts) for run in runs]


def all_reach(what: str, counts: Iterable[Counts]) -> Check:
    """Most seeds reach what is counted at every point; `what` names it: `loss falls to 0.05`."""
    reached = np.all([np.isfinite(values).all(axis=1) for values in counts], axis=0)
    return Check(f"share of seeds whose {what} in every setting", Share(reached), ">=", 0.5)


def power_row(name: str, exponent: Power, theory: float) -> tuple[Any, ...]:
    """A row under `HEADER`."""
    low, high = exponent.interval()
    curvature = exponent.detail.get("curvature")
    return (name, f"{theory:.3g}", f"{exponent.value:.2f}", f"[{low:.2f}, {high:.2f}]",
            "" if curvature is None else f"{curvature:.2f}")


def in_words(exponent: Power) -> str:
    """An exponent with its interval, as text."""
    low, high = exponent.interval()
    return f"{short(exponent.value)} [{short(low)}, {short(high)}]"


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
              x_label: str | None = None, y_label: str | None = None) -> Panel:
    """Counts on log-log axes, with the theorem's law."""
    return Panel(title, list(x), [Curve(name, values) for name, values in curves.items()], lines=[("theory", law)],
                 x_label=x_label or title, y_label=y_label)
