"""The trained models that the entries share, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as with_fields

from iclab.lab.laboratory import Lab
from iclab.papers.cot.mechanism import inside
from iclab.papers.cot.settings import SHORT, SIZES, covered_run
from iclab.probes.chains import Asked, ChainErrors, all_chain_errors
from iclab.prompts.chain import Chain
from iclab.training import Run, Trained
from iclab.training.sgd import begin


def judged_run(lab: Lab) -> Run:
    """The training run that the entries share."""
    return covered_run(SIZES[lab.scale].steps)


def models(lab: Lab) -> list[Trained]:
    """All seeds at this scale, probed during training."""
    return lab.train_seeds(judged_run(lab), lab.seeds(SIZES[lab.scale].seeds), inside)


def untrained(trained_models: Sequence[Trained]) -> list[Trained]:
    """The same models with their initial parameters."""
    return [with_fields(trained, params=begin(trained.run).params) for trained in trained_models]


def prompts_for(lab: Lab, lengths: Sequence[int]) -> int:
    """Prompts per test at this scale: fewer where they are long."""
    size = SIZES[lab.scale]
    return size.prompts if max(lengths) <= max(SHORT) else size.long_prompts


def asked(lab: Lab, trained_models: Sequence[Trained], tests: Sequence[Chain], lengths: Sequence[int]) -> Asked:
    """A request to test the models, with this scale's number of prompts."""
    return Asked(trained_models, tests, tuple(lengths), prompts_for(lab, lengths))


def errors(lab: Lab, parts: Sequence[Asked]) -> list[ChainErrors]:
    """Errors of all parts, measured once."""
    return [ChainErrors(*values) for values in lab.remember(all_chain_errors, parts)]
