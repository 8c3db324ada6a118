"""The models of the playground, trained as in the papers' entries, with their weights during training.

Cost: 12 models, 25 to 50 s on two cores, mostly compiling; afterwards they are loaded from the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from iclab.core.spec import replace
from iclab.lab.laboratory import Lab, per_seed
from iclab.papers.beyond.regression_outliers import a_run as regression_run
from iclab.papers.cot.settings import a_run
from iclab.papers.icl.search import Setting
from iclab.papers.mamba.settings import one_layer_run
from iclab.training import Run, Setup, Trained
from iclab.training.sgd import begin
from iclab.training.trained import named

RATES = {"mamba": 1.0, "linear": 0.1, "mamba2_step": 1.0, "retnet": 0.1, "gated_retention": 0.1, "mamba2": 0.3,
         "gla": 0.3}
"""Each member's best learning rate, found by `mamba.family`."""
GATED_STEPS = (0, 4, 8, 12, 20, 40, 100, 300, 1000)
SOFTMAX_STEPS = (0, 50, 100, 200, 1000)
CHAIN_STEPS = (0, 5, 10, 15, 20, 30, 50, 200)
REGRESSION_STEPS = (0, 50, 100, 200, 400, 1000, 3000)
"""Training steps at which the page shows the weights; step 0 is the initialization, the others are recorded."""
REGRESSION = "regression_"
"""Names of the models trained on regression prompts begin with it."""
STARTS = {"usual": Setting(), "small": Setting(delta=0.05, norm=1.0)}
"""The softmax Transformer as the entries of the icl paper train it, and with the small start and label vector for which
`icl.search` finds an error that pruning raises."""


@dataclass(frozen=True)
class Exhibit:
    """One model of the page."""

    name: str
    run: Run
    steps: tuple[int, ...]
    """Training steps at which its weights are shown."""


def exhibits(lab: Lab | None = None) -> list[Exhibit]:
    """All models, untrained, with the lab's first seed."""
    seed = 0 if lab is None else lab.seeds(1)[0]

    def recording(run: Run, steps: Sequence[int]) -> Run:
        interval = int(np.gcd.reduce(steps))
        changed = replace(run, training=replace(run.training, steps=max(steps), record_every=interval))
        return per_seed(changed, [seed])[0]

    gated = one_layer_run("mamba", max(GATED_STEPS))
    shown = [Exhibit(member, recording(replace(gated, model=replace(gated.model, member=member), training=replace(
        gated.training, learning_rate=rate)), GATED_STEPS), GATED_STEPS) for member, rate in RATES.items()]
    shown += [Exhibit(f"softmax_{name}", recording(setting.run(), SOFTMAX_STEPS), SOFTMAX_STEPS)
              for name, setting in STARTS.items()]
    shown += [Exhibit(REGRESSION + member, recording(regression_run(member, max(REGRESSION_STEPS)), REGRESSION_STEPS),
                      REGRESSION_STEPS) for member in ("mamba", "linear")]
    return [*shown, Exhibit("chain", recording(a_run(max(CHAIN_STEPS)), CHAIN_STEPS), CHAIN_STEPS)]


def weights(setup: Setup, params: Any) -> Any:
    """Probe: the weights themselves."""
    return params


def trained(lab: Lab) -> list[Trained]:
    """Train all exhibits with the lab's base seed, or load them from the store."""
    return lab.train([exhibit.run for exhibit in exhibits(lab)], weights)


def kept(lab: Lab) -> list[Trained] | None:
    """The trained exhibits if the lab's store has them all."""
    models = [lab.store.find(exhibit.run, weights) for exhibit in exhibits(lab)]
    return [model for model in models if model is not None] if all(models) else None


def at_step(model: Trained, step: int) -> Any:
    """The weights of a model after `step` steps."""
    if step == 0:
        return jax.tree.map(np.asarray, begin(model.run).params)
    if model.probes is None:
        raise ValueError("the model was trained without a record of its weights")
    record = int(np.flatnonzero(model.steps == step)[0])
    return jax.tree.unflatten(jax.tree.structure(model.params),
                              [model.probes[name][record] for name in named(model.params)])
