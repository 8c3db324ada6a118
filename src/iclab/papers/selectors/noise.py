"""Claim `selectors.noise`: iterations against lam*, tau and sqrt(M), error against noise and on new patterns.

Rule, written before the run. T is the first step at which the training loss, averaged over 10 steps, is at most 0.2.
Its exponents must lie within 0.35 of the theorem's lam*^-1 and M^(1/2) (every coefficient equal to lam*; M1 = 4, so
that M >= M1^2); T at tau = 0.15 divided by T at 0 must be at least half the theorem's factor, (1 - 0.15 M1)^(-1/2) =
3.2. The error is at most 0.01 on fresh prompts of the training tasks and with new patterns that are positive
combinations of the training ones. Not judged: new patterns of coefficient sum 0.
Cost: 40 short trainings in 4 programs, about 15 s. Expect: lam* -2.0, M -.2, no effect of tau.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, Table
from iclab.lab.powers import HEADER, Counts, counted, fit_law, law_panel, power_checks, power_row
from iclab.papers.selectors.settings import SIZES, a_run, training_prompts
from iclab.papers.selectors.trained import trained_models
from iclab.probes import UNIT, information_floor, model_errors, seed_interval
from iclab.probes.scaling import exponent, iterations_to
from iclab.prompts.patterns import Matrix
from iclab.sweeps.store import run_id
from iclab.theory.selectors import EXPONENTS as THEORY
from iclab.theory.selectors import ITERATIONS, noise_factor
from iclab.training import Run, Trained

AXES: dict[str, dict[str, tuple[float, ...]]] = {
    "quick": {"lam*": (0.7, 1.0), "tau": (0.0, 0.15)},
    "full": {"lam*": (0.5, 0.7, 1.0), "tau": (0.0, 0.05, 0.1, 0.15), "M": (16, 40)},
}
STEPS = {"lam*": 800, "tau": 400, "M": 400}
TARGET = 0.2
M1 = 6
NOISE = (0.0, 0.5, 1.0, 2.0, 3.0)
"""tau of the test prompts; beta is 3."""
R = float(np.sqrt(0.5))
POSITIVE: Matrix = ((R, R, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, R, R, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, R, R))
MIXED: Matrix = ((R, -R, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, R, -R, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, R, -R))
ERROR_ALLOWED = 0.01
STATEMENT = ("T grows like sqrt(M) / lam* and with the noise; new patterns that are positive combinations of the "
             "training patterns are solved.")
PLACE = "li2024selectors, theorems 1, 2"


def iterations(trained: Trained, test: Any = None, seed: int = 0) -> float:
    """Measure: the step at which the loss falls to the target."""
    return iterations_to(trained, TARGET)


def axis_run(axis: str, value: float) -> Run:
    """The base run with one setting changed."""
    changes: dict[str, dict[str, Any]] = {
        "lam*": {"coefficient_low": value, "coefficient_high": value}, "tau": {"noise_norm": value},
        "M": {"relevant_patterns": 4, "irrelevant_patterns": int(value) - 4, "dimension": int(value)}}
    return a_run(STEPS[axis], **changes[axis])


def tests() -> list[Any]:
    """Noisier prompts of the training tasks, positive combinations, combinations with coefficient sum 0."""
    return [*(training_prompts(noise_norm=noise) for noise in NOISE),
            *(training_prompts(pattern_mixtures=rows, tasks="all") for rows in (POSITIVE, MIXED))]


def checks(counts: dict[str, Counts], errors: Float[np.ndarray, "seeds tests"], axes: dict[str, Sequence[float]]
           ) -> list[Check]:
    """The rule above."""
    reached = np.mean([np.isfinite(values).mean(axis=1) for values in counts.values()], axis=0)
    judged = [Check.of(f"share of runs whose loss falls to {TARGET}", seed_interval(reached, within=UNIT), ">=",
                       1.0)]
    for axis, theory in THEORY.items():
        if axis in counts:
            judged += power_checks(f"exponent of {axis} (theorem {theory:g})", exponent(axes[axis], counts[axis]),
                                   theory)
    slowdown = counts["tau"][:, -1] / counts["tau"][:, 0]
    factor = noise_factor(axes["tau"][-1], M1)
    return [*judged, Check.of(f"T at tau = {axes['tau'][-1]:g} over T without noise (theorem {factor:.1f})",
                              seed_interval(slowdown), ">=", factor / 2),
            Check.of("error on the training tasks", seed_interval(errors[:, 0], within=UNIT), "<=", ERROR_ALLOWED),
            Check.of("error with positive combinations", seed_interval(errors[:, -2], within=UNIT), "<=",
                     ERROR_ALLOWED)]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    size, axes, models = SIZES[lab.scale], AXES[lab.scale], trained_models(lab)
    seeds = lab.seeds(size.seeds)
    counts, runs = counted(lab, "selectors.noise", axes, axis_run, iterations, seeds)

    def compute() -> list:
        return model_errors(models, tests(), count=size.prompts, seeds=seeds).tolist()

    errors = np.array(lab.store.recall("selectors-noise", [[m.run for m in models], tests(), size.prompts], compute))
    judged = checks(counts, errors, axes)  # type: ignore[arg-type]
    law = fit_law(ITERATIONS, {axis: [ITERATIONS.order(axis_run(axis, value), None) for value in values]
                               for axis, values in axes.items()}, counts, lab)
    powers = curve_figure("selectors.noise", "Iterations to a training loss of 0.2",
                          f"One setting varied at a time; dashed: {law.words}",
                          [law_panel(axis, axes[axis], {"softmax": counts[axis]}, law.line(axis)) for axis in THEORY
                           if axis in counts], "", "iterations", log_x=True, log_y=True)
    noisy = curve_figure("selectors.noise.test", "Error against the noise of the test prompts",
                         "Training prompts have noise of norm at most 0.1; patterns have norm 3.",
                         [Panel("training tasks", NOISE, [Curve("softmax", errors[:, :len(NOISE)])],
                                floor=[information_floor(training_prompts())] * len(NOISE))],
                         "tau, largest norm of the noise", "error", within=UNIT)
    claim = Claim(id="selectors.noise", statement=STATEMENT, place=PLACE, checks=judged, conditions=[],
                  settings={"training": to_json(a_run(size.steps)), "prompts": size.prompts}, seeds=seeds,
                  runs=[*(str(run_id(m.run)) for m in models), *runs], scale=lab.scale)
    rows = [power_row(axis, axes[axis], counts[axis], THEORY[axis]) for axis in THEORY if axis in counts]
    means = errors.mean(axis=0)
    return Outcome(
        shown="How long training takes with smaller coefficients, more noise and more patterns, and the trained "
              "model's error with noise and with new patterns.",
        paper="T ~ sqrt(M) / lam* (1 - tau M1)^(-1/2); no error on the training tasks, nor with new patterns that are "
              "positive combinations of the training ones.",
        measured=f"Verdict: {claim.verdict}. Exponents: "
                 + ", ".join(f"{name} {mean} {interval} (theorem {theory})" for name, theory, mean, interval in rows)
                 + f". T with noise of 0.15 over T without: {(counts['tau'][:, -1] / counts['tau'][:, 0]).mean():.3f}. "
                   f"Error on the training tasks {means[0]:.4f}, with test noise of norm 3 "
                   f"{means[len(NOISE) - 1]:.3f}; positive combinations {means[-2]:.4f}, combinations of sum 0 "
                   f"{means[-1]:.4f}, so that positive coefficients are not needed. The final errors are as stated; "
                   "the training time is not: small coefficients cost more than the order says, noise and further "
                   "irrelevant patterns cost nothing.",
        plots=[powers, noisy], tables=[Table("selectors.noise", "Exponents, with bootstrap intervals over seeds",
                                             HEADER, rows)],
        claim=claim, seeds=seeds, settings=claim.settings, constants=law.constants)


ENTRY = Entry("selectors.noise", "claim", "Coefficients, noise, number of patterns", PLACE, run)
