"""Claim `mamba.unseen`: which unseen outliers Mamba filters, by coefficient sum L and scale kappa_a'.

Rules, at outlier fraction 0.5 under flip. Theorem: at every scale from that of training on and every sum L > 0 of a
map (of one outlier; the L of eq. 11 is the least over the set), the error is at most 0.1, the accuracy for which the
premises are computed; for the paper's three directions it is at most 0.05 after training with B = 1,024, which that
accuracy asks for (an earlier rule asked for 0.1 with B = 128, too near to the measured number; on other seeds the error
was 0.14); and at the largest M1, for directions with
the least sum of the paper's (added when the result at M1 6 was known). Ours: at three times the scale its excess over
the floor is at most 0.01; every setting of the map that is inside the premises stays within 0.01. Ours, a premise in
another form: the error depends on the product L kappa_a' / kappa_a alone (settings of equal product agree within 0.01),
and from a product of 1 on the excess is at most 0.01, also for other M1, p_a, kappa_a and T; c is the product at which
the error falls to 0.01, and does not grow with M1 or with T (exponents at most 0).
The map was first judged only within 0.01, and the theorem only at the paper's directions; that the theorem covers the
map too was seen after that run. Searched on other seeds: c was 0.52 at M1 6 and about 0.4 at 40; it fell from 0.59 to
0.47 as T grew from 1,000 to 32,000 at M1 6.
Cost: 80 trainings, 3 million test prompts, about 8 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, worst
from iclab.lab.entries import Entry, Findings, Part, Rule, Table
from iclab.lab.estimates import Difference, Mean, Power, Rate, power, shown
from iclab.lab.laboratory import Lab
from iclab.lab.powers import in_words
from iclab.lab.regions import Axis, Region
from iclab.papers.mamba.settings import FINER, TEST_MIXTURES, attacked_prompts, one_layer_run, sizes
from iclab.papers.mamba.trained import one_layer_models
from iclab.probes import UNIT, information_floor
from iclab.probes.by_length import needed_examples
from iclab.prompts.classification import Classification
from iclab.prompts.patterns import Matrix
from iclab.theory.mamba import least_coefficient_sum
from iclab.training import Run

FRACTION, EXCESS_ALLOWED, ACCURACY, FINER_ACCURACY, FINER_BATCH = 0.5, 0.01, 0.1, 0.05, 1_024
FACTORS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
SUMS = (-0.5, 0.1, 0.15, 0.3, 0.6, 0.9, 1.2, 1.7)
FLOOR = information_floor(attacked_prompts("flip", FRACTION))
SUM = 0.3
DECIDING = (1.0, 1.5, 3.0)
"""Scales at which the paper's directions are judged after training with a larger batch."""
PRODUCTS = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.8, 1.0, 1.5)
"""Products at which other trainings are tested, with coefficient sum `SUM`."""
USUAL = {"M1": 6.0, "p_a": 0.6, "kappa_a": 2.0}


class Errors(NamedTuple):
    """Errors at every scale, and of other trainings at every product."""

    directions: Float[np.ndarray, "seeds directions factors"]
    sums: Float[np.ndarray, "seeds sums factors"]
    prompts: int
    products: Mapping[str, Mapping[float, Float[np.ndarray, "seeds products"]]] = MappingProxyType({})
    """By what was changed in training, and its value."""
    more: Float[np.ndarray, "seeds directions factors"] | None = None
    """After training with a larger batch, at the scales from that of training on that decide."""


def other_run(axis: str, value: float, steps: int) -> Run:
    """Mamba trained with one setting changed; with more patterns in a larger space."""
    run, at = one_layer_run("mamba", int(value) if axis == "T" else steps), USUAL | {axis: value}
    M1 = int(at["M1"])
    return replace(run, prompts=replace(run.prompts, relevant_patterns=M1, dimension=max(30, M1 + 20),
                                        outlier_fraction=at["p_a"], outlier_scale=at["kappa_a"],
                                        tasks=f"cyclic:{M1 - 1}"))


def finer_run(steps: int) -> Run:
    """Mamba trained with the batch of the finer accuracy."""
    run = one_layer_run("mamba", steps)
    return replace(run, training=replace(run.training, batch_size=FINER_BATCH))


def product_tests(run: Run) -> list[Classification]:
    """Tests of a training at every product."""
    training = run.prompts
    return [attacked_prompts("flip", FRACTION, outlier_mixtures=directions(SUM), dimension=training.dimension,
                             relevant_patterns=training.relevant_patterns,
                             outlier_scale=float(training.outlier_scale) * product / SUM) for product in PRODUCTS]


