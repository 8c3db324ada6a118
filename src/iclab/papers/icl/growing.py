"""The one-layer Transformer as the number of patterns grows, trained as theorem 3.3 asks.

M2 = M1 irrelevant patterns, as M2 <= O(M1); m = 100 (M1 / 6)^2 neurons; T by the law of equations 82 and 83; decisive
fraction 0.6. The new patterns out of domain stay the paper's three, so that only training changes; they take M1 >= 6.
At `quick` the irrelevant patterns fill up 30 dimensions instead. Shared by `icl.attention`, `icl.context`,
`icl.neurons`, `icl.norms` and `icl.pruning`. Settled after a look: with 600 steps at M1 = 6 and M1 up to 12 some seeds
had not finished training at the largest M1; from 6 on exponents were too uncertain, and at M1 = 4 the 15 % smallest are
six neurons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, Plot, curve_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Size
from iclab.lab.estimates import power
from iclab.lab.laboratory import Lab, per_seed
from iclab.lab.powers import in_words
from iclab.lab.premises import Spec
from iclab.papers.icl.settings import LARGEST_SUM, in_domain, new_patterns, one_layer_run, out_of_domain
from iclab.prompts import Classification
from iclab.theory.icl import ITERATIONS
from iclab.training import Run, Trained

DECISIVE = 0.6
FIRST, NEURONS = 6, 100
"""M1 and m of the paper's experiments and of ours."""
TOLERANCE = 0.35
"""How far a measured exponent may lie above the theorem's."""
GROWING = {"tiny": Size(patterns=(6, 10), seeds=2, steps=50, prompts=500, fill=30),
           "quick": Size(patterns=(6, 10), seeds=2, steps=100, prompts=500, fill=30),
           "full": Size(patterns=(5, 6, 7, 8, 10), seeds=7, steps=1_000, prompts=2_000, fill=None)}
"""Values of M1; steps at the first; dimensions to fill up, if M2 is not M1."""


class Numbers(NamedTuple):
    """A number measured at every M1."""

    patterns: Sequence[int]
    values: Float[np.ndarray, "seeds patterns"]


def _patterns(M1: int, fill: int | None) -> dict[str, Any]:
    """The fields of prompts that grow."""
    M2 = M1 if fill is None else fill - M1
    return {"relevant_patterns": M1, "irrelevant_patterns": M2, "dimension": M1 + M2}


def a_run(M1: int, size: Size) -> Run:
    """Training with M1 relevant patterns."""
    base = one_layer_run(DECISIVE, size.steps)
    run = replace(base, model=replace(base.model, neurons=2 * round(NEURONS * (M1 / FIRST) ** 2 / 2)),
                  prompts=replace(base.prompts, **_patterns(M1, size.fill)))
    longer = ITERATIONS.order(run, None) / ITERATIONS.order(base, None)
    return replace(run, training=replace(run.training, steps=round(size.steps * longer)))


def tests_of(M1: int, size: Size) -> dict[str, Classification]:
    """Test prompts in domain and, if there are enough patterns to mix, out of it."""
    patterns = _patterns(M1, size.fill)
    tests = {"in domain": in_domain(DECISIVE, **patterns)}
    if M1 >= FIRST:
        tests["out of domain"] = outside(**patterns)
    return tests


def outside(relevant_patterns: int, **others: int) -> Classification:
    """Test prompts of the paper's three new patterns, in this many dimensions."""
    rows = tuple((*row, *[0.0] * (relevant_patterns - FIRST)) for row in new_patterns(LARGEST_SUM))
    return replace(out_of_domain(DECISIVE), pattern_mixtures=rows, relevant_patterns=relevant_patterns, **others)


def grown_models(lab: Lab) -> dict[int, list[Trained]]:
    """The trained models by M1, all seeds; the first caller trains them."""
    size = GROWING[lab.scale]
    seeds = lab.seeds(size.seeds)
    models = lab.train([run for M1 in size.patterns for run in per_seed(a_run(M1, size), seeds)])
    return {M1: models[i * len(seeds):(i + 1) * len(seeds)] for i, M1 in enumerate(size.patterns)}


def ends(lab: Lab, *places: str) -> list[Spec]:
    """The runs at the smallest and the largest M1 with their tests: where premises must be met."""
    size = GROWING[lab.scale]
    specs = {place: [(a_run(M1, size), tests_of(M1, size)[place]) for M1 in size.patterns
                     if place in tests_of(M1, size)] for place in places}
    return [spec for mine in specs.values() for spec in (mine[0], mine[-1])]


def falls(name: str, numbers: Numbers, theory: float, tolerance: float = TOLERANCE) -> Check:
    """The number falls with M1 at least as fast as the theorem's power, up to the tolerance."""
    return Check(f"exponent of M1 in {name} (theorem {theory:g})", power(*numbers), "<=", theory + tolerance)


def panel(title: str, curves: Mapping[str, Numbers]) -> Panel:
    """Numbers against M1."""
    patterns = next(iter(curves.values())).patterns
    return Panel(title, patterns, [Curve(name, numbers.values) for name, numbers in curves.items()])


def growing_figure(name: str, title: str, caption: str, panels: Sequence[Panel], y_label: str) -> Plot:
    """Numbers against M1 on logarithmic axes."""
    return curve_figure(name, title, f"{caption} M2 = M1, m ~ M1^2, T by the law of equations 82 and 83.", panels, "M1",
                        y_label, log_x=True, log_y=True)


def exponents(curves: Mapping[str, Numbers]) -> str:
    """The exponents of M1 in words."""
    return "; ".join(f"{name} {in_words(power(*numbers))}" for name, numbers in curves.items())
