"""Claim `cot.iterations`: iterations as powers of M, K and 1/alpha; training prompt length in proportion to 1/alpha.

Rule, written before the run. T is the first step at which the training loss, averaged over 5 steps, is at most 0.05,
one setting varied at a time; log T is regressed on its logarithm. The exponents of M and alpha must lie within 0.35 of
the theorem's 1 and -1; that of K must be at most its 3 (the bound is sufficient, not necessary) and above 0. The
needed length l_tr is that at which the loss after 400 steps is 0.05; its exponent in alpha must lie within 0.35 of -1
(full scale only). Reported but not judged: when the first stage of `cot.dynamics` ends, against alpha.
Cost: 72 short trainings in 9 programs, about 40 s. Expect: M .8, alpha -1.1, K .2, l_tr -1.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from iclab.core.identity import to_json
from iclab.core.spec import replace
from iclab.figures.plots import curve_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, Table, per_seed
from iclab.lab.powers import HEADER, Counts, fit_law, law_panel, power_checks, power_row
from iclab.papers.cot.dynamics import stages
from iclab.papers.cot.mechanism import inside
from iclab.papers.cot.settings import a_run, default_test
from iclab.probes import UNIT, seed_interval
from iclab.probes.by_length import needed_examples
from iclab.probes.scaling import exponent, iterations_to
from iclab.sweeps.store import run_id
from iclab.theory.cot import ITERATION_EXPONENTS, ITERATIONS, LENGTH_EXPONENT, TRAINING_LENGTH, theorem2_conditions
from iclab.training import Run, Trained

TARGET, STEPS = 0.05, 400
AXES: dict[str, dict[str, tuple[float, ...]]] = {
    "quick": {"K": (2, 3), "alpha": (0.2, 0.4, 0.6)},
    "full": {"M": (10, 20, 28), "K": (2, 3, 4, 6), "alpha": (0.2, 0.3, 0.4, 0.6)},
}
LENGTHS: dict[str, tuple[int, ...]] = {"quick": (), "full": (5, 10, 20, 40)}
FRACTIONS: dict[str, tuple[float, ...]] = {"quick": (), "full": (0.1, 0.2, 0.3, 0.4)}
"""alpha at which the needed training prompt length is measured; none at the quick scale."""
SEEDS = {"quick": 4, "full": 4}
STATEMENT = ("Training needs iterations in proportion to M and 1/alpha and at most K^3, and prompts of l_tr ~ 1/alpha "
             "examples.")


def run_at(axis: str, value: float) -> Run:
    """The default training run with one value changed."""
    changes: Any = {"M": {"patterns": int(value)}, "K": {"reasoning_steps": int(value)},
                    "alpha": {"matching_fraction": value}}[axis]
    return a_run(STEPS, record_every=5, **changes)


def trained(lab: Lab) -> dict[tuple[str, float, int], list[Trained]]:
    """All models, by axis, value and training prompt length; trained together."""
    seeds = lab.seeds(SEEDS[lab.scale])
    plan = {(axis, value, 20): run_at(axis, value) for axis, values in AXES[lab.scale].items() for value in values}
    plan |= {("alpha", fraction, length): a_run(STEPS, record_every=5, matching_fraction=fraction, prompt_length=length)
             for fraction in FRACTIONS[lab.scale] for length in LENGTHS[lab.scale]}
    default = a_run(STEPS).prompts
    runs = {name: per_seed(spec, seeds) for name, spec in plan.items()}
    # Some points share runs. Runs with the default structure are probed: the program with the probe exists already.
    unique_runs = {str(run_id(run)): run for seed_runs in runs.values() for run in seed_runs}
    default_runs = [run for run in unique_runs.values() if replace(run.prompts, matching_fraction=0.4) == default]
    other_runs = [run for run in unique_runs.values() if run not in default_runs]
    by_id = {str(run_id(model.run)): model for model in (*lab.train(default_runs, inside), *lab.train(other_runs))}
    return {name: [by_id[str(run_id(run))] for run in seed_runs] for name, seed_runs in runs.items()}


def steps_to(models: dict[tuple[str, float, int], list[Trained]], scale: str) -> dict[str, Counts]:
    """Iterations to the target along every axis."""
    return {axis: np.array([[iterations_to(model, TARGET) for model in models[axis, value, 20]] for value in values]).T
            for axis, values in AXES[scale].items()}


def first_stages(models: dict[tuple[str, float, int], list[Trained]], fractions: tuple[float, ...]) -> Counts:
    """When attention on other steps has vanished (`cot.dynamics`), by alpha."""
    return np.stack([stages(models["alpha", value, 20]).first for value in fractions], axis=1)


def lengths_for(models: dict[tuple[str, float, int], list[Trained]], scale: str) -> Counts | None:
    """The training prompt length at which the final loss reaches the target, by alpha; none at the quick scale."""
    if not LENGTHS[scale]:
        return None
    losses = np.array([[[model.loss[-10:].mean() for model in models["alpha", fraction, length]]
                        for length in LENGTHS[scale]] for fraction in FRACTIONS[scale]])
    return needed_examples(LENGTHS[scale], np.moveaxis(losses, 2, 0), TARGET)


def checks(counts: dict[str, Counts], lengths: Counts | None, scale: str) -> list[Check]:
    """The rule above, and that every run reaches the target."""
    all_counts = [*counts.values()] if lengths is None else [*counts.values(), lengths]
    reached = np.mean([np.isfinite(values).mean(axis=1) for values in all_counts], axis=0)
    judged = [Check.of(f"share of runs whose loss falls to {TARGET}", seed_interval(reached, within=UNIT), ">=",
                       1.0)]
    for axis, values in counts.items():
        theory, measured = ITERATION_EXPONENTS[axis], exponent(AXES[scale][axis], values)
        name = f"exponent of {axis} (theorem {theory:g})"
        judged += ([Check.of(name, measured, ">", 0.0), Check.of(name, measured, "<=", theory)] if axis == "K"
                   else power_checks(name, measured, theory))
    if lengths is None:
        return judged
    return judged + power_checks(f"l_tr: exponent of alpha (theorem {LENGTH_EXPONENT:g})",
                                 exponent(FRACTIONS[scale], lengths), LENGTH_EXPONENT)


def run(lab: Lab) -> Outcome:
    """Judge the claim and draw the power laws."""
    axes, models = AXES[lab.scale], trained(lab)
    counts, lengths = steps_to(models, lab.scale), lengths_for(models, lab.scale)
    judged, base = checks(counts, lengths, lab.scale), a_run(STEPS)
    laws = [fit_law(ITERATIONS, {axis: [ITERATIONS.order(run_at(axis, value), None) for value in values]
                                 for axis, values in axes.items()}, counts, lab)]
    panels = [law_panel(axis, axes[axis], {"softmax": values}, laws[0].line(axis)) for axis, values in counts.items()]
    if lengths is not None:
        fractions = FRACTIONS[lab.scale]
        laws.append(fit_law(TRAINING_LENGTH, {"alpha": [TRAINING_LENGTH.order(run_at("alpha", value), None)
                                                        for value in fractions]}, {"alpha": lengths}, lab))
        panels.append(law_panel("l_tr against alpha", fractions, {"softmax": lengths}, laws[1].line("alpha"), "alpha"))
    plot = curve_figure("cot.iterations", f"Iterations to a training loss of {TARGET}, and how long prompts must be",
                        "One setting varied at a time, the others M 20, K 3, alpha 0.4; last panel: the number of "
                        "examples per training prompt at which the final loss reaches it. Dashed: "
                        + " ".join(law.words for law in laws), panels, "", "", log_x=True, log_y=True, share_y=False)
    claim = Claim(id="cot.iterations", statement=STATEMENT, place="li2024cot, theorem 1", checks=judged,
                  conditions=theorem2_conditions(base, default_test(prompt_length=20))[:1],
                  seeds=lab.seeds(SEEDS[lab.scale]),
                  settings={"base": to_json(base), "target loss": TARGET},
                  runs=[str(run_id(m.run)) for seed_models in models.values() for m in seed_models], scale=lab.scale)
    rows = [power_row(axis, axes[axis], values, ITERATION_EXPONENTS[axis]) for axis, values in counts.items()]
    fractions = FRACTIONS[lab.scale] or axes["alpha"]
    rows.append(power_row("alpha, first stage", fractions, first_stages(models, fractions),
                          ITERATION_EXPONENTS["alpha"]))
    if lengths is not None:
        rows.append(power_row("alpha, l_tr", FRACTIONS[lab.scale], lengths, LENGTH_EXPONENT))
    return Outcome(
        shown=f"How many iterations bring the training loss down to {TARGET}, and how long training prompts must be.",
        paper="T ~ alpha^-1 K^3 log(K / eps) + M K (alpha^-1 + eps^-1) over eta is enough, with l_tr ~ 1/alpha.",
        measured=f"Verdict: {claim.verdict}. Measured: "
                 + ", ".join(f"{name} {value} {interval} (theorem {theory})" for name, theory, value, interval in rows)
                 + ". The theorem gives bounds: a smaller power of K, or a power of alpha nearer 0, satisfies them. "
                   "The batch holds every query input once at every step, so it grows with M and K.",
        plots=[plot], tables=[Table("cot.iterations", "Exponents, with bootstrap intervals over seeds", HEADER, rows)],
        claim=claim, seeds=claim.seeds, settings=claim.settings,
        constants=[constant for law in laws for constant in law.constants])


ENTRY = Entry("cot.iterations", "claim", "Iterations and prompt lengths of training, as powers of the settings",
              "li2024cot, theorem 1", run)
