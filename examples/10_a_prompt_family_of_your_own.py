"""A prompt family of your own: a new halfspace in every prompt, with some wrong labels that carry no mark."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp

import iclab
from iclab import GatedAttention, Prompt, Run, Training, measure_error, replace, train_many

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1500


@iclab.spec(part="prompts")
class Halfspaces(iclab.Family):
    """x is Gaussian; its label is the side of a random plane that it lies on."""

    dimension: int = 4
    prompt_length: int = 20
    wrong_fraction: float = iclab.number(default=0.0)
    """Share of the examples whose label is wrong."""

    def check(self) -> None:
        iclab.require_range(self, "wrong_fraction", 0, 1)

    def draw(self, key: jax.Array) -> Prompt:
        """One prompt; iclab takes care of batches, ensembles and compiled loops."""
        tokens, (plane_key, x_key, luck_key) = self.prompt_length + 1, jax.random.split(key, 3)
        plane, x = jax.random.normal(plane_key, (self.dimension,)), jax.random.normal(x_key, (tokens, self.dimension))
        clean = jnp.sign(x @ plane)
        wrong = jax.random.uniform(luck_key, (tokens,)) < self.wrong_fraction
        return Prompt(x, jnp.where(wrong, -clean, clean).at[-1].set(0.0), clean[-1])


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
