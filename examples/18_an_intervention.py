"""Is the gate the cause? Set it, transplant it, and do the same to a value inside a model of your own."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp

import iclab
from iclab import GatedAttention, LabelEmbedding, Run, Training, ablate, clamp, graft, intervene, measure_error, train

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1500
PROMPTS = iclab.Classification(outlier_fraction=0.6)
ATTACK = iclab.replace(PROMPTS, label_rule="flip", outlier_scale=6.0)


@iclab.spec(part="model")
class Vote:
    """`F = sum_i y_i softmax_i(x_i^T W x_query)`, W trained; its attention is a site."""

    embedding: LabelEmbedding = iclab.part(default_factory=LabelEmbedding)
    """How labels enter the columns."""

    def init(self, key: jax.Array, dimension: int) -> jax.Array:
        """Weights before training."""
        return 0.1 * jnp.eye(dimension)

    def apply(self, W: jax.Array, columns: jax.Array) -> tuple[jax.Array, None]:
        """The output for one prompt's query."""
        x, y = columns[:, :-1], columns[:-1, -1]
        return iclab.site("attention", jax.nn.softmax(x[:-1] @ W @ x[-1])) @ y, None


def main() -> dict[str, float]:
    """Train three models, intervene, attack; return the errors."""
    def trained(model: object, rate: float) -> iclab.Trained:
        return train(Run(model=model, prompts=PROMPTS, training=Training(steps=STEPS, learning_rate=rate)))

    mamba, linear = trained(GatedAttention(), 1.0), trained(GatedAttention(member="linear"), 0.1)
    vote = trained(Vote(), 0.1)
    models = {
        "Mamba": mamba,
        "Mamba, every gate at 1": intervene(mamba, clamp("gates", 1.0)),
        "Mamba, the gates of poisoned examples at 1": intervene(mamba, clamp("gates", 1.0, where="poisoned")),
        "linear Transformer": linear,
        "linear Transformer with Mamba's gates": graft(linear, mamba, "gates"),
        "a vote": vote,
        "a vote without attention on the query's pattern": intervene(vote, ablate("attention", where="same"))}
    errors = {name: measure_error(model, ATTACK, count=4000).error for name, model in models.items()}
    for name, error in errors.items():
        print(f"{name}: error {error:.3f} with 60 % of the labels flipped")
    return errors


if __name__ == "__main__":
    main()
