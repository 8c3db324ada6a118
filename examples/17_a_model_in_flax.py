"""A model written in Flax (NNX): its module is trained and attacked as it is. Needs `pip install flax`."""

from __future__ import annotations

import sys
from typing import Any

import jax
from flax import nnx

import iclab
from iclab import Classification, LabelEmbedding, Run, Training, measure_error, replace, train

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1500


class Reader(nnx.Module):
    """The query attends to the examples; an MLP turns what it reads into a score."""

    def __init__(self, width: int, size: int, rngs: nnx.Rngs):
        self.query, self.key = nnx.Linear(width, size, rngs=rngs), nnx.Linear(width, size, rngs=rngs)
        self.hidden, self.score = nnx.Linear(width, size, rngs=rngs), nnx.Linear(size, 1, rngs=rngs)

    def __call__(self, columns: jax.Array) -> jax.Array:
        attention = nnx.softmax(self.key(columns[:-1]) @ self.query(columns[-1]))
        return self.score(nnx.relu(self.hidden(attention @ columns[:-1])))[0]


@iclab.spec(part="model")
class FlaxReader:
    """The settings of a `Reader`; its parameters are the weights."""

    size: int = 32
    embedding: LabelEmbedding = iclab.part(default_factory=LabelEmbedding)

    def init(self, key: jax.Array, dimension: int) -> Any:
        """The module's parameters."""
        module = Reader(self.embedding.width(dimension), self.size, nnx.Rngs(key))
        return nnx.to_pure_dict(nnx.state(module, nnx.Param))

    def apply(self, params: Any, columns: jax.Array) -> tuple[jax.Array, Any]:
        """The module around these weights, on one prompt."""
        module = nnx.eval_shape(lambda: Reader(columns.shape[1], self.size, nnx.Rngs(0)))
        nnx.update(module, params)
        return module(columns), ()


def main() -> dict[float, float]:
    prompts = Classification(outlier_fraction=0.3)
    trained = train(Run(model=FlaxReader(), prompts=prompts,
                        training=Training(steps=STEPS, optimizer="adam", learning_rate=3e-3)))
    errors = {share: measure_error(trained, replace(prompts, outlier_fraction=share, label_rule="flip")).error
              for share in (0.0, 0.3, 0.6)}
    print("error by fraction of flipped examples:", errors)
    return errors


if __name__ == "__main__":
    main()
