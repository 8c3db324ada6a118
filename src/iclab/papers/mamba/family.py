"""Claim `mamba.family`: which gated linear attention models survive flipped outliers, and why.

The paper lists Mamba's relatives as extensions and measures none. Our rule, written before the run: at outlier fraction
0.6 under flip the two models whose gate also weighs the example itself (Mamba, and Mamba-2 with its step on the input)
stay within 0.02 of the floor; every model that can only forget the past has an error above 0.4. Each model trains at
its best rate: of the same four, the one with the lowest loss in a short training over two seeds. At quick scale GLA and
Gated Retention are left out.
Cost: 7 programs to compile, 56 short and 28 longer trainings, about 20 s (half of it GLA's).
Expect (full scale): error at 0.6 below .001 for Mamba and Mamba-2 with its step on the input, .75 or more for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, Table, per_seed
from iclab.papers.mamba.settings import attacked_prompts, one_layer_run
from iclab.probes import UNIT, information_floor, seed_interval
from iclab.probes.error_rate import averages, wrong
from iclab.probes.looks import Look, Numbers, Shown
from iclab.sweeps.results import Results
from iclab.sweeps.store import run_id
from iclab.sweeps.sweep import Sweep
from iclab.training import Trained

MEMBERS = {"quick": ("mamba", "mamba2_step", "linear", "retnet", "mamba2"),
           "full": ("mamba", "mamba2_step", "linear", "retnet", "gated_retention", "mamba2", "gla")}
FILTERS = ("mamba", "mamba2_step")
"""Models that weigh each input by its token: they can reject an example, the others can only forget the past."""
RATES = (0.03, 0.1, 0.3, 1.0)
FRACTIONS = (0.0, 0.2, 0.4, 0.6, 0.8)
JUDGED = 0.6
EXCESS_ALLOWED, BROKEN = 0.02, 0.4
SEARCH_STEPS = {"quick": 100, "full": 200}
STEPS = {"quick": 400, "full": 700}
SEEDS = {"quick": 4, "full": 4}
PROMPTS = {"quick": 1_000, "full": 4_000}
STATEMENT = ("Only a gate that weighs the example itself filters outliers; gates that merely forget the past leave the "
             "model as vulnerable as the linear Transformer.")


def error_and_gates(shown: Shown) -> Float[Numbers, " 3"]:
    """Error, and the mean gates of clean and of poisoned examples over all positions."""
    gates, outlier = shown.gates[:, 0, :-1], shown.outlier[:, :-1]
    means = [(gates * mask).sum() / shown.arrays.maximum(mask.sum(), 1) for mask in (~outlier, outlier)]
    return shown.arrays.stack([wrong(shown).mean(), *means])


LOOK = Look(error_and_gates, inside=True)


def search(members: Sequence[str], seeds: list[int], steps: int) -> Sweep:
    """A short training of every member at every rate."""
    return Sweep(base=one_layer_run("mamba", steps), seeds=seeds[:2], prompts=500, measure=("loss",),
                 name="mamba.family.rates", grid={"model.member": tuple(members), "training.learning_rate": RATES})


def best_rates(results: Results) -> dict[str, float]:
    """Each member's rate with the lowest mean training loss, among rates at which no seed diverged."""
    undiverged = results.over_seeds().filter(pl.col("diverged") == 0).sort("loss")
    return {member: rows["training.learning_rate"][0] for (member,), rows in undiverged.group_by(
        "model.member", maintain_order=True)}


def measure(models: Sequence[Trained], seeds: Sequence[int], prompts: int
            ) -> Float[np.ndarray, "models fractions 3"]:
    """Errors and gates under flip at every outlier fraction."""
    return averages(LOOK, models, [attacked_prompts("flip", f) for f in FRACTIONS], prompts, seeds)


def checks(errors: dict[str, Any]) -> list[Check]:
    """The rule above, on errors over seeds at fraction 0.6."""
    floor = information_floor(attacked_prompts("flip", JUDGED))
    judged = [Check.of(f"{member}: excess over the floor at {JUDGED:g}", seed_interval(errors[member] - floor), "<=",
                       EXCESS_ALLOWED) for member in FILTERS]
    return judged + [Check.of(f"{member}: error at {JUDGED:g}", seed_interval(errors[member], within=UNIT), ">",
                              BROKEN) for member in errors if member not in FILTERS]