def least_product(errors: Float[np.ndarray, "seeds products"]) -> Float[np.ndarray, " seeds"]:
    """Per seed, the product at which the excess falls to 0.01; NaN if it does not."""
    percent = [round(100 * product) for product in PRODUCTS]
    return np.asarray(needed_examples(percent, errors - FLOOR, EXCESS_ALLOWED)) / 100


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


def many_patterns(errors: Errors) -> list[Check]:
    """The theorem's rule at the largest M1, with the least sum of the paper's directions."""
    M1 = max(errors.products["M1"])
    return [worst(f"M1 {M1:g}: largest error from the training scale on, L {SUM:g} ({{}})", [
        (f"{product / SUM:.3g} kappa_a", Rate(errors.products["M1"][M1][:, k], errors.prompts))
        for k, product in enumerate(PRODUCTS) if product >= SUM], "<=", ACCURACY)]


COVERED = tuple(factor for factor in FACTORS if factor >= 1)


def theorem(errors: Errors) -> list[Check]:
    """All scales and sums of the map that the theorem covers."""
    at = [(f"L {total:g} at {factor:g} kappa_a", Rate(errors.sums[:, SUMS.index(total), FACTORS.index(factor)],
                                                       errors.prompts))
          for total in SUMS if total > 0 for factor in COVERED]
    return [worst("largest error from the training scale on ({})", at, "<=", ACCURACY)]


def of_the_paper(errors: Errors) -> list[Check]:
    """The paper's directions, for a finer accuracy with its batch."""
    at = [(f"v{i + 1}' at {factor:g} kappa_a", Rate(of[:, j], errors.prompts))
          for i, of in enumerate(np.moveaxis(np.asarray(errors.more), 1, 0)) for j, factor in enumerate(DECIDING)]
    return [worst(f"B {FINER_BATCH}: largest error of the paper's directions ({{}})", at, "<=", FINER_ACCURACY)]


def by_direction(errors: Errors) -> list[Check]:
    """The earlier rule: the paper's directions at all scales that the theorem covers."""
    at = [(f"v{i + 1}' at {factor:g} kappa_a", Rate(errors.directions[:, i, FACTORS.index(factor)], errors.prompts))
          for i in range(len(TEST_MIXTURES)) for factor in COVERED]
    return [worst("largest error from the training scale on ({})", at, "<=", ACCURACY)]


def finer(errors: Errors) -> list[Check]:
    """The earlier rule: the floor at all scales that the theorem covers."""
    return [worst_direction(errors, COVERED, "largest excess from the training scale on")]


def by_product() -> dict[float, list[tuple[int, int]]]:
    """The settings of the map with L > 0, by their product."""
    cells: dict[float, list[tuple[int, int]]] = {}
    for i, total in enumerate(SUMS):
        for j, factor in enumerate(FACTORS):
            if total > 0:
                cells.setdefault(round(total * factor, 6), []).append((i, j))
    return cells


def collapse(errors: Errors) -> list[Check]:
    """Settings of equal product err alike: each is compared with that of the largest sum."""
    pairs = [(cell, cells[-1]) for cells in by_product().values() for cell in cells[:-1]]
    pairs += [(second, first) for first, second in pairs]
    return [worst("largest difference between settings of equal product ({})", [
        (f"L {SUMS[a[0]]:g}, scale {FACTORS[a[1]]:g} above L {SUMS[b[0]]:g}, scale {FACTORS[b[1]]:g}",
         Difference(errors.sums[:, a[0], a[1]], errors.sums[:, b[0], b[1]], errors.prompts)) for a, b in pairs],
        "<=", EXCESS_ALLOWED)]


def corrected(errors: Errors) -> list[Check]:
    """From a product of 1 on outliers are filtered, in this training and in others."""
    cells = [(f"L {SUMS[i]:g}, scale {FACTORS[j]:g}", Rate(errors.sums[:, i, j], errors.prompts, FLOOR))
             for product, at in by_product().items() if product >= 1 for i, j in at]
    others = [(f"{axis} {value:g}, product {PRODUCTS[k]:g}", Rate(of[:, k], errors.prompts, FLOOR))
              for axis, values in errors.products.items() for value, of in values.items()
              for k in range(len(PRODUCTS)) if PRODUCTS[k] >= 1]
    return [worst("largest excess from L kappa_a' = kappa_a on ({})", cells + others, "<=", EXCESS_ALLOWED)]


def along(errors: Errors, axis: str) -> Power:
    """The exponent of M1 or T in the product needed."""
    needed = {value: least_product(of) for value, of in errors.products[axis].items()}
    return power(list(needed), np.stack(list(needed.values()), axis=1))


