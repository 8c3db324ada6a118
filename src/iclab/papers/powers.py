"""Power laws that a theorem states, beside those that were measured: checks, panels, rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel
from iclab.papers.claims import Check
from iclab.papers.entries import Lab
from iclab.probes import Interval
from iclab.probes.scaling import exponent
from iclab.runs.sweep import Sweep
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


def power_panel(title: str, x: Sequence[float], curves: dict[str, Counts], theory: float, x_label: str | None = None
                ) -> Panel:
    """Counts in double logarithmic axes, with the theorem's power and one constant fitted."""
    return Panel(title, list(x), [Curve(name, values) for name, values in curves.items()],
                 lines=[(f"power {theory:.3g}", fitted_power(x, list(curves.values()), theory))],
                 x_label=x_label or title)


def fitted_power(x: Sequence[float], counts: Sequence[Counts], theory: float) -> Float[np.ndarray, " points"]:
    """The theorem's power times the constant that fits all counts best; NaN where there are none."""
    law = np.asarray(x, float) ** theory
    away = np.log(np.concatenate(counts)) - np.log(law)
    known = away[np.isfinite(away)]
    return law * (np.exp(known.mean()) if len(known) else np.nan)


def power_row(name: str, x: Sequence[float], counts: Counts, theory: float) -> tuple[Any, ...]:
    """A row under `HEADER`."""
    found = exponent(x, counts)
    return name, f"{theory:.3g}", f"{found.mean:.2f}", f"[{found.low:.2f}, {found.high:.2f}]"


def said(found: Interval) -> str:
    """An exponent in words."""
    return f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"
