"""What the papers' models have in common as PyTorch modules: prompts in, outputs for their queries out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from iclab.core.errors import require
from iclab.core.spec import lower
from iclab.models.protocol import Model
from iclab.torch.columns import columns_module
from iclab.training.sgd import init_key

if TYPE_CHECKING:
    from iclab.training import Run, Trained


class PromptModule(nn.Module):
    """A model of the papers. `module(x, y)` embeds a batch of prompts (or one) and reads it; `module.embedding` alone
    makes the columns, `module.read(columns)` alone reads them.

    Starting weights are those that iclab draws from `seed`, not PyTorch's; `params` gives others.
    """

    spec_type: type
    """The spec that it is made from."""

    def __init__(self, model: Any, dimension: int, *, seed: int = 0, params: Any = None):
        super().__init__()
        require(isinstance(model, self.spec_type), "model", type(model).__name__, f"be a {self.spec_type.__name__}")
        self.model, self.dimension = model, dimension
        self.origin: Run | Trained | None = None
        """What `to_torch` made it from."""
        self.embedding = columns_module(model.embedding)
        self.build(starting_weights(model, dimension, seed) if params is None else params)

    def build(self, params: Any) -> None:
        """Make the parameters, from weights as iclab keeps them."""
        raise NotImplementedError

    def weights(self) -> Any:
        """The parameters as iclab keeps weights: a named tuple of NumPy arrays."""
        raise NotImplementedError

    def read(self, columns: Float[Tensor, "*batch tokens width"]) -> tuple[Float[Tensor, "*batch *answer"], Any]:
        """The outputs for the queries, and the model's named intermediates."""
        raise NotImplementedError

    def look(self, x: Float[Tensor, "*batch tokens dimension"], y: Float[Tensor, "*batch tokens *size"],
             step: Int[Tensor, "*batch tokens"] | None = None) -> tuple[Float[Tensor, "*batch *answer"], Any]:
        """The outputs for the queries, and the model's named intermediates (scores, gates, neurons)."""
        return self.read(self.embedding(x, y, step))

    def forward(self, x: Float[Tensor, "*batch tokens dimension"], y: Float[Tensor, "*batch tokens *size"],
                step: Int[Tensor, "*batch tokens"] | None = None) -> Float[Tensor, "*batch *answer"]:
        """The outputs for the queries."""
        return self.look(x, y, step)[0]

    def extra_repr(self) -> str:
        """The spec, as `print(module)` shows it."""
        return f"{self.model}, dimension={self.dimension}"


def starting_weights(model: Model, dimension: int, seed: int) -> Any:
    """The weights with which iclab starts to train a model, for an `init_seed`."""
    return lower(model).init(init_key(seed), dimension)


def parameter(weights: Any) -> nn.Parameter:
    """Weights as a parameter of the same precision."""
    return nn.Parameter(torch.tensor(np.array(weights)))


def plain(weights: Tensor) -> Any:
    """A parameter as a NumPy array, in float32 where NumPy has no such type."""
    values = weights.detach().cpu()
    return (values if values.dtype in (torch.float32, torch.float64) else values.float()).numpy().copy()


def as_numpy(tree: Any) -> Any:
    """A tree of arrays of any library as NumPy arrays."""
    return jax.tree.map(np.asarray, tree)
