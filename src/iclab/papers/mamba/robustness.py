"""The measurement behind figure 2 and `mamba.robust`: error against outlier fraction, label rule, scale and tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from iclab.lab.estimates import Rate
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.settings import FEW_TASKS_STEPS, FRACTIONS, RULES, SIZES, attacked_prompts, one_layer_run
from iclab.papers.mamba.trained import one_layer_models
from iclab.probes import bayes_predictor, information_floor, measure_error
from iclab.prompts import Classification

VARIANTS = {
    "paper": "Trained on all tasks, test outliers 3 times as large",
    "same_scale": "Outliers as large as in training",
    "few_tasks": "Trained on 6 of 30 tasks",
}
"""The figure under every rule, and two questions it leaves open under flip."""
FLOOR = tuple(information_floor(attacked_prompts("random", fraction)) for fraction in FRACTIONS)
"""At every outlier fraction, the same under every rule."""

Errors = Float[np.ndarray, "seeds rules fractions"]


@dataclass(frozen=True)
class Robustness:
    """Errors for each variant and model, and the Bayes error."""

    errors: dict[str, dict[str, Errors]]
    """Under all rules for the variant `paper`, only under the first (flip) for the others."""
    prompts: int
    bayes: Sequence[float] = ()
    """Error of the Bayes predictor that ignores poisoned labels; the same under every rule."""
    settings: Mapping[int, Float[np.ndarray, "seeds rules factors"]] = field(default_factory=dict)
    """By the number of trained shifts, errors close to fraction 0.8 at several test scales (`mamba.robust`)."""

    def error(self, variant: str, model: str, rule: str, fraction: float) -> Rate:
        """The error at one point."""
        return Rate(self.errors[variant][model][:, RULES.index(rule), FRACTIONS.index(fraction)], self.prompts)

    def excess(self, variant: str, model: str, rule: str, fraction: float) -> Rate:
        """The error over the floor at one point."""
        return Rate(self.error(variant, model, rule, fraction).rates, self.prompts, FLOOR[FRACTIONS.index(fraction)])


def attacks(rules: Sequence[str] = RULES, scale_factor: float = 3.0) -> list[Classification]:
    """Tests by label rule, then outlier fraction."""
    return [attacked_prompts(rule, fraction, scale_factor) for rule in rules for fraction in FRACTIONS]


def by_rule(errors: Float[np.ndarray, "models tests"]) -> Float[np.ndarray, "models rules fractions"]:
    """Errors on `attacks`."""
    return errors.reshape(len(errors), -1, len(FRACTIONS))


def bayes_errors(prompts: int) -> list[float]:
    """The Bayes predictor's error at every outlier fraction."""
    return [measure_error(bayes_predictor(test), test, count=prompts).error for test in attacks(("random",))]


def measure(lab: Lab) -> Robustness:
    """Train both models on all tasks and Mamba on few, then measure their errors."""
    size = SIZES[lab.scale]
    mamba, linear = (one_layer_models(lab, member) for member in ("mamba", "linear"))
    few_tasks = lab.train_seeds(one_layer_run("mamba", FEW_TASKS_STEPS[lab.scale], shifts=1), lab.seeds(size.seeds))
    # Models with the same seed share test prompts, which are drawn once per call: one call per set of tests.
    flip = by_rule(lab.errors([*mamba, *linear, *few_tasks], attacks(RULES[:1]), size.prompts))
    others = by_rule(lab.errors([*mamba, *linear], attacks(RULES[1:]), size.prompts))
    same_scale = by_rule(lab.errors([*mamba, *linear], attacks(RULES[:1], 1.0), size.prompts))
    paper = np.concatenate([flip[:len(others)], others], axis=1)

    def by_model(errors: Errors) -> dict[str, Errors]:
        return dict(zip(("mamba", "linear"), np.split(errors, 2), strict=True))

    errors = {"paper": by_model(paper), "same_scale": by_model(same_scale), "few_tasks": {"mamba": flip[len(others):]}}
    return Robustness(errors, size.prompts, lab.remember(bayes_errors, size.prompts))
