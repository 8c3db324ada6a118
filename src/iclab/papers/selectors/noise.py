"""Claim `selectors.noise`: iterations against lam*, tau and sqrt(M), error against noise and on new patterns.

Rules, written before the run. T is the first step at which the training loss, averaged over 10 steps, is at most 0.2.
Theorem 1, the law of T: most seeds reach that loss in every run; the exponents lie within 0.35 of the theorem's lam*^-1
and M^(1/2) (every coefficient equal to lam*; M1 = 4, so that M >= M1^2); T at tau = 0.15 divided by T at 0 is at least
half the theorem's factor, (1 - 0.15 M1)^(-1/2) = 3.2; this is measured with beta 3 and 100 neurons, as trainings inside
the premises take too long for five points per axis. Theorem 1, the error, inside its premises: at most 0.01 on fresh
prompts of the training tasks. Theorem 2: the same with new patterns that are positive combinations of the training
ones. Not judged: the settings of the figure, and new patterns of coefficient sum 0. Cost: 96 short trainings and those
of `selectors.features`, about 5 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, between
from iclab.lab.entries import Entry, Findings, Part, Rule, Size, Table
from iclab.lab.estimates import Mean, Power, Rate, power
from iclab.lab.laboratory import Lab
from iclab.lab.powers import HEADER, TOLERANCE, Counts, all_reach, counted, fit_law, in_words, law_panel, power_row
from iclab.papers.selectors.settings import CONSTANT, OUTSIDE, a_run, theorem_prompts, training_prompts
from iclab.papers.selectors.trained import theorem_models, trained_models
from iclab.probes import UNIT, information_floor
from iclab.probes.scaling import iterations_to
from iclab.prompts.patterns import Matrix
from iclab.theory.selectors import EXPONENTS as THEORY
from iclab.theory.selectors import ITERATIONS, noise_factor
from iclab.training import Run, Trained

SIZES = {
    "tiny": Size(seeds=2, steps=50, prompts=500, axes={"lam*": (0.7, 1.0), "tau": (0.0, 0.15)}),
    "quick": Size(seeds=8, steps=400, prompts=1_000, axes={"lam*": (0.7, 0.85, 1.0), "tau": (0.0, 0.15)}),
    "full": Size(seeds=8, steps=400, prompts=5_000, axes={
        "lam*": (0.5, 0.6, 0.7, 0.85, 1.0), "tau": (0.0, 0.15), "M": (16, 20, 25, 32, 40)}),
}
TARGET, ERROR_ALLOWED, M1 = 0.2, 0.01, 6
NOISE = (0.0, 0.5, 1.0, 2.0, 3.0)
"""tau of the test prompts; beta is 3."""
R = float(np.sqrt(0.5))
POSITIVE: Matrix = ((R, R, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, R, R, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, R, R))
FOUR_TO_THREE: Matrix = ((R, R, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0), (0.0, 0.0, 0.0, 1.0))
MIXED: Matrix = ((R, -R, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, R, -R, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, R, -R))


class Measured(NamedTuple):
    """Iterations along every axis, and errors by test."""

    axes: Mapping[str, Sequence[float]]
    counts: Mapping[str, Counts]
    errors: Float[np.ndarray, "seeds tests"]
    prompts: int
    inside: Float[np.ndarray, "seeds 2"]
    """Errors inside the premises: on the training tasks, and with positive combinations."""

    @property
    def exponents(self) -> dict[str, Power]:
        """Of T, each along its axis: they have different numbers of relevant patterns."""
        return {axis: power(self.axes[axis], self.counts[axis]) for axis in THEORY if axis in self.counts}

    @property
    def slowdown(self) -> Float[np.ndarray, " seeds"]:
        """T with the most noise over T without."""
        return self.counts["tau"][:, -1] / self.counts["tau"][:, 0]


def iterations(trained: Trained, test: Any = None, seed: int = 0) -> float:
    """Measure: the step at which the loss falls to the target."""
    return iterations_to(trained, TARGET)


def axis_run(axis: str, value: float, steps: int) -> Run:
    """The base run with one setting changed."""
    changes: dict[str, dict[str, Any]] = {
        "lam*": {"coefficient_low": value, "coefficient_high": value}, "tau": {"noise_norm": value},
        "M": {"relevant_patterns": 4, "irrelevant_patterns": int(value) - 4, "dimension": int(value)}}
    # Small coefficients take longer.
    return a_run(2 * steps if axis == "lam*" and value < 0.7 else steps, **changes[axis])


def tests() -> list[Any]:
    """Noisier prompts of the training tasks, positive combinations, combinations with coefficient sum 0."""
    return [*(training_prompts(noise_norm=noise) for noise in NOISE),
            *(training_prompts(pattern_mixtures=rows, tasks="all") for rows in (POSITIVE, MIXED))]


def law_of_iterations(measured: Measured) -> list[Check]:
    """Theorem 1: T as a power of lam* and M, and with noise."""
    tau = measured.axes["tau"][-1]
    factor = noise_factor(tau, M1)
    return [all_reach(f"loss falls to {TARGET}", measured.counts.values()),
            *(check for axis, exponent in measured.exponents.items() for check in between(
                f"exponent of {axis} (theorem {THEORY[axis]:g})", exponent, THEORY[axis] - TOLERANCE,
                THEORY[axis] + TOLERANCE)),
            Check(f"T at tau = {tau:g} over T without noise (theorem {factor:.1f})", Mean(measured.slowdown), ">=",
                  factor / 2)]


def small_error(name: str, test: int, which: str = "inside") -> Any:
    """The rule that the error on this test is small."""
    return lambda measured: [Check(name, Rate(getattr(measured, which)[:, test], measured.prompts), "<=",
                                   ERROR_ALLOWED)]


def theorem_tests() -> list[Any]:
    """Inside the premises: the training tasks, and three patterns that are positive combinations."""
    return [theorem_prompts(), theorem_prompts(pattern_mixtures=FOUR_TO_THREE, tasks="all")]


def run(lab: Lab) -> Findings:
    """Measure iterations and errors."""
    axes, models = lab.size.axes, trained_models(lab)

    def run_at(axis: str, value: float) -> Run:
        return axis_run(axis, value, lab.size.steps)

    counts = counted(lab, "selectors.noise", axes, {}, run_at, iterations, lab.seeds()).counts
    inside = theorem_models(lab)
    measured = Measured(axes, counts, lab.errors(models, tests()), lab.size.prompts,
                        lab.errors(inside, theorem_tests()))
    law = fit_law(ITERATIONS, {axis: [ITERATIONS.order(run_at(axis, value), None) for value in values]
                               for axis, values in axes.items()}, counts, lab)
    powers = curve_figure("selectors.noise", "Iterations to a training loss of 0.2",
                          f"One setting varied at a time; dashed: {law.words}",
                          [law_panel(axis, axes[axis], {"softmax": counts[axis]}, law.line(axis))
                           for axis in measured.exponents], "", "iterations", log_x=True, log_y=True)
    noisy = curve_figure("selectors.noise.test", "Error against the noise of the test prompts",
                         "Training prompts have noise of norm at most 0.1; patterns have norm 3.",
                         [Panel("training tasks", NOISE, [Curve("softmax", measured.errors[:, :len(NOISE)])],
                                floor=[information_floor(training_prompts())] * len(NOISE))],
                         "tau, largest norm of the noise", "error", within=UNIT)
    means = measured.errors.mean(axis=0)
    ends = [run_at(axis, values[i]) for axis, values in axes.items() for i in (0, -1)]
    return Findings(
        shown="How long training takes with smaller coefficients, more noise and more patterns, and the trained "
              "model's error with noise and with new patterns.", measured=measured,
        numbers="Exponents: " + ", ".join(f"{axis} {in_words(exponent)} (theorem {THEORY[axis]:g})"
                                          for axis, exponent in measured.exponents.items())
                + f". T with noise of {axes['tau'][-1]:g} over T without: {measured.slowdown.mean():.3f}. Error on the "
                  f"training tasks {means[0]:.4f}, with test noise of norm {NOISE[-1]:g} {means[len(NOISE) - 1]:.3f}; "
                  f"with positive combinations {means[-2]:.4f}, with combinations of sum 0 {means[-1]:.4f}. Inside the "
                  "premises: "
                  f"{measured.inside[:, 0].mean():.4f}, with positive combinations {measured.inside[:, 1].mean():.4f}.",
        plots=[powers, noisy], constants=law.constants,
        tables=[Table("selectors.noise", "Exponents, with intervals over seeds", HEADER,
                      [power_row(axis, exponent, THEORY[axis]) for axis, exponent in measured.exponents.items()])],
        specs={"theorem 1, T": [(end, end.prompts) for end in ends],
               **{place: [(inside[0].run, test)]
                  for place, test in zip(("theorem 1, error", "theorem 2"), theorem_tests(), strict=True)}})


ENTRY = Entry(
    "selectors.noise", "Coefficients, noise, number of patterns", "li2024selectors, theorems 1, 2", run,
    says="T grows like sqrt(M) / lam* and with the noise; new patterns that are positive combinations of the training "
         "patterns are solved.", sizes=SIZES, parts=(
        Part("theorem", "theorem 1, T", "T ~ sqrt(M) / lam* (1 - tau M1)^(-1/2).", law_of_iterations,
             theory=("Theorem 1",), measured=("number of iterations",)),
        Part("theorem", "theorem 1, error", "The trained model makes no error on the training tasks.",
             small_error("error on the training tasks", 0), theory=("Theorem 1",), constant=CONSTANT,
             earlier=(Rule(small_error("error on the training tasks", 0, "errors"), OUTSIDE),)),
        Part("theorem", "theorem 2", "Nor does it with new patterns that are positive combinations of the "
             "training ones.", small_error("error with positive combinations", 1), theory=("Theorem 2",),
             constant=CONSTANT, earlier=(Rule(small_error("error with positive combinations", -2, "errors"),
                                              OUTSIDE),))))
