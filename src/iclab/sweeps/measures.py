"""What a sweep measures on a trained run: named quantities or user functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from iclab.core.errors import SpecError
from iclab.probes import bayes_predictor, information_floor, measure_error
from iclab.probes.chains import ChainErrors, chain_errors
from iclab.probes.error_rate import UNIT, average, common_labels, errors_of
from iclab.probes.reference import HasBayes, HasFloor
from iclab.training import Trained

OF_CHAINS = ("cot", "cot_answer", "icl", "vote", "vote_icl")
OF_KIND = {"sign": ("error", "hinge", "loss", "floor", "bayes"), "class": ("error", "loss"),
           "number": ("squared_error", "loss"), "vector": ("squared_error", "loss"), "step": (*OF_CHAINS, "loss"),
           "tokens": ("cross_entropy", "loss")}
"""What can be measured on prompts whose labels are of each kind."""
NEEDS = {"floor": HasFloor, "bayes": HasBayes}
"""The protocol a family must implement for a measure, besides having the right label kind."""
RANGES = {**dict.fromkeys(("error", "floor", "bayes", "cot", "cot_answer", "icl", "vote", "vote_icl"), UNIT),
          **dict.fromkeys(("hinge", "loss", "squared_error", "cross_entropy"), (0.0, float("inf")))}
"""The range of each measure."""
MEASURES = tuple(dict.fromkeys(name for names in OF_KIND.values() for name in names))
FROM_OUTPUTS = {"error": 0, "squared_error": 0, "cross_entropy": 0, "hinge": 1}
"""Measures of a model's outputs, and their positions in what `errors_of` returns."""
BOOKKEEPING = ("seed", "status", "reason", "sweep", "run", "trial", "test_prompts", "seconds", "started", "finished",
               "fields", "measured")
"""Columns of results that are not measured."""
SOUND = ("trained", "stuck")
"""Outcomes of trials that can be measured: a model that learned nothing has an error too."""
STATES = (*SOUND, "diverged", "failed")
"""All possible outcomes of a trial."""
SETTINGS = ("model.", "prompts.", "training.", "test.", "init_seed", "data_seed")
"""Prefixes of setting names."""
TAKEN = (*BOOKKEEPING, *MEASURES, *STATES, "seeds", "of")
"""Column names that user functions may not use."""


def applies(name: str | Callable[..., Any], test: Any) -> bool:
    """Whether a quantity can be measured on these prompts."""
    if callable(name):
        return True
    return name in OF_KIND[test.labels.name] and isinstance(test, NEEDS.get(name, object))


def measure_run(trained: Trained, tests: Sequence[Any], seed: int, names: Sequence[str | Callable[..., Any]],
                prompts: int) -> list[dict[str, float | None]]:
    """The applicable quantities of one run on each test; for a diverged run, only those that do not need its weights.
    """
    sound = trained.state in SOUND
    outputs = np.full((len(tests), 2), np.nan)
    if sound and any(name in FROM_OUTPUTS for name in names):
        outputs[:] = average(errors_of(common_labels(tests)), [trained], tests, seed, prompts)[0]
    rows = []
    for number, test in enumerate(tests):
        values: dict[str, Any] = {}
        chains: ChainErrors | None = None
        for name in (name for name in names if applies(name, test)):
            if callable(name):
                for key, value in (_user_values(name, trained, test, seed) if sound else {}).items():
                    if key in values or key in TAKEN:
                        raise SpecError(f"measure must return unused names, got {key!r}, which is taken")
                    values[key] = value
            elif name in FROM_OUTPUTS:
                values[name] = outputs[number, FROM_OUTPUTS[name]]
            elif name == "loss":
                values[name] = trained.loss[-1]
            elif name in OF_CHAINS:
                chains = chains or (chain_errors([trained], [test], [test.prompt_length], count=prompts, seed=seed)
                                    if sound else None)
                values[name] = np.nan if chains is None else getattr(chains, name)[0, 0, 0]
            elif name == "floor":
                values[name] = information_floor(test)
            else:
                values[name] = measure_error(bayes_predictor(test), test, count=prompts, seed=seed).error
        rows.append({name: float(value) if np.isfinite(value) else None for name, value in values.items()})
    return rows


def _user_values(function: Callable[..., Any], trained: Trained, test: Any, seed: int) -> dict[str, Any]:
    """The numbers a user function returns, by name."""
    returned = function(trained, test, seed)
    name = getattr(function, "__name__", type(function).__name__)
    values = returned if isinstance(returned, dict) else {name: returned}
    for name, value in values.items():
        if not isinstance(name, str) or name.startswith(SETTINGS) or name.endswith(("_low", "_high")):
            raise SpecError("measure must name its numbers with strings that are neither settings (such as "
                            f"prompts.tasks) nor interval ends (such as error_low), got {name!r}")
        if np.ndim(value) != 0 or not np.issubdtype(np.asarray(value).dtype, np.number):
            raise SpecError(f"measure must return numbers, got {value!r} for {name!r}")
    return values
