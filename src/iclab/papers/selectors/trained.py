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
    """The models inside the premises of the theorems, probed during training."""
    size = THEOREM_SIZES[lab.scale]
    return lab.train_seeds(theorem_run(size.steps, size.records), lab.seeds(size.seeds), inside)


def bare_models(lab: Lab) -> list[Trained]:
    """More of them, trained without noise, which kernels do fast, and not probed during training; below full scale the
    same models as above."""
    size = THEOREM_SIZES[lab.scale]
    if not size.bare:
        return theorem_models(lab)
    return lab.train_seeds(theorem_run(size.steps, 1, noise_norm=None), lab.seeds(size.bare))
