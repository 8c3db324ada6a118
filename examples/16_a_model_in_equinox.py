"""A model written in Equinox: its module is trained and attacked as it is. Needs `pip install equinox`."""

from __future__ import annotations

import sys
from typing import Any

import equinox as eqx
import jax

import iclab
from iclab import Classification, LabelEmbedding, Run, Training, measure_error, replace, train

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1500


class Reader(eqx.Module):
    """The query attends to the examples; an MLP turns what it reads into a score."""

    attention: eqx.nn.MultiheadAttention
    score: eqx.nn.MLP

    def __init__(self, width: int, size: int, key: jax.Array):
        first, second = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(1, width, key=first)
        self.score = eqx.nn.MLP(width, "scalar", width_size=size, depth=1, key=second)

    def __call__(self, columns: jax.Array) -> jax.Array:
        return self.score(self.attention(columns[-1:], columns[:-1], columns[:-1])[0])


@iclab.spec(part="model")
class EquinoxReader:
    """The settings of a `Reader`; its arrays are the weights."""

    size: int = 32
    embedding: LabelEmbedding = iclab.part(default_factory=LabelEmbedding)

    def init(self, key: jax.Array, dimension: int) -> Any:
        return eqx.filter(Reader(self.embedding.width(dimension), self.size, key), eqx.is_array)

    def apply(self, params: Any, columns: jax.Array) -> tuple[jax.Array, Any]:
        """The module around these weights, on one prompt."""
        module = eqx.filter_eval_shape(Reader, columns.shape[1], self.size, jax.random.key(0))
        return eqx.combine(params, module)(columns), ()


def main() -> dict[float, float]:
    prompts = Classification(outlier_fraction=0.3)
    trained = train(Run(model=EquinoxReader(), prompts=prompts,
                        training=Training(steps=STEPS, optimizer="adam", learning_rate=3e-3)))
    errors = {share: measure_error(trained, replace(prompts, outlier_fraction=share, label_rule="flip")).error
              for share in (0.0, 0.3, 0.6)}
    print("error by fraction of flipped examples:", errors)
    return errors


if __name__ == "__main__":
    main()
