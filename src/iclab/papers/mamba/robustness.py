"""The measurement behind figure 2 and `mamba.robust`: error against outlier fraction, label rule, scale and tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.papers.entries import Lab, per_seed
from iclab.papers.mamba.settings import FRACTIONS, RULES, attacked_prompts, one_layer_run
from iclab.probes import bayes_predictor, information_floor, measure_error, model_errors
from iclab.runs.store import run_id
from iclab.training import Trained

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


SIZES = {"quick": Size(seeds=4, steps=3_000, prompts=4_000), "full": Size(seeds=8, steps=10_000, prompts=20_000)}


@dataclass(frozen=True)
class Robustness:
    """Errors for each variant and model, of shape (seeds, rules, fractions), and what the prompts allow."""

    errors: dict[str, dict[str, Float[np.ndarray, "seeds rules fractions"]]]
    floor: Float[np.ndarray, " fractions"]
    bayes: Float[np.ndarray, " fractions"]
    """Error of the Bayes predictor that ignores poisoned labels; the same under every rule."""
    seeds: list[int]
    runs: list[str]

    def at(self, variant: str, model: str, rule: str, fraction: float) -> Float[np.ndarray, " seeds"]:
        """Errors over seeds at one point."""
        return self.errors[variant][model][:, RULES.index(rule), FRACTIONS.index(fraction)]


def rule_errors(trained: Sequence[Trained], seeds: Sequence[int], prompts: int, scale_factor: float = 3.0
                ) -> Float[np.ndarray, "seeds rules fractions"]:
    """Errors of one model's seeds under every label rule and outlier fraction."""
    tests = [attacked_prompts(rule, fraction, scale_factor) for rule in RULES for fraction in FRACTIONS]
    return model_errors(trained, tests, count=prompts, seeds=seeds).reshape(len(seeds), len(RULES), len(FRACTIONS))


def references(prompts: int) -> tuple[list[float], list[float]]:
    """The floor in closed form and the Bayes predictor's error, at every outlier fraction."""
    tests = [attacked_prompts("random", fraction) for fraction in FRACTIONS]
    bayes = [measure_error(bayes_predictor(test), test, count=prompts).error for test in tests]
    return [information_floor(test) for test in tests], bayes


def measure(lab: Lab) -> Robustness:
    """Train both models on many and on few tasks; measure their errors under every rule and fraction."""
    size = SIZES[lab.scale]
    seeds = lab.seeds(size.seeds)
    training = {(model, shifts): per_seed(one_layer_run(model, size.steps, shifts), seeds)
                for shifts in (5, 1) for model in MODELS}
    every_run = [run for runs in training.values() for run in runs]

    def compute() -> dict[str, Any]:
        finished = iter(lab.train(every_run))
        done = {key: [next(finished) for _ in runs] for key, runs in training.items()}
        cases = {"paper": (5, 3.0), "same_scale": (5, 1.0), "few_tasks": (1, 3.0)}
        errors = {variant: {model: rule_errors(done[model, shifts], seeds, size.prompts, factor).tolist()
                            for model in MODELS} for variant, (shifts, factor) in cases.items()}
        floor, bayes = references(size.prompts)
        return {"errors": errors, "floor": floor, "bayes": bayes}

    kept = lab.store.recall("mamba-robustness", [every_run, size.prompts], compute)
    errors = {variant: {model: np.array(table) for model, table in models.items()}
              for variant, models in kept["errors"].items()}
    return Robustness(errors, np.array(kept["floor"]), np.array(kept["bayes"]), seeds,
                      [run_id(run) for run in every_run])
