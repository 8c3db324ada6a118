"""Looks: judges that need no more of a model than what it shows of a batch, so that any engine can provide it.

A look is written once, with the functions of whatever arrays it is given (`__array_namespace__` of the array API
standard): inside a compiled program they are JAX's, on what the fused kernels read (`iclab.probes.kernel_looks`) they
are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.core.errors import not_a, require
from iclab.models.forward import forward_batch
from iclab.models.protocol import ShowsGates, ShowsScores
from iclab.prompts.prompt import Prompt

Numbers = Array | np.ndarray


class Shown(NamedTuple):
    """What a model shows of a batch of prompts, and the truth about them."""

    outputs: Float[Numbers, "*lengths batch"]
    """Outputs; or, with only the last n examples of each prompt, one row for every n that the look asks for."""
    label: Float[Numbers, " batch"]
    scores: Any = None
    """Float, (batch, layers, tokens), seen from the query, which is the last token. None, as the fields below, unless
    the look asks for the inside."""
    gates: Any = None
    """Float, (batch, layers, tokens); None for a model without gates."""
    pattern: Any = None
    """Int, (batch, tokens): relevant pattern of each token."""
    outlier: Any = None
    """Bool, (batch, tokens): which examples are poisoned."""

    @property
    def arrays(self) -> Any:
        """The module with the functions of these arrays."""
        return self.outputs.__array_namespace__()


@dataclass(frozen=True)
class Look:
    """A judge made from means over what is shown."""

    means: Callable[[Shown], Numbers]
    inside: bool = False
    """Whether it looks at scores, gates, patterns and outliers."""
    lengths: tuple[int, ...] = ()
    """Numbers of examples with which it wants the outputs, instead of all (`iclab.probes.by_length`)."""

    def __call__(self, model: Any, params: Any, batch: Prompt) -> Array:
        """The means, inside a compiled program."""
        return jnp.asarray(self.means(self.shown(model, params, batch)))

    def shown(self, model: Any, params: Any, batch: Prompt) -> Shown:
        """What the model shows, by its definition."""
        told = getattr(batch.truth, "_fields", ())
        require(not self.inside or {"pattern", "outlier"} <= set(told), "prompts",
                f"a truth with {', '.join(told) or 'nothing'}", "tell the pattern of each token and which are poisoned")
        outputs, seen = forward_batch(model, params, batch)
        if not self.inside:
            return Shown(outputs, batch.label)
        if not isinstance(seen, ShowsScores):
            raise not_a("the model's intermediates", seen, "a named tuple with scores (layers x tokens) for this probe")
        return Shown(outputs, batch.label, seen.scores, seen.gates if isinstance(seen, ShowsGates) else None,
                     batch.truth.pattern, batch.truth.outlier)
