"""A user's prompt family, which has neither a floor nor a Bayes predictor."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from iclab import Prompt
from iclab.core.spec import spec
from iclab.prompts import Family


@spec
class Halfspaces(Family):
    """x is uniform; its label is the side of a random plane that it lies on."""

    dimension: int = 4
    """Length of an input."""
    prompt_length: int = 6
    """Examples in a prompt."""

    def draw(self, key):
        """One prompt."""
        plane, x = jnp.split(jax.random.uniform(key, (self.prompt_length + 2, self.dimension), minval=-1.0), [1])
        clean = jnp.sign(x @ plane[0])
        return Prompt(x, clean.at[-1].set(0.0), clean[-1])
