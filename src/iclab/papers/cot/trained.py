"""The trained models at which the entries look, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as with_fields
from typing import Any

import numpy as np

from iclab.papers.cot.mechanism import inside
from iclab.papers.cot.settings import FEWER, SHORT, SIZES, a_run
from iclab.papers.entries import Lab, per_seed
from iclab.probes.chains import Asked, ChainErrors, all_chain_errors
from iclab.prompts.chain import Chain
from iclab.training import Trained
from iclab.training.sgd import begin


def models(lab: Lab) -> list[Trained]:
    """All seeds of this scale, watched along training."""
    size = SIZES[lab.scale]
    return lab.train(per_seed(a_run(size.steps, record_every=5), lab.seeds(size.seeds)), inside)


def untrained(some: Sequence[Trained]) -> list[Trained]:
    """The same models as they began."""
    return [with_fields(trained, params=begin(trained.run).params) for trained in some]


def prompts_for(lab: Lab, lengths: Sequence[int]) -> int:
    """How many prompts a model is tested on at this scale: fewer where they are long."""
    return int(SIZES[lab.scale].prompts * (1.0 if max(lengths) <= max(SHORT) else FEWER))


def asked(lab: Lab, some: Sequence[Trained], tests: Sequence[Chain], lengths: Sequence[int]) -> Asked:
    """Some models on some tests, with as many prompts as the scale allows."""
    return Asked(some, tests, tuple(lengths), prompts_for(lab, lengths))


def errors(lab: Lab, name: str, parts: Sequence[Asked]) -> list[ChainErrors]:
    """Errors of all parts, measured once; `name` tells apart what was done to the models."""
    def compute() -> list[Any]:
        return [[values.tolist() for values in found] for found in all_chain_errors(parts)]

    ingredients = [[[trained.run for trained in part.models], list(part.tests), list(part.lengths), part.prompts]
                   for part in parts]
    return [ChainErrors(*(np.array(values) for values in found))
            for found in lab.store.recall(f"cot-{name}", ingredients, compute)]
