"""Ours: where the spread between seeds comes from: starting weights, training data, or finite tests.

Every pair of a start and a data order is trained once and tested on prompts of its own, at outlier fraction 0.8 under
flip for Mamba and 0.4 for the linear Transformer. A two-way analysis of variance splits the spread.
Cost: 72 trainings, about 6 s.
"""

from __future__ import annotations

import numpy as np

from iclab.lab.claims import short
from iclab.lab.entries import Entry, Findings, Size, Table
from iclab.lab.estimates import spread
from iclab.lab.laboratory import Lab, crossed
from iclab.papers.mamba.settings import attacked_prompts, one_layer_run
from iclab.probes import model_errors

FRACTIONS = {"mamba": 0.8, "linear": 0.4}
NAMES = {"mamba": "Mamba", "linear": "linear Transformer"}
HEADER = ("model", "measure", "mean", "starts", "data", "rest", "of which finite test")


def run(lab: Lab) -> Findings:
    """Train every pair and split the spread of error and hinge loss."""
    count, rows = lab.size.seeds, []
    for member, fraction in FRACTIONS.items():
        test = attacked_prompts("flip", fraction)
        seeds = lab.seeds(count)
        models = lab.train(crossed(one_layer_run(member, lab.size.steps), seeds, seeds))
        for measure in ("error", "hinge"):
            values = np.asarray(lab.remember(model_errors, models, [test], count=lab.size.prompts, measure=measure,
                                             seeds=list(range(len(models))))).reshape(count, count)
            parts = spread(values)
            noise = short(float(np.sqrt(np.mean(values * (1 - values)) / lab.size.prompts))) \
                if measure == "error" else ""
            rows.append((NAMES[member], measure, *(short(float(v)) for v in (values.mean(), *parts)), noise))
    return Findings(
        "Standard deviations of the error and the hinge loss of single models: by their starting weights, by their "
        "training data, and what neither explains alone (of which the finite test is known for errors).",
        tables=[Table("mamba.spread", "Where the spread between seeds comes from", HEADER, rows)],
        numbers="; ".join(f"{name}, {measure}: {mean}, spread by starts {starts}, by data {data}, rest {rest}"
                          for name, measure, mean, starts, data, rest, _ in rows) + ".")


ENTRY = Entry("mamba.spread", "Where the spread between seeds comes from", "ours", run, kind="table",
              says="No paper says how much of the spread between runs comes from the starting weights.",
              sizes={"tiny": Size(seeds=2, steps=50, prompts=500), "quick": Size(seeds=4, steps=1_000, prompts=2_000),
                     "full": Size(seeds=6, steps=4_000, prompts=10_000)})
