"""Claim `icl.iterations`: iterations to a fixed loss as powers of M1, beta and eta.

Rules, written before the run. T is the first step at which the training loss, averaged over 5 steps, is at most 0.2;
one setting is varied at a time and log T is regressed on the logarithms of all. Theorem 3.3 (iv): the exponents must
lie within 0.35 of beta^(-2/3), eta^-1 and M1^1 (its sqrt(log M1) is omitted). M1 is a part of its own: the theorem
wants more neurons for more patterns, and here their number is fixed. Reported but not judged: beta with |q| = beta.
Cost: 160 short trainings, about 2 s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from iclab.core.spec import replace
from iclab.figures.plots import curve_figure
from iclab.lab.claims import Check, between
from iclab.lab.entries import Checks, Entry, Findings, Part, Size, Table
from iclab.lab.estimates import Power, Share
from iclab.lab.laboratory import Lab
from iclab.lab.powers import HEADER, TOLERANCE, Counts, FittedLaw, Scaling, counted, fit_law, law_panel
from iclab.papers.icl.settings import one_layer_run
from iclab.probes.scaling import iterations_to
from iclab.theory.icl import EXPONENTS, ITERATIONS
from iclab.training import Run, Trained

TARGET = 0.2
WITH_LABEL = "beta = |q|"
"""Measured but not judged."""
SIZES = {"tiny": Size(seeds=2, axes={"M1": (4, 8), "beta": (2.0, 4.0), "eta": (0.5, 1.0)}),
         "quick": Size(seeds=8, axes={"M1": (4, 8), "beta": (2.0, 4.0), "eta": (0.5, 1.0)}),
         "full": Size(seeds=8, axes={"M1": (4, 5, 6, 8, 12), "beta": (2.0, 2.5, 3.0, 4.0, 5.0),
                                     "eta": (0.25, 0.35, 0.5, 0.7, 1.0), WITH_LABEL: (2.0, 2.5, 3.0, 3.5, 4.0)})}
THEORY = {**EXPONENTS, WITH_LABEL: EXPONENTS["beta"]}
USUAL = {"M1": 6, "beta": 3.0, "eta": 0.5, WITH_LABEL: 3.0}
STEPS = 400
DIMENSION = 30


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
        if axis == WITH_LABEL:
            model = replace(model, embedding=replace(model.embedding, norm=value))
    return replace(run, model=model, prompts=prompts, training=training)


def law_checks(goal: str, axis: str, exponent: Power, theory: float, counts: Counts, *, tolerance: float = TOLERANCE
               ) -> list[Check]:
    """Most seeds reach the goal in every setting (where one does not, there is no exponent), and the exponent lies
    within the tolerance of the theorem's."""
    reached = Share(np.isfinite(counts).all(axis=1))
    return [Check(f"share of seeds that reach {goal} at every {axis}", reached, ">=", 0.5),
            *between(f"exponent of {axis} (theorem {theory:.3g})", exponent, theory - tolerance, theory + tolerance)]


def rule(*axes: str) -> Checks:
    """The exponents of these axes."""
    return lambda scaling: [check for axis in axes for check in law_checks(
        f"a loss of {TARGET}", axis, scaling.exponents[axis], THEORY[axis], scaling.counts[axis])]


def measure(lab: Lab) -> Scaling:
    """Iterations along every axis."""
    size = SIZES[lab.scale]
    return counted(lab, "icl.iterations", size.axes, USUAL, a_run, iterations, lab.seeds(size.seeds))


def steps_law(scaling: Scaling, lab: Lab) -> FittedLaw:
    """The theorem's law for the iterations, fitted to the axes that are judged."""
    return fit_law(ITERATIONS, {axis: [ITERATIONS.order(a_run(axis, value), None) for value in values]
                                for axis, values in scaling.axes.items() if axis != WITH_LABEL}, scaling.counts, lab)


def run(lab: Lab) -> Findings:
    """Count the iterations and draw the power laws."""
    scaling = measure(lab)
    fitted, rows = steps_law(scaling, lab), scaling.rows(THEORY)
    plot = curve_figure("icl.iterations", "Iterations to a training loss of 0.2",
                        f"One setting varied at a time, the others M1 6, beta 3, eta 0.5; dashed: {fitted.words}",
                        [law_panel(axis, values, {"softmax": scaling.counts[axis]},
                                   fitted.along(ITERATIONS.order(a_run(axis, x), None) for x in values))
                         for axis, values in scaling.axes.items()], "", "iterations", log_x=True, log_y=True)
    ends = {axis: [a_run(axis, value) for value in (min(scaling.axes[axis]), max(scaling.axes[axis]))]
            for axis in EXPONENTS if axis in scaling.axes}
    return Findings(
        shown="How many iterations bring the training loss down to 0.2, one setting varied at a time.",
        measured=scaling, plots=[plot], tables=[Table("icl.iterations", "Exponents", HEADER, rows)],
        constants=fitted.constants,
        numbers="Exponents: " + ", ".join(f"{name} {value} {interval} (theorem {theory})"
                                          for name, theory, value, interval, _ in rows) + ".",
        # The loss is that of training, so the prompts of training are the test.
        specs={STEP_AND_NORM: [(run, run.prompts) for run in (*ends["beta"], *ends["eta"])],
               PATTERNS: [(run, run.prompts) for run in ends["M1"]]})


STEP_AND_NORM, PATTERNS = "theorem 3.3 (iv), eta and beta", "theorem 3.3 (iv), M1"
ENTRY = Entry(
    "icl.iterations", "Iterations to a fixed loss, as powers of the settings", "li2024icl, theorem 3.3", run,
    says="The one-layer Transformer needs T ~ eta^-1 M1 beta^(-2/3) iterations.", sizes=SIZES, parts=(
        Part("theorem", STEP_AND_NORM, "The required number of iterations falls like 1 / eta and like beta^(-2/3).",
             rule("eta", "beta"), theory=("Theorem 3.3",), measured=("number of iterations",)),
        Part("theorem", PATTERNS, "The required number of iterations grows like M1.", rule("M1"),
             theory=("Theorem 3.3",), measured=("number of iterations",))))
