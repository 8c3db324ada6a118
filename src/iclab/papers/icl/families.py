"""Ours: four models on both papers' prompts, each trained on poisoned prompts and on prompts with irrelevant examples.

Trained on the Mamba paper's prompts (outlier fraction 0.6, every example decisive) and on those of the icl paper
(decisive fraction 0.8, no outliers), tested on both. Each paper's figures have the numbers for its models; training is
shorter here. Cost: 7 trainings beyond those of other entries, about 35 s.
Expect: softmax attention and GPT-2 learn to ignore outliers as Mamba does, though they have no gate; of the models that
never saw an outlier, GPT-2 suffers least; with irrelevant patterns ten times as large as in training, only the softmax
Transformer holds up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.core.spec import replace
from iclab.figures.style import NAMES
from iclab.lab.entries import Entry, Lab, Outcome, Table, per_seed
from iclab.papers.icl import settings as icl
from iclab.papers.icl.trained import gpt2_models, one_layer_models
from iclab.papers.mamba import settings as mamba
from iclab.probes import information_floor, model_errors
from iclab.training import Run, Trained

TRAINED_ON = ("poisoned", "irrelevant")
MODELS = {"quick": ("mamba", "softmax"), "full": ("mamba", "linear", "softmax", "gpt2")}
STEPS = {"quick": 1_000, "full": 3_000}
"""For the gated models; the others train as long as in the icl figures."""
SEEDS = {"quick": {"others": 4}, "full": {"gpt2": 2, "others": 4}}
PROMPTS = {"quick": 500, "full": 2_000}
TESTS = {
    "clean": lambda: mamba.attacked_prompts("flip", 0.0),
    "flip 0.3": lambda: mamba.attacked_prompts("flip", 0.3),
    "flip 0.6": lambda: mamba.attacked_prompts("flip", 0.6),
    "decisive 0.8, K' 0.5": lambda: icl.in_domain(0.8, irrelevant_scale=icl.TRAINING_SCALE, tasks="all"),
    "decisive 0.8, K' 5": lambda: icl.in_domain(0.8, tasks="all"),
    "decisive 0.6, K' 5": lambda: icl.in_domain(0.6, tasks="all"),
    "out of domain, K' 5": lambda: icl.out_of_domain(0.8),
}


def a_run(model: str, trained_on: str, scale: str) -> Run:
    """A model as its paper trains it, on the prompts of either paper."""
    if model == "gpt2":
        run = icl.gpt2_run(icl.GPT2_SIZES[scale].steps)
    elif model == "softmax":
        run = icl.one_layer_run(0.8, icl.SIZES[scale].steps)
    else:
        run = mamba.one_layer_run(model, STEPS[scale])
    default_prompts = "irrelevant" if model in ("gpt2", "softmax") else "poisoned"
    if trained_on == default_prompts:
        return run
    return replace(run, prompts=mamba.training_prompts() if trained_on == "poisoned" else icl.training_prompts())


def trained_models(lab: Lab) -> dict[tuple[str, str], list[Trained]]:
    """All trained models, by model and training prompts."""
    seeds = {model: lab.seeds(SEEDS[lab.scale].get(model, SEEDS[lab.scale]["others"])) for model in MODELS[lab.scale]}
    shared = {("softmax", "irrelevant"): one_layer_models(lab, 0.8)[:len(seeds["softmax"])]}
    if "gpt2" in seeds:
        shared["gpt2", "irrelevant"] = gpt2_models(lab)[:len(seeds["gpt2"])]
    cells = [(model, trained_on) for trained_on in TRAINED_ON for model in MODELS[lab.scale]]
    missing = [cell for cell in cells if cell not in shared]
    trained = iter(lab.train([run for cell in missing for run in per_seed(a_run(*cell, lab.scale), seeds[cell[0]])]))
    return {cell: shared.get(cell) or [next(trained) for _ in seeds[cell[0]]] for cell in cells}


def measure(lab: Lab) -> dict[tuple[str, str], Float[np.ndarray, "seeds tests"]]:
    """Errors on every test."""
    tests, prompts = [make() for make in TESTS.values()], PROMPTS[lab.scale]
    errors = {}
    for cell, models in trained_models(lab).items():
        def compute(models: list[Trained] = models) -> list:
            return model_errors(models, tests, count=prompts, seeds=lab.seeds(len(models))).tolist()

        errors[cell] = np.array(lab.store.recall("icl-families", [[m.run for m in models], tests, prompts], compute))
    return errors


def cell_text(values: Float[np.ndarray, " seeds"]) -> str:
    """Mean over seeds, ± half the range."""
    return f"{values.mean():.3f} ± {np.ptp(values) / 2:.3f}"


def run(lab: Lab) -> Outcome:
    """Draw up the table."""
    errors = measure(lab)
    rows: list[tuple[Any, ...]] = [(NAMES[model], trained_on, *(cell_text(column) for column in values.T))
                                   for (model, trained_on), values in errors.items()]
    rows.append(("information floor", "", *(f"{information_floor(make()):.3f}" for make in TESTS.values())))
    names = list(TESTS)

    def mean_error(model: str, trained_on: str, test: str) -> str:
        return f"{errors[model, trained_on][:, names.index(test)].mean():.3f}"

    def mean_errors(trained_on: str, test: str) -> str:
        return ", ".join(f"{NAMES[model]} {mean_error(model, trained_on, test)}" for model in MODELS[lab.scale])

    poisoned, naive = mean_errors("poisoned", "flip 0.6"), mean_errors("irrelevant", "flip 0.6")
    large = mean_errors("irrelevant", names[4])
    return Outcome(
        shown="Error of four models on both papers' test prompts, by training prompts: mean over seeds, ± half "
              "the range.",
        paper="Each paper measures its own models on its own prompts; none of them has this table.",
        measured=f"Trained with outliers and tested with 60 % of the labels flipped: {poisoned}. Softmax attention "
                 "learns to ignore outliers, so it needs no gate to be robust to them; linear attention "
                 f"cannot. Trained without outliers: {naive}. With irrelevant patterns ten times as large as "
                 f"in training: {large}.",
        tables=[Table("icl.families", "Error by model and training prompts (rows) and test prompts (columns)",
                      ("model", "trained on", *names), rows)],
        seeds=lab.seeds(SEEDS[lab.scale]["others"]),
        settings={"seeds": SEEDS[lab.scale], "poisoned": to_json(mamba.training_prompts()),
                  "irrelevant": to_json(icl.training_prompts()), "prompts": PROMPTS[lab.scale]})


ENTRY = Entry("icl.families", "table", "Four models on both papers' prompts", "ours", run)
