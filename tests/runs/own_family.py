"""A prompt family of a user's own, which has neither a floor nor a Bayes predictor."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from iclab import Prompt
from iclab.prompts.context import Family
from iclab.prompts.randomness import as_key
from iclab.specs import spec


@spec
class Halfspaces(Family):
    """x is uniform, the label is the side of a random plane on which it lies."""

    dimension: int = 4
    """Length of an input."""
    prompt_length: int = 6
    """Examples in a prompt."""

    def bits(self, key, batch):
        """The plane and the inputs."""
        shape, words = (batch, self.prompt_length + 2, self.dimension), jnp.stack(as_key(key))
        return jax.random.uniform(jax.random.wrap_key_data(words), shape, minval=-1.0)

    def prompts(self, bits):
        """The prompts that the randomness determines."""
        return jax.vmap(self._prompt)(bits)

    def _prompt(self, drawn):
        plane, x = drawn[0], drawn[1:]
        clean, none = jnp.sign(x @ plane), jnp.zeros(len(x), jnp.int32)
        return Prompt(x=x, y=clean.at[-1].set(0.0), label=clean[-1], pattern=none, outlier=none > 0, clean=clean,
                      task=none[:2], irrelevant=none, direction=none)
