"""Error rates by the fused kernels are those of the compiled programs."""

from __future__ import annotations

import numpy as np
import pytest

from iclab import GatedAttention, LabelEmbedding, model_errors, replace, train_many
from iclab.probes.kernel_errors import kernels_can_read

MIXED = {"outlier_mixtures": ((0.7, 0.6), (-0.4, 0.9)), "pattern_mixtures": ((0.6, 0.8, 0.0), (0.0, 0.6, -0.8))}


@pytest.fixture(scope="module")
def runs():
    from iclab import Classification, Run, Training

    prompts = Classification(dimension=9, relevant_patterns=3, irrelevant_patterns=3, outlier_patterns=2,
                             prompt_length=6, outlier_fraction=0.4)
    return [Run(model=GatedAttention(member=member, embedding=LabelEmbedding(norm=norm)), prompts=prompts,
                training=Training(steps=60, batch_size=16, learning_rate=0.1, record_every=60))
            for member, norm in (("mamba", 1.0), ("mamba", 2.0), ("linear", 1.0), ("mamba2_step", 1.0))]


@pytest.mark.parametrize("measure", ["error", "hinge"])
def test_errors_are_those_of_the_compiled_model(runs, measure):
    tests = [replace(runs[0].prompts, label_rule="flip", prompt_length=length, **changes)
             for length, changes in ((6, {}), (9, MIXED), (9, {"rotation_seed": 1, "placement": "close"}))]
    models = train_many(runs)
    by_xla = [replace(trained.run, training=replace(trained.run.training, backend="xla")) for trained in models]
    compiled = [type(trained)(run, *(getattr(trained, name) for name in ("params", "optimizer", "steps", "loss")))
                for trained, run in zip(models, by_xla, strict=True)]
    assert kernels_can_read(models, tests)
    assert not kernels_can_read(compiled, tests)
    mine, theirs = (model_errors(some, tests, count=2000, seeds=[0, 1, 0, 1], measure=measure)
                    for some in (models, compiled))
    assert theirs.min() < theirs.max()
    np.testing.assert_allclose(mine, theirs, atol=0.0011 if measure == "error" else 1e-4)
    assert np.isclose(mine, theirs, rtol=1e-5).mean() > 0.8
