"""What the entries on token prompts share."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import optax

from iclab.models import MambaBlock, SoftmaxAttention, TokenEmbedding
from iclab.prompts.token_family import TokenFamily
from iclab.training import Run, Training


@cache
def falling(steps: int) -> Callable[[Any], optax.GradientTransformation]:
    """Adam whose step falls to a twentieth: what is left of a floor is then not the noise of batches. One object for
    each number of steps, so that seeds train together."""
    def adam(learning_rate: Any) -> optax.GradientTransformation:
        return optax.adam(optax.cosine_decay_schedule(learning_rate, steps, 0.05))

    return adam


def attention(reach: int, layers: int = 2, heads: int = 2) -> SoftmaxAttention:
    """Causal softmax attention that reads tokens, with learned shifts by distance."""
    return SoftmaxAttention(layers=layers, heads=heads, size=32, reach=reach, embedding=TokenEmbedding())


def mamba(state: int, size: int = 16) -> MambaBlock:
    """A Mamba block that reads tokens."""
    return MambaBlock(size=size, state=state, embedding=TokenEmbedding())


def token_run(model: Any, prompts: TokenFamily, steps: int, record_every: int) -> Run:
    """A run with the settings that all entries share: small batches, one step size."""
    return Run(model=model, prompts=prompts, training=Training(
        steps=steps, batch_size=32, learning_rate=0.01, optimizer=falling(steps), clip_norm=1.0,
        loss="token_cross_entropy", record_every=record_every))