def with_patterns(errors: Errors) -> list[Check]:
    """The product needed does not grow with the number of patterns."""
    return [Check("exponent of M1 in the product needed", along(errors, "M1"), "<=", 0.0)]


def with_steps(errors: Errors) -> list[Check]:
    """The product needed does not grow with the number of steps."""
    return [Check("exponent of T in the product needed", along(errors, "T"), "<=", 0.0)]


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


def trained_otherwise(lab: Lab) -> dict[str, dict[float, Float[np.ndarray, "seeds products"]]]:
    """Errors at every product, by what was changed in training."""
    runs = {axis: {value: other_run(axis, value, lab.size.other_steps) for value in values}
            for axis, values in lab.size.others.items()}
    return {axis: {value: lab.errors(lab.train_seeds(run), product_tests(run)) for value, run in of.items()}
            for axis, of in runs.items()}


def collapse_panels(errors: Errors) -> list[Panel]:
    """The error against the product: every setting of the map, then other trainings."""
    x = sorted(by_product())
    curves = []
    for i, total in enumerate(SUMS):
        if total > 0:
            values = np.full((len(errors.sums), len(x)), np.nan)
            for j, factor in enumerate(FACTORS):
                values[:, x.index(round(total * factor, 6))] = errors.sums[:, i, j]
            curves.append(Curve(f"L = {total:g}", values))
    return [Panel("M1 6, p_a 0.6, kappa_a 2", x, curves),
            *(Panel(f"trained with other {axis}", PRODUCTS, [Curve(f"{axis} {value:g}", of)
                                                            for value, of in values.items()])
              for axis, values in errors.products.items())]


def run(lab: Lab) -> Findings:
    """Measure every direction, sum and scale, and other trainings at every product."""
    models, specs = one_layer_models(lab, "mamba"), tests()
    larger_batch = finer_run(lab.size.finer_steps)
    more = lab.errors(lab.train_seeds(larger_batch, lab.seeds(lab.size.finer_seeds)), [
        attacked_prompts("flip", FRACTION, factor, outlier_mixtures=(row,) * 3)
        for row in TEST_MIXTURES for factor in DECIDING])
    errors = Errors(by_factor(lab.errors(models, specs["directions"])), by_factor(lab.errors(models, specs["sums"])),
                    lab.size.prompts, trained_otherwise(lab), more.reshape(len(more), -1, len(DECIDING)))
    curves = [Curve(f"v{i + 1}', sum {sum(row):.1f}", errors.directions[:, i])
              for i, row in enumerate(TEST_MIXTURES)]
    plot = curve_figure("mamba.unseen", "The paper's three directions", "Outlier fraction 0.5, flip.",
                        [Panel("", FACTORS, curves, floor=[FLOOR] * len(FACTORS))], "kappa_a' / kappa_a", "error",
                        y_range=(-0.03, 1.03), within=UNIT)
    product = curve_figure("mamba.unseen.product", "The error against L kappa_a' / kappa_a", "Outlier fraction 0.5, "
                           "flip; left: every setting of the map with L > 0.", collapse_panels(errors),
                           "L kappa_a' / kappa_a", "error", log_x=True, y_range=(-0.03, 1.03), within=UNIT)
    rows = [(axis, f"{value:g}", *(f"{number:.3f}" for number in shown(Mean(least_product(of)))))
            for axis, values in errors.products.items() for value, of in values.items()]
    exponent = along(errors, "M1")
    settings, many = region(errors), other_run("M1", max(lab.size.others["M1"]), lab.size.other_steps)
    return Findings(
        shown="Mamba's excess error over coefficient sum and scale of the test outlier, its error by direction, and "
              "against the product of sum and scale, for several trainings.",
        measured=errors, numbers=f"{settings.sentence} The product at which the excess falls to 0.01 is "
        + ", ".join(f"{mean} at {axis} {value}" for axis, value, mean, *_ in rows)
        + f"; its exponent in M1 is {in_words(exponent)} with curvature {exponent.detail.get('curvature', 0.0):.2f}.",
        plots=[settings.plot("mamba.unseen.region", "Where unseen outliers are filtered",
                             "Excess over the floor at outlier fraction 0.5, flip."), product, plot],
        tables=[Table("mamba.unseen.product", "The product L kappa_a' / kappa_a at which the excess falls to 0.01",
                      ("trained with", "value", "mean", "low", "high"), rows)],
        specs={"theorem 2 (a), (b)": [(models[0].run, test) for test in specs["sums"]
                                      if test.outlier_scale >= 2.0 and least_coefficient_sum(test) > 0],
               "theorem 2 (a), (b), the paper's directions": [(larger_batch, test) for test in specs["directions"]
                                                              if test.outlier_scale >= 2.0],
               "theorem 2 (a), (b), many patterns": [
                   (many, test) for test in product_tests(many) if test.outlier_scale >= many.prompts.outlier_scale]})


