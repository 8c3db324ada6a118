"""Ours: four models on both papers' prompts, each trained on poisoned prompts and on prompts with irrelevant examples.

Trained on the Mamba paper's prompts (outlier fraction 0.6, every example decisive) and on those of the icl paper
(decisive fraction 0.8, no outliers), tested on both. Each paper's figures have the numbers for its models; training is
shorter here. Cost: 7 trainings beyond those of other entries, about 20 s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.figures.style import NAMES
from iclab.lab.entries import Entry, Findings, Size, Table
from iclab.lab.laboratory import Lab, per_seed
from iclab.papers.icl import settings as icl
from iclab.papers.icl.trained import gpt2_models, one_layer_models
from iclab.papers.mamba import settings as mamba
from iclab.probes import information_floor
from iclab.training import Run, Trained

TRAINED_ON = ("poisoned", "irrelevant")
SIZES = {"tiny": Size(steps=100, prompts=500, models={"softmax": 2}),
         "quick": Size(steps=1_000, prompts=500, models={"mamba": 4, "softmax": 4}),
         "full": Size(steps=3_000, prompts=2_000, models={"mamba": 4, "linear": 4, "softmax": 4, "gpt2": 2})}
"""Steps of the gated models (the others train as long as in the icl figures), and seeds by model."""
TESTS = {
    "clean": lambda: mamba.attacked_prompts("flip", 0.0),
    "flip 0.3": lambda: mamba.attacked_prompts("flip", 0.3),
    "flip 0.6": lambda: mamba.attacked_prompts("flip", 0.6),
    "decisive 0.8, K' 0.5": lambda: icl.in_domain(0.8, tasks="all"),
    "decisive 0.8, K' 5": lambda: icl.in_domain(0.8, irrelevant_scale=icl.NEW_SCALE, tasks="all"),
    "decisive 0.6, K' 5": lambda: icl.in_domain(0.6, irrelevant_scale=icl.NEW_SCALE, tasks="all"),
    "out of domain, K' 5": lambda: icl.out_of_domain(0.8),
}


def a_run(model: str, trained_on: str, lab: Lab) -> Run:
    """A model as its paper trains it, on the prompts of either paper."""
    if model == "gpt2":
        run = icl.gpt2_run(lab.scale)
    elif model == "softmax":
        run = icl.one_layer_run(0.8, icl.SIZES[lab.scale].steps)
    else:
        run = mamba.one_layer_run(model, lab.size.steps)
    default_prompts = "irrelevant" if model in ("gpt2", "softmax") else "poisoned"
    if trained_on == default_prompts:
        return run
    return replace(run, prompts=mamba.training_prompts() if trained_on == "poisoned" else icl.training_prompts())


def trained_models(lab: Lab) -> dict[tuple[str, str], list[Trained]]:
    """All trained models, by model and training prompts."""
    seeds = {model: lab.seeds(count) for model, count in lab.size.models.items()}
    shared = {("softmax", "irrelevant"): one_layer_models(lab, 0.8)[:len(seeds["softmax"])]}
    if "gpt2" in seeds:
        shared["gpt2", "irrelevant"] = gpt2_models(lab)[:len(seeds["gpt2"])]
    cells = [(model, trained_on) for trained_on in TRAINED_ON for model in seeds]
    missing = [cell for cell in cells if cell not in shared]
    trained = iter(lab.train([run for cell in missing for run in per_seed(a_run(*cell, lab), seeds[cell[0]])]))
    return {cell: shared.get(cell) or [next(trained) for _ in seeds[cell[0]]] for cell in cells}


def cell_text(values: Float[np.ndarray, " seeds"]) -> str:
    """Mean over seeds, ± half the range."""
    return f"{values.mean():.3f} ± {np.ptp(values) / 2:.3f}"


def run(lab: Lab) -> Findings:
    """Draw up the table."""
    tests, names = [make() for make in TESTS.values()], list(TESTS)
    errors = {cell: lab.errors(models, tests) for cell, models in trained_models(lab).items()}
    rows: list[tuple[Any, ...]] = [(NAMES[model], trained_on, *(cell_text(column) for column in values.T))
                                   for (model, trained_on), values in errors.items()]
    rows.append(("information floor", "", *(f"{information_floor(test):.3f}" for test in tests)))

    def mean_errors(trained_on: str, test: str) -> str:
        return ", ".join(f"{NAMES[model]} {errors[model, trained_on][:, names.index(test)].mean():.3f}"
                         for model in lab.size.models)

    return Findings(
        shown="Error of models on both papers' test prompts, by training prompts: mean over seeds, ± half the range; "
              "seeds: " + ", ".join(f"{NAMES[model]} {count}" for model, count in lab.size.models.items()) + ".",
        numbers="Trained with outliers and tested with 60 % of the labels flipped: "
                f"{mean_errors('poisoned', 'flip 0.6')}. Trained without outliers: "
                f"{mean_errors('irrelevant', 'flip 0.6')}. With irrelevant patterns ten times as large as in training: "
                f"{mean_errors('irrelevant', names[4])}.",
        tables=[Table("icl.families", "Error by model and training prompts (rows) and test prompts (columns)",
                      ("model", "trained on", *names), rows)],
        settings={"poisoned": mamba.training_prompts(), "irrelevant": icl.training_prompts()})


ENTRY = Entry(
    "icl.families", "Four models on both papers' prompts", "ours", run, kind="table", sizes=SIZES,
    says="Each paper measures its own models on its own prompts; none of them has this table.")
