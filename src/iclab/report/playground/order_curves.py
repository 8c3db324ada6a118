"""How Mamba's order parameters move along training, beside what the population dynamics predict of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from iclab.report.playground.exhibits import Exhibit, at_step
from iclab.training import Run, Trained
from iclab.training.fused import unsuited_machine
from iclab.training.order import PatternWeights, order_parameters, pattern_weights
from iclab.training.population import population_dynamics
from iclab.training.sgd import begin

MODEL = "mamba"
KINDS = ("relevant", "irrelevant", "outlier")
EVERY, UNTIL = 20, 40
"""The curves have a point at every record up to step UNTIL, then at multiples of EVERY."""


def order_of(weights: PatternWeights) -> dict[str, Any]:
    """The score of equal patterns, that of different ones (the mean over all pairs), and w by kind of pattern."""
    order = order_parameters(weights)
    pairs = [weights.between(weights.scores, shift) for shift in range(1, weights.relevant)]
    return {"score, equal": order["score, shift 0"], "score, pairs": sum(pairs) / len(pairs),
            **{f"w, {kind}": order[f"w, {kind}"] for kind in KINDS}}


def predicted_order(run: Run) -> dict[str, list[float]]:
    """The population dynamics of a run, at its start and at every record; nothing on machines that cannot compute them.

    Cost: about 2 s for 1,000 steps.
    """
    if unsuited_machine():
        return {}
    start = pattern_weights(begin(run).params, run.prompts)
    first = order_of(start._replace(w=np.zeros(len(start.w))))
    later = population_dynamics(run, order=order_of).order
    return {name: [float(first[name]), *map(float, later[name])] for name in first}


def order_curves(exhibit: Exhibit, trained: Trained, predicted: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The curves as the page draws them, with points at all steps at which it has weights."""
    interval = exhibit.run.training.record_every
    steps = [0, *(int(step) for step in trained.steps
                  if step <= UNTIL or step % EVERY == 0 or step in exhibit.steps)]
    rows = [order_of(pattern_weights(at_step(trained, step), exhibit.run.prompts)) for step in steps]
    return {"model": exhibit.name, "steps": steps, "curves": [
        {"name": name, "trained": [round(float(row[name]), 3) for row in rows],
         "predicted": [round(predicted[name][step // interval], 3) for step in steps] if predicted else []}
        for name in rows[0]]}
