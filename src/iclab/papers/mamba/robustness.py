"""The measurement behind figure 2 and `mamba.robust`: error against outlier fraction, label rule, scale and tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.papers.entries import Lab, per_seed
from iclab.papers.mamba.settings import FRACTIONS, RULES, SIZES, attacked_prompts, one_layer_run
from iclab.probes import bayes_predictor, information_floor, measure_error, model_errors
from iclab.runs.store import run_id
from iclab.training import Run, Trained
from iclab.training.ensemble import Progress

MODELS = ("mamba", "linear")
VARIANTS = {
    "paper": "U = 5, kappa_a' = 3 kappa_a",
    "same_scale": "U = 5, kappa_a' = kappa_a",
    "few_tasks": "U = 1, kappa_a' = 3 kappa_a",
}


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


def rule_errors(trained: Sequence[Trained], seeds: Sequence[int], prompts: int, scale_factor: float = 3.0,
                progress: Progress | None = None) -> Float[np.ndarray, "seeds rules fractions"]:
    """Errors of one model's seeds under every label rule and outlier fraction."""
    tests = [attacked_prompts(rule, fraction, scale_factor) for rule in RULES for fraction in FRACTIONS]
    errors = model_errors(trained, tests, count=prompts, seeds=seeds, progress=progress)
    return errors.reshape(len(seeds), len(RULES), len(FRACTIONS))


def references(prompts: int) -> tuple[list[float], list[float]]:
    """The floor in closed form and the Bayes predictor's error, at every outlier fraction."""
    tests = [attacked_prompts("random", fraction) for fraction in FRACTIONS]
    bayes = [measure_error(bayes_predictor(test), test, count=prompts).error for test in tests]
    return [information_floor(test) for test in tests], bayes


def measure(lab: Lab) -> Robustness:
    """Train both models on many and on few tasks; measure their errors under every rule and fraction."""
    size = SIZES[lab.scale]
    seeds = lab.seeds(size.seeds)
    errors: dict[str, dict[str, np.ndarray]] = {}
    run_ids: dict[str, None] = {}
    for variant, (shifts, factor) in {"paper": (5, 3.0), "same_scale": (5, 1.0), "few_tasks": (1, 3.0)}.items():
        for model in MODELS:
            runs = per_seed(one_layer_run(model, size.steps, shifts), seeds)
            run_ids |= dict.fromkeys(run_id(run) for run in runs)

            def compute(runs: list[Run] = runs, factor: float = factor) -> list:
                return rule_errors(lab.train(runs), seeds, size.prompts, factor, lab.progress).tolist()

            kept = lab.store.recall("mamba-robustness", [runs, factor, size.prompts], compute)
            errors.setdefault(variant, {})[model] = np.array(kept)
    floor, bayes = lab.store.recall("mamba-references", size.prompts, lambda: references(size.prompts))
    return Robustness(errors, np.array(floor), np.array(bayes), seeds, list(run_ids))
