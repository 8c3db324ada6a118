"""The measurement behind figure 2 and `mamba.robust`: error against outlier fraction, label rule, scale and tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.papers.entries import Lab, per_seed
from iclab.papers.mamba.settings import FRACTIONS, RULES, one_layer_run, test_prompts
from iclab.probes import information_floor, model_errors
from iclab.runs.store import run_id

MODELS = ("mamba", "linear")
VARIANTS = {
    "paper": "U = 5, kappa_a' = 3 kappa_a",
    "same_scale": "U = 5, kappa_a' = kappa_a",
    "few_tasks": "U = 1, kappa_a' = 3 kappa_a",
}


@dataclass(frozen=True)
class Size:
    """How much is measured at a scale."""

    seeds: int
    steps: int
    prompts: int


SIZES = {"quick": Size(seeds=4, steps=2_000, prompts=4_000), "full": Size(seeds=8, steps=10_000, prompts=20_000)}


@dataclass(frozen=True)
class Robustness:
    """Errors for each variant and model, of shape (seeds, rules, fractions)."""

    errors: dict[str, dict[str, Float[np.ndarray, "seeds rules fractions"]]]
    floor: Float[np.ndarray, " fractions"]
    seeds: list[int]
    runs: list[str]

    def at(self, variant: str, model: str, rule: str, fraction: float) -> Float[np.ndarray, " seeds"]:
        """Errors over seeds at one point."""
        return self.errors[variant][model][:, RULES.index(rule), FRACTIONS.index(fraction)]


def measure(lab: Lab) -> Robustness:
    """Train both models on many and on few tasks; measure their errors under every rule and fraction."""
    size = SIZES[lab.scale]
    seeds = lab.seeds(size.seeds)
    training = {(model, shifts): per_seed(one_layer_run(model, size.steps, shifts), seeds)
                for shifts in (5, 1) for model in MODELS}
    every_run = [run for runs in training.values() for run in runs]

    def compute() -> dict[str, dict[str, list]]:
        trained = iter(lab.train(every_run))
        done = {key: [next(trained) for _ in runs] for key, runs in training.items()}
        errors: dict[str, dict[str, list]] = {}
        for shifts, variants in ((5, ("paper", "same_scale")), (1, ("few_tasks",))):
            tests = [test_prompts(rule, fraction, 1.0 if variant == "same_scale" else 3.0)
                     for variant in variants for rule in RULES for fraction in FRACTIONS]
            for model in MODELS:
                table = model_errors(done[model, shifts], tests, count=size.prompts, seeds=seeds)
                table = table.reshape(len(seeds), len(variants), len(RULES), len(FRACTIONS))
                for index, variant in enumerate(variants):
                    errors.setdefault(variant, {})[model] = table[:, index].tolist()
        return errors

    kept = lab.store.recall("mamba-robustness", [every_run, size.prompts], compute)
    errors = {variant: {model: np.array(table) for model, table in models.items()} for variant, models in kept.items()}
    floor = np.array([information_floor(test_prompts("flip", fraction)) for fraction in FRACTIONS])
    return Robustness(errors, floor, seeds, [run_id(run) for run in every_run])
