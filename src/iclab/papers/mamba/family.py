"""Claim `mamba.family`: which gated linear attention models survive flipped outliers.

The paper lists Mamba's relatives as extensions and measures none. Our rule, written before the run: at outlier fraction
0.6 under flip the two models whose gate also weighs the example itself (Mamba, and Mamba-2 with its step on the input)
stay within 0.02 of the floor; every model that can only forget the past has an error above 0.4. Each model trains at
its best rate: of the same four, the one with the lowest loss in a short training over two seeds that do not judge. At
quick scale GLA and Gated Retention are left out.
Cost: 7 programs to compile, 56 short and 28 longer trainings, half of the time GLA's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Note, Part, Search, Table
from iclab.lab.estimates import Rate
from iclab.lab.laboratory import Lab, per_seed
from iclab.papers.mamba.settings import attacked_prompts, one_layer_run, sizes
from iclab.probes import UNIT, information_floor, seed_interval
from iclab.probes.error_rate import averages, wrong
from iclab.probes.looks import Look, Numbers, Shown
from iclab.sweeps.results import Results
from iclab.sweeps.sweep import Sweep
from iclab.training import Run, Trained

MEMBERS = ("mamba", "mamba2_step", "linear", "retnet", "gated_retention", "mamba2", "gla")
FILTERS = MEMBERS[:2]
"""Models that weigh each input by its token: they can reject an example, the others can only forget the past."""
FRACTIONS = (0.0, 0.2, 0.4, 0.6, 0.8)
JUDGED = 0.6
EXCESS_ALLOWED, BROKEN = 0.02, 0.4
SEARCH_SEEDS = 2

Errors = dict[str, Rate]
"""At the judged fraction, by member."""


def error_and_gates(shown: Shown) -> Float[Numbers, " 3"]:
    """Error, and the mean gates of clean and of poisoned examples over all positions."""
    gates, outlier = shown.gates[:, 0, :-1], shown.outlier[:, :-1]
    means = [(gates * mask).sum() / shown.arrays.maximum(mask.sum(), 1) for mask in (~outlier, outlier)]
    return shown.arrays.stack([wrong(shown).mean(), *means])


LOOK = Look(error_and_gates, inside=True)


def search(members: Sequence[str], rates: Sequence[float], seeds: Sequence[int], steps: int) -> Sweep:
    """A short training of every member at every rate."""
    return Sweep(base=one_layer_run("mamba", steps), seeds=seeds, prompts=500, measure=("loss",),
                 name="mamba.family.rates", grid={"model.member": tuple(members), "training.learning_rate": rates})


def best_rates(results: Results) -> dict[str, float]:
    """Each member's rate with the lowest mean training loss, among rates at which no seed diverged."""
    undiverged = results.over_seeds().filter(pl.col("diverged") == 0).sort("loss")
    return {member: rows["training.learning_rate"][0] for (member,), rows in undiverged.group_by(
        "model.member", maintain_order=True)}


def a_run(member: str, rate: float, steps: int) -> Run:
    """Mamba's run of figure 2 with another member."""
    base = one_layer_run("mamba", steps)
    return replace(base, model=replace(base.model, member=member), training=replace(base.training, learning_rate=rate))


def measure(models: Sequence[Trained], seeds: Sequence[int], prompts: int
            ) -> Float[np.ndarray, "models fractions 3"]:
    """Errors and gates under flip at every outlier fraction."""
    return averages(LOOK, models, [attacked_prompts("flip", f) for f in FRACTIONS], prompts, seeds)


def filters(errors: Errors) -> list[Check]:
    """The models that can reject an example."""
    floor = information_floor(attacked_prompts("flip", JUDGED))
    return [Check(f"{member}: excess over the floor at {JUDGED:g}",
                  Rate(errors[member].rates, errors[member].prompts, floor), "<=", EXCESS_ALLOWED)
            for member in FILTERS]


def others(errors: Errors) -> list[Check]:
    """The models that can only forget."""
    return [Check(f"{member}: error at {JUDGED:g}", error, ">", BROKEN) for member, error in errors.items()
            if member not in FILTERS]


