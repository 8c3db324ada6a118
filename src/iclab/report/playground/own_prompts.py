"""The prompts of the user's own models as the page draws them: those of the first model's training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from iclab.core.spec import lower
from iclab.prompts import Chain, Classification, Regression
from iclab.prompts.patterns import pattern_basis, unit_rows
from iclab.prompts.tasks import all_tasks, parse_tasks
from iclab.report.playground.ported import has_basis, packed, used_inputs
from iclab.training import Run

SAME: dict[type, tuple[str, ...]] = {
    Classification: ("dimension", "relevant_patterns", "irrelevant_patterns", "outlier_patterns", "pattern_norm",
                     "coefficient_low", "coefficient_high", "noise_norm", "outlier_mixtures", "pattern_mixtures",
                     "rotation_seed", "basis"),
    Chain: ("dimension", "patterns", "reasoning_steps", "noise_norm", "pattern_mixtures"),
    Regression: ("dimension", "constant", "outlier_patterns", "noise", "nonzero", "pool", "pool_seed", "mirrored")}
"""Fields of the prompts that all models on a page must share; the page has a control for each of the others, except
for the transition matrices of chains."""
MOST_PAIRS = 10_000
"""Most tasks that a page lists."""
DIFFER = " They differ in other fields of their prompts; the page begins with those of the first."
NAMED_RULES = ("random", "flip", "target")
"""Rules for labels of poisoned examples that the page has too."""


def label_data(runs: Sequence[Run]) -> dict[str, Any]:
    """Labelled prompts as the page draws them."""
    prompts = runs[0].prompts
    directions = (np.eye(prompts.outlier_patterns) if prompts.outlier_mixtures is None
                  else np.asarray(unit_rows(prompts.outlier_mixtures), float))
    rule = prompts.label_rule
    own = {"length": prompts.prompt_length, "fraction": float(prompts.outlier_fraction),
           "scale": float(prompts.outlier_scale), "rule": rule if isinstance(rule, str) else _name(rule),
           "placement": prompts.placement, "decisive": float(prompts.decisive_fraction),
           "coefficients": [float(prompts.coefficient_low), float(prompts.coefficient_high)],
           "noise": float(prompts.noise_norm or 0.0), "mixtures": prompts.pattern_mixtures, "tasks": _tasks(runs),
           "depth": max(getattr(run.model, "layers", 1) for run in runs), "words": _label_words(runs)}
    data = {"dimension": used_inputs(prompts), "patterns": prompts.relevant_patterns,
            "irrelevant": prompts.irrelevant_patterns, "patternNorm": float(prompts.pattern_norm),
            "irrelevantScale": float(prompts.irrelevant_scale), "outliers": prompts.outlier_patterns,
            "trainingScale": 1.0, "directions": directions.tolist(), "own": own}
    if has_basis(prompts):
        data["basis"] = packed(np.asarray(pattern_basis(prompts.dimension, prompts.rotation_seed, prompts.basis)))
    return data


def number_data(prompts: Sequence[Regression], words: str | None = None) -> dict[str, Any]:
    """Regression prompts as the page draws them."""
    first = prompts[0]
    rule = first.label_rule if first.label_rule in NAMED_RULES else "random"
    data: dict[str, Any] = {
        "dimension": first.dimension, "signals": first.signals, "constant": first.constant,
        "outliers": first.outlier_patterns, "noise": float(first.noise), "nonzero": first.nonzero,
        "trained": {"length": first.prompt_length, "fraction": float(first.outlier_fraction),
                    "scale": float(first.outlier_scale), "size": float(first.outlier_label), "rule": rule,
                    "placement": first.placement}}
    if words is not None:
        data["words"] = words
    if first.pool is not None:
        data["tasks"] = packed(first.pool_weights()[:, :first.signals])
    return data


def own_number_data(runs: Sequence[Run]) -> dict[str, Any]:
    """The same of the user's own prompts, with a sentence on what they are made of."""
    prompts = [run.prompts for run in runs]
    first = prompts[0]
    tasks = ("a new task in every prompt" if first.pool is None
             else f"{first.pool} tasks{' of either sign' * first.mirrored}")
    words = (f"{_subject(runs)} trained on regression prompts with {tasks}, {first.signals} coordinates that count, "
             f"noise {first.noise:g} and {_outlier_words(first.outlier_patterns)}.")
    if first.label_rule not in NAMED_RULES:
        words += (f" Training had a label rule of its own, {_name(first.label_rule)}; on this page poisoned labels "
                  "follow the rule that you choose.")
    if any(other != first for other in prompts[1:]):
        words += DIFFER
    return number_data(prompts, words)


def chain_data(runs: Sequence[Run]) -> dict[str, Any]:
    """Chain prompts as the page draws them."""
    prompts = runs[0].prompts
    mixtures = lower(prompts).pattern_mixtures
    basis = np.eye(prompts.dimension) if mixtures is None else np.asarray(mixtures)
    words = (f"{_subject(runs)} trained on chains of {prompts.reasoning_steps} steps over {prompts.patterns} patterns, "
             f"with {prompts.prompt_length} examples; inputs have {prompts.dimension} numbers.")
    if prompts.transitions is not None:
        words += " Training had transition matrices of its own; on this page steps go wrong as the sliders say."
    return {"dimension": prompts.dimension, "patterns": prompts.patterns, "steps": prompts.reasoning_steps,
            "noise": float(prompts.noise_norm or 0.0), "basis": packed(basis.astype(np.float64)),
            "own": {"length": prompts.prompt_length, "matching": float(prompts.matching_fraction), "words": words}}


def _tasks(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Sets of tasks: those that some model was trained on, all, and those that none was trained on."""
    patterns = runs[0].prompts.task_patterns
    seen = {task: None for run in runs for task in parse_tasks(run.prompts.tasks, patterns)}
    unseen = [task for task in all_tasks(patterns) if task not in seen]
    if not unseen:
        return [{"name": "training", "pairs": None}]
    sets: list[dict[str, Any]] = [{"name": "training", "pairs": list(seen)}, {"name": "all", "pairs": None}]
    return [*sets, {"name": "unseen", "pairs": unseen}] if len(unseen) <= MOST_PAIRS else sets


def _label_words(runs: Sequence[Run]) -> str:
    """What the prompts are made of, in a sentence or two."""
    prompts = runs[0].prompts
    outliers = prompts.outlier_patterns
    parts = [f"{prompts.relevant_patterns} relevant and {prompts.irrelevant_patterns} irrelevant patterns of length "
             f"{prompts.pattern_norm:g} in {prompts.dimension} dimensions"]
    if has_basis(prompts):
        parts.append("in a basis of your own" if prompts.basis is not None
                     else f"turned at random (seed {prompts.rotation_seed})")
    if prompts.pattern_mixtures is not None:
        parts.append(f"mixed into {len(prompts.pattern_mixtures)} patterns")
    parts.append(_outlier_words(outliers))
    if prompts.noise_norm:
        parts.append(f"noise up to {prompts.noise_norm:g}")
    words = f"{_subject(runs)} trained on prompts with {', '.join(parts)}."
    if any(run.prompts != prompts for run in runs[1:]):
        words += DIFFER
    return words


def _outlier_words(count: int) -> str:
    return f"{count} outlier direction{'s' * (count != 1)}" if count else "no outliers"


def _subject(runs: Sequence[Run]) -> str:
    return "This model was" if len(runs) == 1 else f"These {len(runs)} models were"


def _name(rule: Any) -> str:
    return getattr(rule, "__name__", type(rule).__name__)
