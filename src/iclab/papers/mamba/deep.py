"""The three-layer models of section 4.2, used by figures 3 to 6 and table 1.

The paper gives p_a 0.4 and the depth. Chosen here: Adam 1e-3, B 32, T 2,000, U = 5, one gate for all channels; residual
connections (training fails without them), and the linear Transformer's layers divided by the number of tokens (it
diverges otherwise). A separate gate per channel, as the paper writes it, trains as well but filters less.
Cost: 16 trainings, about 7 s.
"""

from __future__ import annotations

from typing import Any

from iclab.lab.entries import Size
from iclab.lab.laboratory import Lab, per_seed
from iclab.models import GatedAttention
from iclab.papers.mamba.settings import attacked_prompts, training_prompts
from iclab.probes.inside import masses
from iclab.probes.watched import watched_prompts
from iclab.training import Run, Setup, Trained, Training

LAYERS = 3
MODELS = ("mamba", "linear")
DEEP = {"tiny": Size(seeds=2, steps=100, prompts=500), "quick": Size(seeds=4, steps=500, prompts=1_000),
        "full": Size(seeds=8, steps=2_000, prompts=2_000)}
"""Sizes of everything about the three-layer models."""
WATCHED_TEST = attacked_prompts("flip", 0.3)
WATCHED = 200
"""Number of test prompts on which the score mass is measured during training."""


def deep_run(member: str, steps: int) -> Run:
    """The training run of a three-layer model."""
    return Run(model=GatedAttention(member=member, layers=LAYERS, normalise=member == "linear"),
               prompts=training_prompts(outlier_fraction=0.4),
               training=Training(steps=steps, batch_size=32, optimizer="adam", learning_rate=1e-3, record_every=100))


def mass_along(setup: Setup, params: Any) -> dict[str, Any]:
    """Probe: score mass in each layer on a fixed set of test prompts."""
    same, other = masses(setup.model, params, watched_prompts(WATCHED_TEST, WATCHED))
    return {"same": same, "other": other}


def deep_models(lab: Lab) -> dict[str, list[Trained]]:
    """Both models, all seeds, with their score mass during training."""
    size = DEEP[lab.scale]
    seeds = lab.seeds(size.seeds)
    trained = lab.train([run for member in MODELS for run in per_seed(deep_run(member, size.steps), seeds)], mass_along)
    return {member: trained[i * len(seeds):(i + 1) * len(seeds)] for i, member in enumerate(MODELS)}
