"""Claim `mamba.unseen`: which unseen outliers Mamba filters, by coefficient sum L and scale kappa_a'.

Rules, written before the run, at outlier fraction 0.5 under flip. Theorem: at every scale from that of training on, the
excess over the floor of the paper's worst direction is at most 0.01. Ours: the same at three times the scale; and a map
over L and the scale, of which every setting inside the premises must stay within 0.01.
Cost: no extra training, 2 million test prompts, about 5 s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, worst
from iclab.lab.entries import Entry, Findings, Part
from iclab.lab.estimates import Rate
from iclab.lab.laboratory import Lab
from iclab.lab.regions import Axis, Region
from iclab.papers.mamba.settings import TEST_MIXTURES, attacked_prompts, sizes
from iclab.papers.mamba.trained import one_layer_models
from iclab.probes import UNIT, information_floor
from iclab.prompts.classification import Classification
from iclab.prompts.patterns import Matrix

FRACTION, EXCESS_ALLOWED = 0.5, 0.01
FACTORS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
SUMS = (-0.5, 0.1, 0.15, 0.3, 0.6, 0.9, 1.2, 1.7)
FLOOR = information_floor(attacked_prompts("flip", FRACTION))


class Errors(NamedTuple):
    """Errors at every scale."""

    directions: Float[np.ndarray, "seeds directions factors"]
    sums: Float[np.ndarray, "seeds sums factors"]
    prompts: int


def directions(total: float) -> Matrix:
    """Three unit coefficient vectors with this sum, evenly spaced around the diagonal (1, 1, 1)."""
    first, second = np.array([1, -1, 0]) / np.sqrt(2), np.array([1, 1, -2]) / np.sqrt(6)
    radius = np.sqrt(1 - total**2 / 3)
    return tuple(tuple(float(x) for x in total / 3 + radius * (np.cos(angle) * first + np.sin(angle) * second))
                 for angle in (0.3, 0.3 + 2 * np.pi / 3, 0.3 + 4 * np.pi / 3))


def tests() -> dict[str, list[Classification]]:
    """Tests by row, then factor."""
    mixtures: dict[str, list[Matrix]] = {"directions": [(row,) * 3 for row in TEST_MIXTURES],
                                         "sums": [directions(total) for total in SUMS]}
    return {name: [attacked_prompts("flip", FRACTION, factor, outlier_mixtures=rows) for rows in of for factor in
                   FACTORS] for name, of in mixtures.items()}


def by_factor(errors: Float[np.ndarray, "seeds tests"]) -> Float[np.ndarray, "seeds rows factors"]:
    """Errors on one list of `tests`."""
    return errors.reshape(len(errors), -1, len(FACTORS))


def worst_direction(errors: Errors, factors: tuple[float, ...], name: str) -> Check:
    """The largest excess of one of the paper's directions at these scales."""
    at = [(f"v{i + 1}' at {factor:g} kappa_a", Rate(errors.directions[:, i, FACTORS.index(factor)],
                                                       errors.prompts, FLOOR))
          for i in range(len(TEST_MIXTURES)) for factor in factors]
    return worst(f"{name} ({{}})", at, "<=", EXCESS_ALLOWED)


def theorem(errors: Errors) -> list[Check]:
    """All scales that the theorem covers."""
    return [worst_direction(errors, tuple(f for f in FACTORS if f >= 1), "largest excess from the training scale on")]


def larger(errors: Errors) -> list[Check]:
    """Three times the training scale."""
    return [worst_direction(errors, (3.0,), "largest excess at three times the training scale")]


def region(errors: Errors) -> Region:
    """The map over coefficient sum and scale."""
    estimates = [[Rate(errors.sums[:, i, j], errors.prompts, FLOOR) for j in range(len(FACTORS))]
                 for i in range(len(SUMS))]
    return Region("excess over the floor", Axis("kappa_a' / kappa_a", FACTORS), Axis("coefficient sum L", SUMS),
                  estimates, "<=", EXCESS_ALLOWED, lambda factor, total: factor >= 1 and total > 0,
                  "L kappa_a' / kappa_a", lambda factor, total: factor * total)


def run(lab: Lab) -> Findings:
    """Measure every direction, sum and scale."""
    models, specs = one_layer_models(lab, "mamba"), tests()
    errors = Errors(by_factor(lab.errors(models, specs["directions"])), by_factor(lab.errors(models, specs["sums"])),
                    lab.size.prompts)
    curves = [Curve(f"v{i + 1}', sum {sum(row):.1f}", errors.directions[:, i])
              for i, row in enumerate(TEST_MIXTURES)]
    plot = curve_figure("mamba.unseen", "The paper's three directions", "Outlier fraction 0.5, flip.",
                        [Panel("", FACTORS, curves, floor=[FLOOR] * len(FACTORS))], "kappa_a' / kappa_a", "error",
                        y_range=(-0.03, 1.03), within=UNIT)
    settings = region(errors)
    return Findings(
        shown="Mamba's excess error over coefficient sum and scale of the test outlier, and its error by direction.",
        measured=errors, numbers=settings.sentence,
        plots=[settings.plot("mamba.unseen.region", "Where unseen outliers are filtered",
                             "Excess over the floor at outlier fraction 0.5, flip."), plot],
        specs=[(models[0].run, test) for test in specs["directions"] if test.outlier_scale >= 2.0])


ENTRY = Entry(
    "mamba.unseen", "Unseen outliers: which directions and sizes are filtered", "li2025mamba, theorem 2 (a), (b)", run,
    says="Mamba filters unseen outliers that are combinations of the training ones with a positive coefficient sum and "
         "at least as large.",
    sizes=sizes(prompts=(500, 2_000, 4_000)), parts=(
        Part("theorem", "theorem 2 (a), (b)", "Outliers from the training scale on are filtered, whatever their "
             "direction.", theorem, theory=("Theorem 2",)),
        Part("ours", "three times the training scale", "Outliers three times as large are filtered.", larger),
        Part("ours", "the whole region", "Every setting with L > 0 from the training scale on is within 0.01.",
             lambda errors: region(errors).checks())))
