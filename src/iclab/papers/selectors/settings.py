"""Settings of li2024selectors, which gives conditions but no numbers.

| given by the paper                                            | chosen here                                         |
| ------------------------------------------------------------- | --------------------------------------------------- |
| delta < .1, |kappa| <= 1, |q| = beta, a = +-1/m, tasks of one | d 30, M1 6, M2 24 (M < M1^2 = 36, as in the lab's   |
| cyclic family, lam > 0, noise of norm <= tau <= O(1/M1)       | other figures), beta 3, delta .09, lam in           |
|                                                               | (.5, 1), tau .1, decisive fraction .8, l 20, eta    |
|                                                               | .5, B 128, m 100                                    |
"""

from __future__ import annotations

from typing import Any

from iclab.core.spec import replace
from iclab.lab.entries import Size
from iclab.models import SoftmaxMLP
from iclab.prompts import Classification
from iclab.training import Run, Training

SIZES = {"tiny": Size(seeds=2, steps=50, prompts=500), "quick": Size(seeds=8, steps=400, prompts=1_000),
         "full": Size(seeds=8, steps=600, prompts=5_000)}


def training_prompts(**changes: Any) -> Classification:
    """Prompts with coefficients and noise, for training and for tests."""
    return replace(Classification(irrelevant_patterns=24, outlier_patterns=0, irrelevant_scale=1.0, tasks="cyclic:1",
                                  decisive_fraction=0.8, coefficient_low=0.5, noise_norm=0.1), **changes)


def a_run(steps: int, **changes: Any) -> Run:
    """The training run of the one-layer Transformer on these prompts; its loss is recorded every 10 steps."""
    return Run(model=SoftmaxMLP(init_scale=0.09), prompts=training_prompts(**changes),
               training=Training(steps=steps, learning_rate=0.5, record_every=10))
