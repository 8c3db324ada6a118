"""Claim `cot.iterations`: iterations as powers of M, K and 1/alpha; training prompt length in proportion to 1/alpha.

Rules, written before the run. T is the first step at which the training loss, averaged over 5 steps, is at most 0.05,
one setting varied at a time; l_tr is the length at which the loss after 400 steps is 0.05. The theorem says what is
enough: most seeds reach the loss in every run, and no exponent is more than 0.35 beyond the theorem's (1 in M, -1 in
alpha, for l_tr as well; 3 in K, without tolerance). Whether as much is needed: those of M, alpha and l_tr are at most
0.35 short of the theorem's. Ours: that of K is above 0. Reported but not judged: when the first stage of `cot.dynamics`
ends, against alpha. Cost: 280 short trainings, about 3 s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from iclab.figures.plots import curve_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Note, Part, Size, Table
from iclab.lab.estimates import Power, power
from iclab.lab.laboratory import Lab, per_seed
from iclab.lab.powers import HEADER, TOLERANCE, Counts, Scaling, all_reach, fit_law, in_words, law_panel, power_row
from iclab.papers.cot.dynamics import stages
from iclab.papers.cot.mechanism import inside
from iclab.papers.cot.settings import a_run
from iclab.probes.by_length import needed_examples
from iclab.probes.scaling import iterations_to
from iclab.theory.cot import ITERATION_EXPONENTS, ITERATIONS, LENGTH_EXPONENT, TRAINING_LENGTH
from iclab.training import Run, Trained

TARGET, LENGTH = 0.05, 20
USUAL = {"M": 20.0, "K": 3.0, "alpha": 0.4}
SIZES = {
    "tiny": Size(seeds=2, steps=100, axes={"K": (2, 3), "alpha": (0.4, 0.6)}, lengths=(10, 20), fractions=(0.4, 0.6)),
    "quick": Size(seeds=8, steps=400, axes={"K": (2, 3, 4), "alpha": (0.2, 0.4, 0.6)}, lengths=(5, 10, 20, 40),
                  fractions=(0.1, 0.2, 0.4)),
    "full": Size(seeds=8, steps=400, axes={"M": (10, 13, 16, 20, 28), "K": (2, 3, 4, 5, 6),
                                           "alpha": (0.2, 0.3, 0.4, 0.5, 0.6)},
                 lengths=(5, 10, 20, 40), fractions=(0.1, 0.15, 0.2, 0.3, 0.4)),
}

Models = dict[tuple[str, float, int], list[Trained]]
"""Trained models, by axis, value and training prompt length."""


class Measured(NamedTuple):
    """Iterations along every axis, and training prompt lengths by alpha."""

    iterations: Scaling
    fractions: tuple[float, ...]
    lengths: Counts

    @property
    def exponents(self) -> dict[str, Power]:
        """Of T in every setting, and of l_tr in alpha."""
        return {**self.iterations.exponents, "alpha, l_tr": power(self.fractions, self.lengths)}


THEORY = {**ITERATION_EXPONENTS, "alpha, l_tr": LENGTH_EXPONENT}


def run_at(lab: Lab, axis: str, value: float, length: int = LENGTH) -> Run:
    """The default training run with one value changed."""
    changes: Any = {"M": {"patterns": int(value)}, "K": {"reasoning_steps": int(value)},
                    "alpha": {"matching_fraction": value}}[axis]
    return a_run(SIZES[lab.scale].steps, record_every=5, prompt_length=length, **changes)


def trained(lab: Lab) -> Models:
    """All models; those of the default length along alpha are probed."""
    size = SIZES[lab.scale]
    plan = [(axis, value, LENGTH) for axis, values in size.axes.items() for value in values]
    plan += [("alpha", fraction, length) for fraction in size.fractions for length in (*size.lengths, LENGTH)]
    models: Models = {}
    for probe in (inside, None):
        points = [p for p in dict.fromkeys(plan) if (probe is inside) == (p[0] == "alpha" and p[2] == LENGTH)]
        runs = [run for point in points for run in per_seed(run_at(lab, *point), lab.seeds(size.seeds))]
        fresh = lab.train(runs, probe)
        models |= {point: fresh[i * size.seeds:(i + 1) * size.seeds] for i, point in enumerate(points)}
    return models


def measure(lab: Lab, models: Models) -> Measured:
    """What the rules read."""
    size = SIZES[lab.scale]
    counts = {axis: np.array([[iterations_to(model, TARGET) for model in models[axis, value, LENGTH]]
                              for value in values]).T for axis, values in size.axes.items()}
    losses = np.array([[[model.loss[-10:].mean() for model in models["alpha", fraction, length]]
                        for length in size.lengths] for fraction in size.fractions])
    return Measured(Scaling(size.axes, counts, USUAL), size.fractions,
                    needed_examples(size.lengths, np.moveaxis(losses, 2, 0), TARGET))


def bounds_suffice(measured: Measured) -> list[Check]:
    """The theorem: every run reaches the loss, and no exponent is beyond the bound's."""
    limits = {name: ("<=", theory + (0.0 if name == "K" else TOLERANCE)) if theory > 0 else (">=", theory - TOLERANCE)
              for name, theory in THEORY.items()}
    return [all_reach(f"loss falls to {TARGET}", (*measured.iterations.counts.values(), measured.lengths)),
            *(Check(f"exponent of {name}", exponent, *limits[name]) for name, exponent in measured.exponents.items())]


