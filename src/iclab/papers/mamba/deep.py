"""The three-layer models of section 4.2, used by figures 3 to 6 and table 1.

The paper gives p_a 0.4 and the depth. Chosen here: residual connections (training fails without them); every layer's
output divided by the number of tokens, for both models (the linear Transformer diverges otherwise, and Mamba's layers
filter more); one gate for all channels; T 2,000, B 32, U = 5. Mamba is trained by plain SGD with eta 0.2, as in
algorithm 1; the linear Transformer, some of whose seeds diverge there, by Adam 1e-3. Mamba's setting was chosen on
other seeds (`mamba.deep_search`); before, it was Adam 1e-3 without the division.

In a stack a token may read those before it or all others; one layer gives the same output. Mamba reads those before.
For the linear Transformer the paper does not say; here every token reads all. Table 1 also has the other reading.
Cost: 16 trainings, about 6 s.
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
TRAINING = {"mamba": ("sgd", 0.2), "linear": ("adam", 1e-3)}
"""Optimizer and learning rate."""
DEEP = {"tiny": Size(seeds=2, steps=100, prompts=500), "quick": Size(seeds=4, steps=600, prompts=1_000),
        "full": Size(seeds=8, steps=2_000, prompts=2_000)}
"""Sizes of everything about the three-layer models."""
WATCHED_TEST = attacked_prompts("flip", 0.3)
WATCHED = 200
"""Number of test prompts on which the score mass is measured during training."""


def deep_run(member: str, steps: int, *, causal: bool | None = None) -> Run:
    """The training run of a three-layer model; of the members only the linear one may read all tokens."""
    optimizer, rate = TRAINING[member]
    model = GatedAttention(member=member, layers=LAYERS, normalise=True,
                           causal=member != "linear" if causal is None else causal)
    return Run(model=model, prompts=training_prompts(outlier_fraction=0.4),
               training=Training(steps=steps, batch_size=32, optimizer=optimizer, learning_rate=rate, record_every=100))


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
