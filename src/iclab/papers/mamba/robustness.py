"""The measurement behind figure 2 and `mamba.robust`: error against outlier fraction, label rule, scale and tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.lab.entries import Lab, per_seed
from iclab.papers.mamba.settings import FEW_TASKS_STEPS, FRACTIONS, RULES, SIZES, attacked_prompts, one_layer_run
from iclab.probes import bayes_predictor, information_floor, measure_error, model_errors
from iclab.sweeps.store import run_id
from iclab.training import Trained
from iclab.training.trainer import Progress

MODELS = ("mamba", "linear")
VARIANTS = {
    "paper": "U = 5, kappa_a' = 3 kappa_a",
    "same_scale": "U = 5, kappa_a' = kappa_a, flip",
    "few_tasks": "U = 1, kappa_a' = 3 kappa_a, flip",
}
"""The figure under every rule, and two questions it leaves open under flip."""


@dataclass(frozen=True)
class Robustness:
    """Errors for each variant and model, with the floor and the Bayes error."""

    errors: dict[str, dict[str, Float[np.ndarray, "seeds rules fractions"]]]
    """Under all rules for the variant `paper`, only under the first (flip) for the others."""
    floor: Float[np.ndarray, " fractions"]
    bayes: Float[np.ndarray, " fractions"]
    """Error of the Bayes predictor that ignores poisoned labels; the same under every rule."""
    seeds: list[int]
    runs: list[str]

    def at(self, variant: str, model: str, rule: str, fraction: float) -> Float[np.ndarray, " seeds"]:
        """Errors over seeds at one point."""
        return self.errors[variant][model][:, RULES.index(rule), FRACTIONS.index(fraction)]


def rule_errors(trained: Sequence[Trained], seeds: Sequence[int], prompts: int, scale_factor: float = 3.0,
                rules: Sequence[str] = RULES, progress: Progress | None = None
                ) -> Float[np.ndarray, "models rules fractions"]:
    """Errors of the models, each with its test seed, under these label rules at every outlier fraction."""
    tests = [attacked_prompts(rule, fraction, scale_factor) for rule in rules for fraction in FRACTIONS]
    errors = model_errors(trained, tests, count=prompts, seeds=seeds, progress=progress)
    return errors.reshape(len(trained), len(rules), len(FRACTIONS))


def references(prompts: int) -> tuple[list[float], list[float]]:
    """The floor in closed form and the Bayes predictor's error, at every outlier fraction."""
    tests = [attacked_prompts("random", fraction) for fraction in FRACTIONS]
    bayes = [measure_error(bayes_predictor(test), test, count=prompts).error for test in tests]
    return [information_floor(test) for test in tests], bayes


def measure(lab: Lab) -> Robustness:
    """Train both models on all tasks and Mamba on few, then measure their errors."""
    size = SIZES[lab.scale]
    seeds = lab.seeds(size.seeds)
    all_task_runs = [run for model in MODELS for run in per_seed(one_layer_run(model, size.steps), seeds)]
    few_task_runs = per_seed(one_layer_run("mamba", FEW_TASKS_STEPS[lab.scale], shifts=1), seeds)

    def compute() -> list[Any]:
        trained = lab.train([*all_task_runs, *few_task_runs])
        all_task_models = trained[:len(all_task_runs)]
        errors_of = partial(rule_errors, prompts=size.prompts, progress=lab.progress)
        # Models with the same seed share test prompts, which are drawn once per call: one call per set of tests.
        flip = errors_of(trained, seeds * 3, rules=RULES[:1])
        others = errors_of(all_task_models, seeds * 2, rules=RULES[1:])
        paper = np.concatenate([flip[:len(all_task_runs)], others], axis=1)
        return [paper.tolist(), flip[len(all_task_runs):].tolist(),
                errors_of(all_task_models, seeds * 2, scale_factor=1.0, rules=RULES[:1]).tolist()]

    stored = lab.store.recall("mamba-robustness", [all_task_runs, few_task_runs, size.prompts], compute)
    paper, few_tasks, same_scale = (np.array(part).reshape(-1, len(seeds), *np.shape(part)[1:]) for part in stored)
    errors = {"paper": dict(zip(MODELS, paper, strict=True)), "same_scale": dict(zip(MODELS, same_scale, strict=True)),
              "few_tasks": {"mamba": few_tasks[0]}}
    floor, bayes = lab.store.recall("mamba-references", size.prompts, lambda: references(size.prompts))
    return Robustness(errors, np.array(floor), np.array(bayes), seeds,
                      [str(run_id(run)) for run in [*all_task_runs, *few_task_runs]])
