"""A laboratory for tests of rules that must fail on untrained models."""

from __future__ import annotations

import dataclasses

from iclab.core.spec import replace
from iclab.lab.laboratory import Lab
from iclab.training.sgd import begin


class UntrainedLab(Lab):
    """A laboratory that trains nothing: every model has its starting weights, and the losses of a first step."""

    def at(self, entry):
        return UntrainedLab(self.store, self.scale, self.base_seed, self.progress, entry)

    def train(self, runs, probe=None):
        brief = [replace(run, training=replace(run.training, steps=1, record_every=1)) for run in runs]
        return [dataclasses.replace(trained, run=run, params=begin(run).params)
                for run, trained in zip(runs, super().train(brief, probe), strict=True)]
