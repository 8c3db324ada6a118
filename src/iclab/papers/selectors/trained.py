"""The trained models that the entries share."""

from __future__ import annotations

from iclab.lab.laboratory import Lab
from iclab.papers.selectors.mechanism import inside
from iclab.papers.selectors.settings import SIZES, THEOREM_SIZES, a_run, theorem_run
from iclab.training import Trained


def trained_models(lab: Lab) -> list[Trained]:
    """The models of all seeds at this scale, probed during training."""
    size = SIZES[lab.scale]
    return lab.train_seeds(a_run(size.steps), lab.seeds(size.seeds), inside)


def theorem_models(lab: Lab) -> list[Trained]:
    """The models inside the premises of the theorems."""
    size = THEOREM_SIZES[lab.scale]
    return lab.train_seeds(theorem_run(size.steps, size.records), lab.seeds(size.seeds), inside)