def run(lab: Lab) -> Outcome:
    """Find the rates, attack the models, judge the claim."""
    seeds = lab.seeds(SEEDS[lab.scale])
    steps, prompts = STEPS[lab.scale], PROMPTS[lab.scale]
    members = MEMBERS[lab.scale]
    rate_of = best_rates(lab.sweep(search(members, seeds, SEARCH_STEPS[lab.scale])))
    rates = {member: rate_of[member] for member in members}
    base = one_layer_run("mamba", steps)
    models = lab.train([run for member, rate in rates.items() for run in per_seed(
        replace(base, model=replace(base.model, member=member), training=replace(base.training, learning_rate=rate)),
        seeds)])

    def compute() -> list:
        return measure(models, seeds * len(members), prompts).tolist()

    stored = np.array(lab.store.recall("mamba-family", [[m.run for m in models], prompts], compute))
    errors_and_gates = dict(zip(members, stored.reshape(len(members), len(seeds), len(FRACTIONS), 3), strict=True))
    errors = {member: values[..., 0] for member, values in errors_and_gates.items()}
    at = FRACTIONS.index(JUDGED)
    judged = checks({member: values[:, at] for member, values in errors.items()})
    plot = error_figure("mamba.family", "The family under flipped outliers",
                        "Error against the outlier fraction at test, flip, each model at its best learning rate.",
                        [Panel(title, FRACTIONS, [Curve(member, errors[member]) for member in group],
                               floor=[information_floor(attacked_prompts("flip", f)) for f in FRACTIONS])
                         for title, group in (("gate weighs the example itself", FILTERS),
                                              ("gate only forgets the past",
                                               [m for m in members if m not in FILTERS]))],
                        "outlier fraction at test")
    rows = []
    for member in members:
        clean, poisoned = errors_and_gates[member][:, at, 1:].mean(axis=0)
        intervals = [seed_interval(errors[member][:, i], within=UNIT) for i in (at, FRACTIONS.index(0.8))]
        rows.append((member, f"{rates[member]:g}", *(f"{i.mean:.3f} [{i.low:.3f}, {i.high:.3f}]" for i in intervals),
                     f"{clean:.3f}", f"{poisoned:.3f}"))
    table = Table("mamba.family", "Errors under flip, and the mean gates of clean and poisoned examples at 0.6",
                  ("model", "best rate", "error at 0.6", "error at 0.8", "gate, clean", "gate, poisoned"), rows)
    claim = Claim(id="mamba.family", statement=STATEMENT, place="li2025mamba, appendix E.6; ours", checks=judged,
                  conditions=[], settings={"training": to_json(base), "rates": rates}, seeds=seeds,
                  runs=[str(run_id(m.run)) for m in models], scale=lab.scale)
    worst = max(FILTERS, key=lambda member: errors[member][:, at].mean())
    best_other = min((m for m in members if m not in FILTERS), key=lambda member: errors[member][:, at].mean())
    return Outcome(
        shown=f"The attack of figure 2 (flip) on {len(members)} models of the family, each at its best rate, and "
              "the gates that they put on clean and on poisoned examples.",
        paper="Appendix E.6 lists the relatives of Mamba as extensions of the theory; the paper attacks none of them.",
        measured=f"Verdict: {claim.verdict}. At outlier fraction 0.6 the worse of the two models that can reject an "
                 f"example ({worst}) has error {errors[worst][:, at].mean():.3f}, the best of the others "
                 f"({best_other}) {errors[best_other][:, at].mean():.3f}. The gates show why: a gate that acts only on "
                 "the past gives a poisoned example the same weight as a clean one at its position; it can only fade "
                 "everything that came before.",
        plots=[plot], tables=[table], claim=claim, seeds=seeds, settings=claim.settings)


ENTRY = Entry("mamba.family", "claim", "The family under attack: which models filter outliers, and why",
              "li2025mamba, appendix E.6", run)
