"""Settings of li2025mamba, section 4, with our choices for what it leaves open.

| given by the paper                                                | chosen here                                     |
| ----------------------------------------------------------------- | ----------------------------------------------- |
| d 30, M1 6, M2 10, V 3, l 20, delta .2, beta 3, kappa_a 2, p_a .6 | eta 1 (Mamba), 0.1 (linear), B 128, T 10,000    |
| v1' v2' v3' as coefficient rows, K <= 1/2 in training, K' > 1     | K 0.5, K' 1.2, kappa_a' = 3 kappa_a, U = 5      |

The linear Transformer diverges at eta 1; at 0.1 its loss stops falling long before T. The paper's three v' are not
quite of unit length; here they are normalised.
"""

from __future__ import annotations

from typing import Any

from iclab.core.spec import replace
from iclab.lab.entries import Size
from iclab.models import GatedAttention
from iclab.prompts import Classification
from iclab.training import Run, Training

FRACTIONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
RULES = ("flip", "target", "random")
TEST_MIXTURES = ((0.7, 0.6, -0.4), (0.4, 0.7, -0.6), (-0.7, 0.5, 0.5))
FINER = ("It asked for more than the theorem promises, its epsilon: the batch size meets the premises for an accuracy "
         "of 0.1, not for the finer one that was judged.")
"""Why rules of theorems that were finer than their accuracy were replaced."""
LEARNING_RATES = {"mamba": 1.0, "linear": 0.1}

SIZES = {"tiny": Size(seeds=2, steps=600, prompts=1_000), "quick": Size(seeds=4, steps=2_000, prompts=2_000),
         "full": Size(seeds=8, steps=10_000, prompts=20_000)}
"""Sizes for the one-layer models of figure 2, which most entries reuse."""
FEW_TASKS_STEPS = {"tiny": 600, "quick": 2_000, "full": 4_000}
"""Steps of the one-layer models trained on a subset of the tasks."""


def sizes(**fields: tuple[Any, Any, Any]) -> dict[str, Size]:
    """`SIZES` with these fields, each with its values at the scales tiny, quick and full."""
    return {scale: Size(**(vars(size) | {name: values[i] for name, values in fields.items()}))
            for i, (scale, size) in enumerate(SIZES.items())}


def training_prompts(shifts: int = 5, **changes: Any) -> Classification:
    """Training prompts of section 4.1, tasks from the cyclic family with `shifts` shifts."""
    return replace(Classification(outlier_fraction=0.6, outlier_scale=2.0, irrelevant_scale=0.5,
                                  tasks=f"cyclic:{shifts}"), **changes)


def attacked_prompts(rule: str, fraction: float, scale_factor: float = 3.0, **changes: Any) -> Classification:
    """Test prompts of section 4.1: unseen outlier directions, `scale_factor` times the training scale, all tasks."""
    training = training_prompts()
    attack = {"outlier_scale": scale_factor * training.outlier_scale, "irrelevant_scale": 1.2,
              "outlier_mixtures": TEST_MIXTURES, "label_rule": rule, "tasks": "all"}
    return replace(training, outlier_fraction=fraction, **(attack | changes))


def one_layer_run(member: str, steps: int, shifts: int = 5) -> Run:
    """The training run of a one-layer model of section 4.1."""
    return Run(model=GatedAttention(member=member), prompts=training_prompts(shifts),
               training=Training(steps=steps, learning_rate=LEARNING_RATES[member], record_every=500))
