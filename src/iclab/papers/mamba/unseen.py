"""Claim `mamba.unseen`: unseen outliers are filtered when their coefficient sum is positive and they are large enough.

Rule, written before the run, at outlier fraction 0.5 under flip (inside theorem 2 (c)), for the models of figure 2. The
paper's three directions have sums 0.9, 0.5 and 0.3, all positive. Their largest excess over the floor is at most 0.01,
both at three times the training scale and at the training scale itself, the edge of premise (b). Ours, not judged:
where filtering breaks as the coefficient sum goes from positive to negative.
Cost: no extra training, 1.6 million test prompts, a few seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.mamba.settings import SIZES, TEST_MIXTURES, attacked_prompts, training_prompts
from iclab.papers.mamba.trained import one_layer_models
from iclab.probes import UNIT, information_floor, model_errors, seed_interval
from iclab.prompts.patterns import Matrix
from iclab.sweeps.store import run_id
from iclab.theory.mamba import theorem2_conditions
from iclab.training import Trained

FRACTION = 0.5
EXCESS_ALLOWED = 0.01
SUMS = tuple(float(f"{value:.3f}") for value in np.linspace(-1.7, 1.7, 13))
FACTORS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
PROMPTS = {"quick": 2_000, "full": 4_000}
STATEMENT = ("One-layer Mamba generalises to unseen outliers that are combinations of the training outliers with a "
             "positive coefficient sum and at least as large.")


def directions(total: float) -> Matrix:
    """Three unit coefficient vectors with this sum, evenly spaced around the diagonal (1, 1, 1)."""
    first, second = np.array([1, -1, 0]) / np.sqrt(2), np.array([1, 1, -2]) / np.sqrt(6)
    radius = np.sqrt(1 - total**2 / 3)
    return tuple(tuple(float(x) for x in total / 3 + radius * (np.cos(angle) * first + np.sin(angle) * second))
                 for angle in (0.3, 0.3 + 2 * np.pi / 3, 0.3 + 4 * np.pi / 3))


@dataclass(frozen=True)
class Unseen:
    """Errors per seed: by coefficient sum at three times and at the training scale; by direction and scale."""

    by_sum: Float[np.ndarray, "factors seeds sums"]
    by_factor: Float[np.ndarray, "directions seeds factors"]


def measure(models: list[Trained], seeds: list[int], prompts: int) -> Unseen:
    """Errors of trained models, by coefficient sum and by direction."""
    tests = [attacked_prompts("flip", FRACTION, factor, outlier_mixtures=directions(total))
             for factor in (3.0, 1.0) for total in SUMS]
    tests += [attacked_prompts("flip", FRACTION, factor, outlier_mixtures=(row,) * 3)
              for row in TEST_MIXTURES for factor in FACTORS]
    errors = model_errors(models, tests, count=prompts, seeds=seeds)
    sums, rest = errors[:, :2 * len(SUMS)], errors[:, 2 * len(SUMS):]
    return Unseen(sums.reshape(len(seeds), 2, len(SUMS)).swapaxes(0, 1),
                  rest.reshape(len(seeds), 3, len(FACTORS)).swapaxes(0, 1))


def checks(result: Unseen) -> list[Check]:
    """The rule above."""
    floor = information_floor(attacked_prompts("flip", FRACTION))
    judged = []
    for factor, name in ((3.0, "three times the training scale"), (1.0, "the training scale")):
        excess = result.by_factor[:, :, FACTORS.index(factor)] - floor
        worst = int(np.argmax(excess.mean(axis=1)))
        judged.append(Check.of(f"largest excess at {name} (direction v{worst + 1}')", seed_interval(excess[worst]),
                               "<=", EXCESS_ALLOWED))
    return judged


def run(lab: Lab) -> Outcome:
    """Judge the claim and draw where it breaks."""
    size, prompts = SIZES[lab.scale], PROMPTS[lab.scale]
    seeds = lab.seeds(size.seeds)
    models = one_layer_models(lab, "mamba")

    def compute() -> list:
        result = measure(models, seeds, prompts)
        return [result.by_sum.tolist(), result.by_factor.tolist()]

    stored = lab.store.recall("mamba-unseen", [[m.run for m in models], prompts], compute)
    result = Unseen(*(np.array(part) for part in stored))
    floor = information_floor(attacked_prompts("flip", FRACTION))
    plot = curve_figure(
        "mamba.unseen", "Where unseen outliers get through",
        "Outlier fraction 0.5, flip. Left: three directions for each coefficient sum. Right: the paper's three "
        "directions.",
        [Panel("by coefficient sum", SUMS, [Curve("kappa_a' = 3 kappa_a", result.by_sum[0]),
                                            Curve("kappa_a' = kappa_a", result.by_sum[1])],
               floor=[floor] * len(SUMS), x_label="coefficient sum of the test outlier"),
         Panel("by scale", FACTORS, [Curve(f"v{i + 1}', sum {sum(row):.1f}", result.by_factor[i])
                                     for i, row in enumerate(TEST_MIXTURES)],
               floor=[floor] * len(FACTORS), x_label="test scale / training scale")],
        "", "error", y_range=(-0.03, 1.03), within=UNIT)
    judged = checks(result)
    breaks = [total for i, total in enumerate(SUMS) if result.by_sum[0, :, i].mean() > 0.05]
    claim = Claim(id="mamba.unseen", statement=STATEMENT, place="li2025mamba, theorem 2 (a), (b)", checks=judged,
                  conditions=theorem2_conditions(training_prompts(), attacked_prompts("flip", FRACTION, 1.0)),
                  settings={"test": to_json(attacked_prompts("flip", FRACTION)), "prompts": prompts}, seeds=seeds,
                  runs=[str(run_id(m.run)) for m in models], scale=lab.scale,
                  notes=["The theorem's bound on the scale hides a constant: what moves the gate is the product of "
                         "scale and coefficient sum, so a small sum needs a larger outlier than premise (b) requires."])
    return Outcome(
        shown="Mamba's error at outlier fraction 0.5 under flip, against the coefficient sum of the test outlier and "
              "against its size.",
        paper="Any combination of the training outliers with a positive coefficient sum is filtered, if it is at least "
              "as large as they are.",
        measured=f"Verdict: {claim.verdict}. At three times the training scale the worst of the paper's directions has "
                 f"an excess of {judged[0].measured:.4f}; at the training scale {judged[1].measured:.3f}. At three "
                 f"times the scale the error exceeds 0.05 for coefficient sums up to {max(breaks):.2f}."
        if breaks else f"Verdict: {claim.verdict}. No coefficient sum tried broke the model.",
        plots=[plot], claim=claim, seeds=seeds, settings=claim.settings)


ENTRY = Entry("mamba.unseen", "claim", "Unseen outliers: which directions and sizes are filtered",
              "li2025mamba, theorem 2 (a), (b)", run)