NEAR = "The number lies too near to the threshold for this many seeds."
ENTRY = Entry(
    "mamba.unseen", "Unseen outliers: which directions and sizes are filtered", "li2025mamba, theorem 2 (a), (b)", run,
    says="Mamba filters unseen outliers that are combinations of the training ones with a positive coefficient sum and "
         "at least as large.",
    sizes=sizes(prompts=(500, 2_000, 4_000), other_steps=(600, 2_000, 4_000), finer_seeds=(2, 2, 8),
    finer_steps=(100, 100, 2_000), others=(
        {"M1": (6, 8), "T": (300, 600)}, {"M1": (6, 12), "T": (500, 2_000)},
        {"M1": (6, 9, 12, 20, 40), "p_a": (0.4, 0.8), "kappa_a": (1.0, 4.0),
         "T": (1_000, 2_000, 4_000, 10_000)})), parts=(
        Part("theorem", "theorem 2 (a), (b)", "Outliers from the training scale on are filtered, whatever their "
             "direction and positive coefficient sum (eq. 11 asks for a positive least sum L of the set).",
             theorem, theory=("Theorem 2",), accuracy=ACCURACY, earlier=(
                 Rule(finer, FINER), Rule(by_direction, "It judged only the paper's three directions, while the "
                                          "theorem covers every positive sum.")), replies={
                 "fails": "L is a constant in our proof, which needs the gate to see L kappa_a' where it saw kappa_a "
                          "in training: (b) should read L kappa_a' >= kappa_a up to a constant.",
                 "holds": "All directions with a positive sum are filtered.", "inconclusive": NEAR}),
        Part("theorem", "theorem 2 (a), (b), the paper's directions", "The same for the directions of section 4, whose "
             "sums are 0.3 to 0.9 (L = 0.3), for an error of 0.05 with the batch that it asks for.", of_the_paper,
             theory=("Theorem 2",), accuracy=FINER_ACCURACY, earlier=(Rule(
                 by_direction, "It asked for 0.1 with B = 128, for which the theorem promises 0.127 with the constant "
                               "1, about what was measured."),), replies={
                 "fails": "At the training scale alone, for the direction of the least sum: there no larger batch "
                          "helps, and with six patterns (b) must ask for a larger product of scale and sum.",
                 "holds": "The directions that we tried are filtered from the training scale on.",
                 "inconclusive": NEAR}),
        Part("theorem", "theorem 2 (a), (b), many patterns", "The same with the largest M1.", many_patterns,
             theory=("Theorem 2",), accuracy=ACCURACY, replies={
                 "holds": "With more patterns a smaller product of sum and scale is enough.",
                 "fails": "Even with many patterns a sum of 0.3 is too small at the training scale.",
                 "inconclusive": NEAR}),
        Part("ours", "three times the training scale", "Outliers three times as large are filtered.", larger, replies={
            "holds": "At three times the training scale all three directions of the paper are filtered.",
            "fails": "Three times the training scale is not enough.", "inconclusive": NEAR}),
        Part("ours", "the whole region", "Every setting with L > 0 from the training scale on is within 0.01.",
             lambda errors: region(errors).checks(), replies={
                 "fails": "Small sums at small scales get through: the premise should bound the product of both.",
                 "holds": "All settings with a positive sum are filtered.", "inconclusive": NEAR}),
        Part("ours", "the product L kappa_a' / kappa_a", "The error is a function of the product alone.", collapse,
             replies={"holds": "The gate sees only the outlier's projection on the sum of the training directions.",
                      "fails": "More than the product decides.", "inconclusive": NEAR}),
        Part("ours", "the premise L kappa_a' >= kappa_a", "From a product of 1 on outliers are filtered, whatever "
             "their direction, number of patterns, p_a, kappa_a and T.", corrected, replies={
                 "holds": "In this form the theorem's premise is enough: L kappa_a' >= kappa_a in place of "
                          "kappa_a' >= kappa_a.",
                 "fails": "Even the product must be larger than 1.", "inconclusive": NEAR}),
        Part("ours", "the product needed against M1", "The product needed does not grow with the number of patterns.",
             with_patterns, replies={
                 "holds": "More patterns need no larger product, so that a constant premise on it is enough.",
                 "fails": "The product needed grows with M1.", "inconclusive": NEAR}),
        Part("ours", "the product needed against T", "The product needed does not grow with training.", with_steps,
             replies={"holds": "The gate goes on closing slowly, so that longer training needs no larger product.",
                      "fails": "Longer training needs a larger product.", "inconclusive": NEAR})))
