"""What the entries on regression prompts share."""

from __future__ import annotations

from typing import Any

import optax

from iclab.models import GatedAttention
from iclab.prompts.regression import Regression
from iclab.training import Run, Training

AVERAGED = 0.6
"""Steps tend to 1 / (AVERAGED t); the best would be the curvature of one layer of linear attention, about 1."""


def averaging(learning_rate: Any) -> optax.GradientTransformation:
    """Plain SGD whose step falls as 1 / t, so that the noise of all batches averages out."""
    return optax.sgd(lambda t: learning_rate / (1 + learning_rate * AVERAGED * t))


def fading(learning_rate: Any) -> optax.GradientTransformation:
    """Adam whose step falls to a hundredth over 1,500 steps: small gradients matter in directions that tasks lack."""
    return optax.adam(optax.linear_schedule(learning_rate, learning_rate / 100, 1_500))


def linear_run(prompts: Regression, training: Training, init_scale: float = 0.5) -> Run:
    """One layer of linear attention on regression prompts."""
    return Run(model=GatedAttention(member="linear", normalise=True, init_scale=init_scale), prompts=prompts,
               training=training)
