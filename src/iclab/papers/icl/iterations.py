"""Claim `icl.iterations`: iterations to a fixed loss as powers of M1, beta and eta.

Rule, written before the run. T is the first step at which the training loss, averaged over 5 steps, is at most 0.2;
one setting is varied at a time and log T is regressed on its logarithm. The exponents must lie within 0.35 of the
theorem's: M1^1 (its sqrt(log M1) is omitted), beta^(-2/3), eta^-1. Reported but not judged: beta with
|q| = beta.
Cost: 60 short trainings in 4 programs, about 15 s.
Expect: M1 .39, beta -1.6 (-2.5 with |q| = beta), eta -.94: T falls faster with beta, and grows more slowly with M1,
than the theorem says.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from iclab.core.identity import to_json
from iclab.core.spec import replace
from iclab.figures.plots import curve_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, Table
from iclab.lab.powers import HEADER, Counts, FittedLaw, counted, fit_law, law_panel, power_checks, power_row
from iclab.papers.icl.settings import in_domain, one_layer_run
from iclab.probes import UNIT, seed_interval
from iclab.probes.scaling import exponent, iterations_to
from iclab.theory.icl import EXPONENTS, ITERATIONS, theorem33_conditions
from iclab.training import Run, Trained

TARGET = 0.2
AXES: dict[str, dict[str, tuple[float, ...]]] = {
    "quick": {"beta": (2.0, 4.0), "eta": (0.5, 1.0)},
    "full": {"M1": (4, 6, 8, 12), "beta": (2.0, 2.5, 3.0, 4.0, 5.0), "eta": (0.25, 0.5, 1.0),
             "beta = |q|": (2.0, 3.0, 4.0)},
}
THEORY = {**EXPONENTS, "beta = |q|": EXPONENTS["beta"]}
NOT_JUDGED = ("beta = |q|",)
"""Measured but not judged."""
SEEDS = {"quick": 4, "full": 4}
STEPS = 400
DIMENSION = 30
STATEMENT = "The one-layer Transformer needs T ~ eta^-1 M1 beta^(-2/3) iterations."


def iterations(trained: Trained, test: Any = None, seed: int = 0) -> float:
    """Measure: the step at which the loss falls to the target."""
    return iterations_to(trained, TARGET)


def a_run(axis: str, value: float) -> Run:
    """The base setting with one value changed."""
    run = one_layer_run(0.8, STEPS)
    model, prompts, training = run.model, run.prompts, replace(run.training, record_every=5)
    if axis == "M1":
        prompts = replace(prompts, relevant_patterns=int(value), irrelevant_patterns=DIMENSION - int(value))
    elif axis == "eta":
        training = replace(training, learning_rate=value)
    else:
        prompts = replace(prompts, pattern_norm=value)
        if axis == "beta = |q|":
            model = replace(model, embedding=replace(model.embedding, norm=value))
    return replace(run, model=model, prompts=prompts, training=training)


def checks(counts: dict[str, Counts], scale: str) -> list[Check]:
    """The rule above, and that every run reaches the target."""
    reached = np.mean([np.isfinite(values).mean(axis=1) for values in counts.values()], axis=0)
    judged = [Check.of(f"share of runs whose loss falls to {TARGET}", seed_interval(reached, within=UNIT), ">=",
                       1.0)]
    for axis, values in counts.items():
        if axis not in NOT_JUDGED:
            judged += power_checks(f"exponent of {axis} (theorem {THEORY[axis]:.3g})",
                                   exponent(AXES[scale][axis], values), THEORY[axis])
    return judged


def measure(lab: Lab) -> tuple[dict[str, Counts], list[str]]:
    """Iterations along every axis, and the ids of the runs."""
    return counted(lab, "icl.iterations", AXES[lab.scale], a_run, iterations, lab.seeds(SEEDS[lab.scale]))


def steps_law(lab: Lab, counts: dict[str, Counts]) -> FittedLaw:
    """The theorem's law for the iterations, fitted."""
    return fit_law(ITERATIONS, {axis: [ITERATIONS.order(a_run(axis, value), None) for value in values]
                                for axis, values in AXES[lab.scale].items() if axis not in NOT_JUDGED}, counts, lab)


def run(lab: Lab) -> Outcome:
    """Judge the claim and draw the power laws."""
    axes, seeds = AXES[lab.scale], lab.seeds(SEEDS[lab.scale])
    counts, runs = measure(lab)
    judged, law = checks(counts, lab.scale), steps_law(lab, counts)
    plot = curve_figure("icl.iterations", "Iterations to a training loss of 0.2",
                        f"One setting varied at a time, the others M1 6, beta 3, eta 0.5; dashed: {law.words}",
                        [law_panel(axis, axes[axis], {"softmax": values},
                                   law.along(ITERATIONS.order(a_run(axis, x), None) for x in axes[axis]))
                         for axis, values in counts.items()], "", "iterations", log_x=True, log_y=True)
    claim = Claim(id="icl.iterations", statement=STATEMENT, place="li2024icl, theorem 3.3", checks=judged,
                  conditions=theorem33_conditions(a_run("beta", 3.0), in_domain()), seeds=seeds,
                  settings={"base": to_json(a_run("beta", 3.0)), "target loss": TARGET},
                  runs=runs, scale=lab.scale)
    rows = [power_row(axis, axes[axis], values, THEORY[axis]) for axis, values in counts.items()]
    return Outcome(
        shown="How many iterations bring the training loss down to 0.2, one setting varied at a time.",
        paper="T grows like M1 / eta and falls like beta^(-2/3), up to constants.",
        measured=f"Verdict: {claim.verdict}. Measured: "
                 + ", ".join(f"{name} {value} {interval} (theorem {theory})" for name, theory, value, interval in rows)
                 + ". The theorem's T is enough, and eta enters as it says; but larger patterns help much more, and "
                   "more patterns cost less, than it says.",
        plots=[plot], tables=[Table("icl.iterations", "Exponents, with bootstrap intervals over seeds", HEADER, rows)],
        claim=claim, seeds=seeds, settings=claim.settings, constants=law.constants)


ENTRY = Entry("icl.iterations", "claim", "Iterations to a fixed loss, as powers of the settings",
              "li2024icl, theorem 3.3", run)
