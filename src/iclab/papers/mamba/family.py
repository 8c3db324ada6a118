"""Claim `mamba.family`: who survives flipped outliers among the gated linear attention models, and why.

The paper lists the others as extensions and measures none. Rule, ours, written before the run: at outlier fraction 0.6
under flip the two models whose gate also weighs the example itself (Mamba, and Mamba-2 with its step on the input) stay
within 0.02 of the floor; every model that can only forget the past errs above 0.4. Each learns at its own best rate,
the one with the least training loss over two seeds of a short training, from the same five.
Cost: 7 programs to compile, 70 short and 35 longer trainings, about 45 s (half of it GLA's).
Expect (full scale): error at 0.6 below .001 for Mamba and Mamba-2 with its step on the input, .76 and more for others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from iclab.figures.plots import Curve, Panel, error_figure
from iclab.papers.claims import Check, Claim
from iclab.papers.entries import Entry, Lab, Outcome, Table
from iclab.papers.mamba.settings import attacked_prompts, one_layer_run
from iclab.probes import gate_profile, information_floor, seed_interval
from iclab.runs.results import Results
from iclab.runs.sweep import Sweep
from iclab.specs import to_json

MEMBERS = ("mamba", "mamba2_step", "linear", "retnet", "gated_retention", "mamba2", "gla")
FILTERS = ("mamba", "mamba2_step")
"""Those whose intake depends on the token: they can refuse the present, the others only forget the past."""
RATES = (0.03, 0.1, 0.3, 1.0, 3.0)
FRACTIONS = (0.0, 0.2, 0.4, 0.6, 0.8)
JUDGED = 0.6
EXCESS_ALLOWED, BROKEN = 0.02, 0.4
SEARCH_STEPS = {"quick": 200, "full": 400}
STEPS = {"quick": 500, "full": 2_000}
SEEDS = {"quick": 3, "full": 5}
PROMPTS = {"quick": 1_000, "full": 4_000}
STATEMENT = ("Only a gate that weighs the example itself filters outliers; gates that merely forget the past leave the "
             "model as breakable as the linear Transformer.")


def gate_gap(trained: Any, test: Any, seed: int) -> dict[str, float]:
    """Mean gates of clean and of poisoned examples, over all positions."""
    gates = gate_profile(trained, test, count=500, seed=seed)
    means = [values[np.isfinite(values)] for values in (gates.clean, gates.poisoned)]
    return {name: float(values.mean()) if len(values) else np.nan
            for name, values in zip(("gate_clean", "gate_poisoned"), means, strict=True)}


def search(seeds: list[int], steps: int) -> Sweep:
    """Every member at every rate, briefly."""
    return Sweep(base=one_layer_run("mamba", steps), seeds=seeds[:2], prompts=500, measure=("loss",),
                 name="mamba.family.rates", grid={"model.member": MEMBERS, "training.learning_rate": RATES})


def best_rates(results: Results) -> dict[str, float]:
    """The rate with the least mean training loss of each member, among those at which no seed diverged."""
    sound = results.over_seeds().filter(pl.col("diverged") == 0).sort("loss")
    return {member: sound.filter(pl.col("model.member") == member)["training.learning_rate"][0] for member in MEMBERS}


def attack(seeds: list[int], steps: int, rates: dict[str, float], prompts: int) -> Sweep:
    """Every member at its best rate, under flip at every outlier fraction."""
    settings = [{"model.member": member, "training.learning_rate": rate} for member, rate in rates.items()]
    return Sweep(base=one_layer_run("mamba", steps), settings=settings, seeds=seeds, prompts=prompts,
                 test=attacked_prompts("flip", JUDGED), grid={"test.outlier_fraction": FRACTIONS},
                 measure=("error", "loss", gate_gap), name="mamba.family")


def checks(errors: dict[str, Any]) -> list[Check]:
    """The rule above, on errors over seeds at fraction 0.6."""
    floor = information_floor(attacked_prompts("flip", JUDGED))
    judged = [Check.of(f"{member}: excess over the floor at {JUDGED:g}", seed_interval(errors[member] - floor), "<=",
                       EXCESS_ALLOWED) for member in FILTERS]
    return judged + [Check.of(f"{member}: error at {JUDGED:g}", seed_interval(errors[member]), ">", BROKEN)
                     for member in MEMBERS if member not in FILTERS]


def run(lab: Lab) -> Outcome:
    """Find the rates, attack, judge."""
    seeds = lab.seeds(SEEDS[lab.scale])
    rates = best_rates(lab.sweep(search(seeds, SEARCH_STEPS[lab.scale])))
    results = lab.sweep(attack(seeds, STEPS[lab.scale], rates, PROMPTS[lab.scale]))

    def curve(member: str, name: str) -> np.ndarray:
        mine = results.frame.filter(pl.col("model.member") == member)
        return np.array(mine[name].to_list(), float).reshape(len(FRACTIONS), len(seeds)).T

    errors = {member: curve(member, "error") for member in MEMBERS}
    at = FRACTIONS.index(JUDGED)
    judged = checks({member: values[:, at] for member, values in errors.items()})
    plot = error_figure("mamba.family", "The family under flipped outliers",
                        "Error against the outlier fraction at test, flip, each model at its own best learning rate.",
                        [Panel(title, FRACTIONS, [Curve(member, errors[member]) for member in members],
                               floor=[information_floor(attacked_prompts("flip", f)) for f in FRACTIONS])
                         for title, members in (("gate weighs the example itself", FILTERS),
                                                ("gate only forgets the past",
                                                 [m for m in MEMBERS if m not in FILTERS]))],
                        "outlier fraction at test")
    rows = []
    for member in MEMBERS:
        clean, poisoned = curve(member, "gate_clean")[:, at].mean(), curve(member, "gate_poisoned")[:, at].mean()
        low, high = (seed_interval(errors[member][:, i]) for i in (at, FRACTIONS.index(0.8)))
        rows.append((member, f"{rates[member]:g}", f"{low.mean:.3f} [{max(low.low, 0):.3f}, {low.high:.3f}]",
                     f"{high.mean:.3f} [{max(high.low, 0):.3f}, {high.high:.3f}]", f"{clean:.3f}", f"{poisoned:.3f}"))
    table = Table("mamba.family", "Errors under flip, and the mean gates of clean and poisoned examples at 0.6",
                  ("model", "best rate", "error at 0.6", "error at 0.8", "gate, clean", "gate, poisoned"), rows)
    claim = Claim(id="mamba.family", statement=STATEMENT, place="li2025mamba, appendix E.6; ours", checks=judged,
                  conditions=[], settings={"training": to_json(one_layer_run("mamba", STEPS[lab.scale])),
                                           "rates": rates}, seeds=seeds,
                  runs=results.frame["run"].unique(maintain_order=True).to_list(), scale=lab.scale)
    worst = max(FILTERS, key=lambda member: errors[member][:, at].mean())
    least = min((m for m in MEMBERS if m not in FILTERS), key=lambda member: errors[member][:, at].mean())
    return Outcome(
        shown="The attack of figure 2 (flip) on all seven models of the family, each at its own best learning rate, "
              "and the gates that they put on clean and on poisoned examples.",
        paper="Appendix E.6 lists the relatives of Mamba as extensions of the theory; the paper attacks none of them.",
        measured=f"Verdict: {claim.verdict}. At outlier fraction 0.6 the worse of the two models that can refuse an "
                 f"example ({worst}) errs {errors[worst][:, at].mean():.3f}, the best of the others ({least}) "
                 f"{errors[least][:, at].mean():.3f}. The gates say why: a gate on the past alone gives a poisoned "
                 "example the same weight as a clean one at its place; it can only make all that came before fade.",
        plots=[plot], tables=[table], claim=claim, seeds=seeds, settings=claim.settings)


ENTRY = Entry("mamba.family", "claim", "The family under attack: who filters outliers, and why",
              "li2025mamba, appendix E.6", run)
