"""A prompt family of your own: a new halfspace in every prompt, some labels wrong and nothing to tell them by."""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp

from iclab import GatedAttention, Prompt, Run, Training, measure_error, replace, train_many
from iclab.prompts.context import Family
from iclab.prompts.randomness import as_key
from iclab.specs import number, require_range, spec

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1500


@spec(part="prompts")
class Halfspaces(Family):
    """x is Gaussian, the label is the side of a random plane on which it lies."""

    dimension: int = 4
    prompt_length: int = 20
    wrong_fraction: float = number(default=0.0)
    """Share of the examples whose label is wrong."""

    def check(self) -> None:
        require_range(self, "wrong_fraction", 0, 1)

    def bits(self, key: Any, batch: int) -> jax.Array:
        """The randomness of a batch: the plane, the inputs, and a number that decides who lies."""
        shape, words = (batch, self.prompt_length + 2, self.dimension + 1), jnp.stack(as_key(key))
        return jax.random.normal(jax.random.wrap_key_data(words), shape)

    def prompts(self, bits: jax.Array) -> Prompt:
        return jax.vmap(self._prompt)(bits)

    def _prompt(self, drawn: jax.Array) -> Prompt:
        plane, x, luck = drawn[0, :-1], drawn[1:, :-1], jax.scipy.stats.norm.cdf(drawn[1:, -1])
        clean, none = jnp.sign(x @ plane), jnp.zeros(len(x), jnp.int32)
        wrong = (luck < self.wrong_fraction).at[-1].set(False)
        return Prompt(x=x, y=jnp.where(wrong, -clean, clean).at[-1].set(0.0), label=clean[-1], pattern=none,
                      outlier=wrong, clean=clean, task=none[:2], irrelevant=none, direction=none)


def main() -> dict[str, list[float]]:
    prompts = Halfspaces(wrong_fraction=0.1)
    runs = [Run(model=GatedAttention(member=member, normalise=True), prompts=prompts,
                training=Training(steps=STEPS, batch_size=64, learning_rate=0.3)) for member in ("mamba", "linear")]
    tests, errors = [replace(prompts, wrong_fraction=share) for share in (0.0, 0.2, 0.4)], {}
    for trained in train_many(runs):
        errors[trained.run.model.member] = [measure_error(trained, test).error for test in tests]
    print("errors with 0, 20, 40 % wrong labels:", errors)
    return errors


if __name__ == "__main__":
    main()
