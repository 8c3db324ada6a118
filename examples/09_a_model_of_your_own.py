"""A model of your own in a few lines: a vote weighted by a learned distance, attacked like all the others."""

from __future__ import annotations

import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp

import iclab
from iclab import Classification, LabelEmbedding, Run, Training, measure_error, replace, train

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1500


class Seen(NamedTuple):
    """What a probe may look at."""

    scores: jax.Array


@iclab.spec(part="model")
class KernelVote:
    """`F = sum_i y_i softmax_i(-|W (x_i - x_query)|^2)`, W trained."""

    init_scale: float = iclab.number(default=0.1)
    """Starting value of W's diagonal."""
    embedding: LabelEmbedding = iclab.part(default_factory=LabelEmbedding)
    """How labels enter the columns."""

    def check(self) -> None:
        iclab.require_range(self, "init_scale", 0, float("inf"), open_low=True, open_high=True)

    def init(self, key: jax.Array, dimension: int) -> jax.Array:
        """Weights before training."""
        return self.init_scale * jnp.eye(dimension)

    def apply(self, W: jax.Array, columns: jax.Array) -> tuple[jax.Array, Seen]:
        """The output for one prompt's query, and its intermediates; vmap handles batches."""
        x, y = columns[:, :-1], columns[:, -1]
        scores = jax.nn.softmax(-jnp.square((x[:-1] - x[-1]) @ W.T).sum(axis=1))
        return scores @ y[:-1], Seen(jnp.append(scores, 0.0)[None])


def main() -> dict[float, float]:
    prompts = Classification(outlier_fraction=0.6)
    trained = train(Run(model=KernelVote(), prompts=prompts, training=Training(steps=STEPS, learning_rate=0.1)))
    errors = {}
    for scale in (2.0, 6.0):
        attack = replace(prompts, label_rule="flip", outlier_scale=scale)
        errors[scale] = measure_error(trained, attack).error
        print(f"60 % of the labels flipped, outliers of size {scale:g}: error {errors[scale]:.4f}")
    return errors


if __name__ == "__main__":
    main()
