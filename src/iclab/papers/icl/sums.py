"""Where the out-of-domain error of the one-layer Transformer passes 0.01, over delta, |q| and T; part of `icl.ood`.

Trainings last as many times as long as the law of the first steps (`theory.icl.first_steps`) as T says; 3.4 times that
law brings the training loss to 0.2. S1* is the coefficient sum from which on the 0-1 error stays at most 0.01, between
measured sums by a line; the largest sum, 1.28, where it never does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.figures.plots import Plot
from iclab.lab.claims import Check, worst
from iclab.lab.entries import Size
from iclab.lab.estimates import Difference, Mean
from iclab.lab.laboratory import Lab, per_seed
from iclab.lab.regions import Axis, Region
from iclab.papers.icl.settings import LARGEST_SUM, one_layer_run, out_of_domain
from iclab.probes.error_rate import averages, errors_of
from iclab.probes.scaling import first_below
from iclab.prompts.labels import SIGN
from iclab.theory.icl import first_steps
from iclab.training import Run, Trained

DECISIVE, ERROR_ALLOWED = 0.6, 0.01
SUMS = (-0.5, 0.0, 0.5, 0.8, 1.0, LARGEST_SUM)
SIZES = {"tiny": Size(seeds=2, prompts=500, deltas=(0.1, 0.13), times=(6.0,), norms=(1.0,)),
         "quick": Size(seeds=2, prompts=500, deltas=(0.08, 0.13), times=(6.0,), norms=(1.0,)),
         "full": Size(seeds=12, prompts=2_000, deltas=(0.02, 0.05, 0.08, 0.13), times=(6.0, 18.0), norms=(1.0, 3.0))}
STEEPER, APART = 2.0, 0.5

Setting = tuple[float, float, float]
"""|q|, T in units of the law of the first steps, and delta."""


class Curves(NamedTuple):
    """0-1 error and hinge loss by coefficient sum at one setting."""

    error: Float[np.ndarray, "seeds sums"]
    hinge: Float[np.ndarray, "seeds sums"]

    @property
    def passes(self) -> Float[np.ndarray, " seeds"]:
        """S1* of every seed."""
        found = np.array([first_below(SUMS, row, ERROR_ALLOWED) for row in self.error])
        return np.where(np.isnan(found), SUMS[-1], found)

    @property
    def excess(self) -> Float[np.ndarray, " seeds"]:
        """How fast the hinge loss falls just below 1, less `STEEPER` times how fast it falls from 0 to 0.8."""
        at = {total: self.hinge[:, i] for i, total in enumerate(SUMS)}
        return (at[0.8] - at[1.0]) / 0.2 - STEEPER * (at[0.0] - at[0.8]) / 0.8


def a_run(delta: float, norm: float, time: float) -> Run:
    """Training at one setting."""
    run = one_layer_run(DECISIVE, 1, norm)
    run = replace(run, model=replace(run.model, init_scale=delta))
    return replace(run, training=replace(run.training, steps=max(1, int(time * first_steps(run)))))


def both_errors(models: Sequence[Trained], sums: Sequence[float], prompts: int, seeds: Sequence[int]
                ) -> Float[np.ndarray, "models sums 2"]:
    """0-1 error and hinge loss of every model at every coefficient sum."""
    return averages(errors_of(SIGN), models, [out_of_domain(DECISIVE, total) for total in sums], prompts, seeds)


def measure(lab: Lab) -> dict[Setting, Curves]:
    """Train at every setting, and measure out of domain."""
    size = SIZES[lab.scale]
    seeds = lab.seeds(size.seeds)
    settings = [(norm, time, delta) for norm in size.norms for time in size.times for delta in size.deltas]
    models = lab.train([run for norm, time, delta in settings for run in per_seed(a_run(delta, norm, time), seeds)])
    values = lab.remember(both_errors, models, SUMS, size.prompts, list(seeds) * len(settings))
    return {setting: Curves(*np.moveaxis(of, -1, 0)) for setting, of in
            zip(settings, values.reshape(len(settings), len(seeds), len(SUMS), 2), strict=True)}


def moves(curves: Mapping[Setting, Curves], longest_only: bool = False) -> list[Check]:
    """The starting value moves S1* by much: with the smallest |q|, in the mean over T, smaller deltas ask for more."""
    norm = min(key[0] for key in curves)
    times = sorted({key[1] for key in curves})[-1 if longest_only else 0:]
    deltas = [key[2] for key in curves]
    least, most = (np.mean([curves[norm, time, delta].passes for time in times], axis=0)
                   for delta in (min(deltas), max(deltas)))
    return [Check(f"S1* at delta {min(deltas):g} less that at {max(deltas):g}", Difference(least, most), ">=", APART)]


def no_cliff(curves: Mapping[Setting, Curves]) -> list[Check]:
    """The hinge loss falls hardly faster just below 1 than before, at every delta, trained for longest."""
    main = min(key[0] for key in curves), max(key[1] for key in curves)
    slopes = [(f"delta {delta:g}", Mean(of.excess)) for (norm, time, delta), of in curves.items()
              if (norm, time) == main]
    return [worst(f"slope of the hinge loss just below 1 less {STEEPER:g} times that from 0 to 0.8 (at {{}})", slopes,
                  "<=", 0.0)]


def region(curves: Mapping[Setting, Curves], norm: float) -> Region:
    """Where the error has passed 0.01 at S1 = 1, over delta and T."""
    deltas, times = (sorted({key[place] for key in curves}) for place in (2, 1))
    return Region("S1*", Axis("delta", deltas), Axis("T", times),
                  [[Mean(curves[norm, time, delta].passes) for delta in deltas] for time in times], "<=", 1.0,
                  where="tried")


def plots(curves: Mapping[Setting, Curves]) -> list[Plot]:
    """The maps, one for each |q|."""
    return [region(curves, norm).plot(
        f"icl.ood.q{norm:g}", f"Coefficient sum S1* needed for an error of {ERROR_ALLOWED:g}, |q| = {norm:g}",
        "One-layer Transformer, K' = 5, decisive fraction 0.6; T in units of the law of the first steps. 1.28 where "
        "no sum is enough. The rule is S1* <= 1.") for norm in sorted({key[0] for key in curves})]


def words(curves: Mapping[Setting, Curves]) -> str:
    """S1* at every setting, and where it is at most 1."""
    return " ".join(f"|q| {norm:g}: {region(curves, norm).sentence} S1* is " + ", ".join(
        f"{of.passes.mean():.2f} (delta {delta:g}, T {time:g})" for (q, time, delta), of in curves.items() if q == norm)
        + "." for norm in sorted({key[0] for key in curves}))