def bounds_are_needed(measured: Measured) -> list[Check]:
    """Whether the exponents of M and alpha are as large as the bounds'."""
    limits = {name: (">=", theory - TOLERANCE) if theory > 0 else ("<=", theory + TOLERANCE)
              for name, theory in THEORY.items()}
    return [Check(f"exponent of {name}", exponent, *limits[name]) for name, exponent in measured.exponents.items()
            if name != "K"]


def longer_chains_cost(measured: Measured) -> list[Check]:
    """T grows with K."""
    return [Check("exponent of K", measured.exponents["K"], ">", 0.0)]


def run(lab: Lab) -> Findings:
    """Train all runs and draw the power laws."""
    size, models = SIZES[lab.scale], trained(lab)
    measured = measure(lab, models)
    counts, fractions = measured.iterations.counts, size.fractions
    T = fit_law(ITERATIONS, {axis: [ITERATIONS.order(run_at(lab, axis, value), None) for value in values]
                             for axis, values in size.axes.items()}, counts, lab)
    l_tr = fit_law(TRAINING_LENGTH, {"alpha": [TRAINING_LENGTH.order(run_at(lab, "alpha", value), None)
                                               for value in fractions]}, {"alpha": measured.lengths}, lab)
    panels = [law_panel(axis, size.axes[axis], {"softmax": values}, T.line(axis)) for axis, values in counts.items()]
    panels.append(law_panel("l_tr against alpha", fractions, {"softmax": measured.lengths}, l_tr.line("alpha"),
                            "alpha"))
    plot = curve_figure("cot.iterations", f"Iterations to a training loss of {TARGET}, and how long prompts must be",
                        "One setting varied at a time, the others M 20, K 3, alpha 0.4; last panel: the number of "
                        f"examples per training prompt at which the final loss reaches it. Dashed: {T.words} "
                        f"{l_tr.words}", panels, "", "", log_x=True, log_y=True, share_y=False)
    first_stage = power(fractions, np.stack([stages(models["alpha", value, LENGTH]).first for value in fractions], 1))
    exponents = {**measured.exponents, "alpha, first stage": first_stage}
    theory = {**THEORY, "alpha, first stage": ITERATION_EXPONENTS["alpha"]}
    ends = [run_at(lab, axis, values[i]) for axis, values in (*size.axes.items(), ("alpha", fractions))
            for i in (0, -1)]
    return Findings(
        shown=f"How many iterations bring the training loss down to {TARGET}, and how long training prompts must be.",
        measured=measured,
        numbers="Exponents: " + ", ".join(f"{name} {in_words(exponent)} (theorem {theory[name]:g})"
                                          for name, exponent in exponents.items()) + ".",
        plots=[plot], tables=[Table("cot.iterations", "Exponents, with intervals over seeds", HEADER,
                                    [power_row(name, exponent, theory[name]) for name, exponent in exponents.items()])],
        specs=[(end, end.prompts) for end in ends], constants=[*T.constants, *l_tr.constants])


ENTRY = Entry(
    "cot.iterations", "Iterations and prompt lengths of training, as powers of the settings", "li2024cot, theorem 1",
    run, says="Training needs iterations in proportion to M and 1/alpha and at most K^3, and prompts of l_tr ~ 1/alpha "
              "examples.", sizes=SIZES, parts=(
        Part("theorem", "theorem 1 (i), (ii)", "T ~ alpha^-1 K^3 log(K / eps) + M K (alpha^-1 + eps^-1) over eta is "
             "enough, with l_tr ~ 1/alpha.", bounds_suffice, theory=("Theorem 1",),
             measured=("number of iterations", "length of training prompts"), accuracy=TARGET),
        Part("ours", "theorem 1's bound in M and alpha", "As many iterations and as long prompts are also needed.",
             bounds_are_needed, tight=True),
        Part("ours", "longer chains", "Longer chains need more iterations.", longer_chains_cost)),
    notes=(Note("2026-11-18", "The batch holds every query input once at every step, so it grows with M and K."),))
