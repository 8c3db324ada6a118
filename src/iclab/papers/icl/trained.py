"""The trained models that the entries share."""

from __future__ import annotations

from iclab.lab.laboratory import Lab, per_seed
from iclab.papers.icl.mechanism import inside
from iclab.papers.icl.settings import GPT2_SIZES, LABEL_NORM, SIZES, gpt2_run, one_layer_run
from iclab.training import Trained

FRACTIONS = (0.8, 0.6)


def one_layer_models(lab: Lab, decisive: float, label_norm: float = LABEL_NORM) -> list[Trained]:
    """All seeds at this scale, probed during training; the first caller trains both decisive fractions."""
    size = SIZES[lab.scale]
    seeds = lab.seeds(size.seeds)
    runs = [run for fraction in FRACTIONS
            for run in per_seed(one_layer_run(fraction, size.steps, label_norm), seeds)]
    first = size.seeds * FRACTIONS.index(decisive)
    return lab.train(runs, inside)[first:first + size.seeds]


def gpt2_models(lab: Lab) -> list[Trained]:
    """GPT-2, all seeds at this scale."""
    return lab.train_seeds(gpt2_run(lab.scale), lab.seeds(GPT2_SIZES[lab.scale].seeds))