def run(lab: Lab) -> Findings:
    """Find the rates, attack the models."""
    size, members, seeds = lab.size, lab.size.members, lab.seeds()
    rate_of = best_rates(lab.sweep(search(members, size.rates, lab.search_seeds(SEARCH_SEEDS), size.search_steps)))
    runs = {member: a_run(member, rate_of[member], size.steps) for member in members}
    models = lab.train([run for member in members for run in per_seed(runs[member], seeds)])
    measured = lab.remember(measure, models, seeds * len(members), size.prompts)
    results = dict(zip(members, measured.reshape(len(members), len(seeds), len(FRACTIONS), 3), strict=True))
    at = FRACTIONS.index(JUDGED)
    errors = {member: Rate(values[:, at, 0], size.prompts) for member, values in results.items()}
    forgetting = [member for member in members if member not in FILTERS]
    plot = error_figure("mamba.family", "The family under flipped outliers",
                        "Error against the outlier fraction at test, flip, each model at its best learning rate.",
                        [Panel(title, FRACTIONS, [Curve(member, results[member][..., 0]) for member in group],
                               floor=[information_floor(attacked_prompts("flip", f)) for f in FRACTIONS])
                         for title, group in (("gate weighs the example itself", FILTERS),
                                              ("gate only forgets the past", forgetting))],
                        "outlier fraction at test")
    rows = []
    for member, values in results.items():
        intervals = [seed_interval(values[:, i, 0], within=UNIT) for i in (at, FRACTIONS.index(0.8))]
        rows.append((member, f"{rate_of[member]:g}", *(f"{i.mean:.3f} [{i.low:.3f}, {i.high:.3f}]" for i in intervals),
                     *(f"{gate:.3f}" for gate in values[:, at, 1:].mean(axis=0))))
    worst, best = (pick(group, key=lambda member: errors[member].value)
                   for pick, group in ((max, FILTERS), (min, forgetting)))
    return Findings(
        shown=f"The attack of figure 2 (flip) on {len(members)} models of the family, each at its best rate, and "
              "the gates that they put on clean and on poisoned examples.",
        measured=errors,
        numbers=f"At outlier fraction {JUDGED:g} the worse of the two models that can reject an example ({worst}) has "
                f"error {errors[worst].value:.3f}, the best of the others ({best}) {errors[best].value:.3f}.",
        plots=[plot], tables=[Table(
            "mamba.family", "Errors under flip, and the mean gates of clean and poisoned examples at 0.6",
            ("model", "best rate", "error at 0.6", "error at 0.8", "gate, clean", "gate, poisoned"), rows)],
        specs=[(run, attacked_prompts("flip", JUDGED)) for run in runs.values()],
        searched=Search(("learning rate",), len(members) * len(size.rates), SEARCH_SEEDS,
                        ", ".join(f"{member} {rate_of[member]:g}" for member in members)))


ENTRY = Entry(
    "mamba.family", "The family under attack: which models filter outliers", "li2025mamba, appendix E.6; ours", run,
    says="Only a gate that weighs the example itself filters outliers; gates that merely forget the past leave the "
         "model as vulnerable as the linear Transformer. (Appendix E.6 lists the relatives of Mamba as extensions of "
         "the theory; the paper attacks none of them.)",
    sizes=sizes(seeds=(2, 4, 4), steps=(100, 400, 700), search_steps=(100, 100, 200), prompts=(500, 1_000, 4_000),
                rates=((0.1, 1.0), (0.03, 0.1, 0.3, 1.0), (0.03, 0.1, 0.3, 1.0)),
                members=(MEMBERS[:3], ("mamba", "mamba2_step", "linear", "retnet", "mamba2"), MEMBERS)), parts=(
        Part("ours", "a gate that weighs the example itself", "Models that can reject an example filter outliers.",
             filters, replies={
                 "holds": "A gate on the present is enough, whichever member of the family has it.",
                 "inconclusive": "Training was too short, or seeds differ too much.",
                 "fails": "At these settings a gate on the present is not enough."}),
        Part("ours", "a gate that only forgets the past", "Models that can only forget do not filter outliers.",
             others, replies={
                 "holds": "What can only fade the past cannot tell a poisoned example from a clean one.",
                 "inconclusive": "Training was too short, or seeds differ too much.",
                 "fails": "One of them filters after all, at these settings."})),
    notes=(Note("2026-11-18", "A gate that acts only on the past gives a poisoned example the same weight as a clean "
                "one at its position; it can only fade everything that came before."),))
