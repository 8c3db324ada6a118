"""What a model is, and the abilities that some models have. Yours needs no base class: these methods are enough."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Array, Bool, Float

from iclab.core.errors import not_a
from iclab.core.spec import is_spec
from iclab.prompts.prompt import Prompt


@runtime_checkable
class Embedding(Protocol):
    """How a prompt becomes the columns of the papers' matrix P."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the kinds of labels (`iclab.prompts.labels`) that can enter the columns."""

    def width(self, dimension: int) -> int:
        """Coordinates of a column, for inputs of this dimension."""

    def columns(self, prompt: Prompt) -> Float[Array, "tokens width"]:
        """One prompt as columns, one per row; reads its `x`, `y` and `step` only."""


@runtime_checkable
class Model(Protocol):
    """A sequence model; it is written for one prompt, and `vmap` makes batches."""

    @property
    def embedding(self) -> Any:
        """How prompts become columns: an `Embedding`."""

    def init(self, key: Array, dimension: int) -> Any:
        """Weights before training, for inputs of this dimension."""

    def apply(self, params: Any, columns: Float[Array, "tokens width"]) -> tuple[Float[Array, "*answer"], Any]:
        """The output for one prompt's query (a row of scores for every token where labels are of kind tokens), and a
        named tuple of intermediates for probes to read."""


def require_model(value: Any) -> None:
    """Refuse what lacks something that a model needs, and say what."""
    if isinstance(value, type):
        raise not_a("model", value, "a model", f"write {value.__name__}()")
    if not is_spec(value):
        raise not_a("model", value, "a model, such as GatedAttention()",
                    "write @iclab.spec before its class" if hasattr(value, "init") and hasattr(value, "apply") else
                    "write a class with embedding, init and apply, and @iclab.spec before it")
    for member in ("embedding", "init", "apply"):
        if not hasattr(value, member):
            raise not_a("model", value, "a spec with embedding, init and apply", f"it has no {member}")
    for member in ("reads", "width", "columns"):
        if not hasattr(value.embedding, member):
            raise not_a("model.embedding", value.embedding, "an embedding, such as LabelEmbedding()",
                        f"it has no {member}")


@runtime_checkable
class Prunable(Protocol):
    """A model whose neurons can be removed."""

    def neuron_inputs(self, params: Any) -> Float[Array, "neurons width"]:
        """What each neuron reads, one per row; pruning goes by their norms."""

    def keep_neurons(self, params: Any, keep: Bool[Array, " neurons"]) -> Any:
        """The weights with only these neurons left."""


@runtime_checkable
class ReadsInParts(Protocol):
    """A model that can answer many queries about one context without reading it again for each."""

    def read(self, params: Any, context: Float[Array, "columns width"], present: Bool[Array, " columns"],
             own: Float[Array, "own width"]) -> tuple[Float[Array, "*answer"], Float[Array, " columns+own-1"]]:
        """The output for the last of the query's own columns, and its attention on all earlier ones."""


@runtime_checkable
class CountsWeights(Protocol):
    """A model that knows its size before its weights exist."""

    def weight_count(self, dimension: int) -> int:
        """How many trainable numbers `init` makes."""


@runtime_checkable
class HoldsScores(Protocol):
    """A model that holds numbers between pairs of tokens in memory."""

    def score_count(self, tokens: int) -> int:
        """How many such numbers it holds for one prompt."""


@runtime_checkable
class HasUsualTraining(Protocol):
    """A model that says which training suits it."""

    @property
    def usual_training(self) -> dict[str, Any]:
        """Fields of `Training` that differ from their defaults."""


@runtime_checkable
class ShowsScores(Protocol):
    """Intermediates that show how much the query attends to each token."""

    @property
    def scores(self) -> Float[Array, "layers tokens"]:
        """Attention scores."""


@runtime_checkable
class ShowsGates(ShowsScores, Protocol):
    """Intermediates that also show how much of each token reaches the query."""

    @property
    def gates(self) -> Float[Array, "layers tokens"]:
        """Gates."""


@runtime_checkable
class ShowsSteps(ShowsGates, Protocol):
    """Intermediates that also show the step of each token, by which it enters the state and the past fades."""

    @property
    def steps(self) -> Float[Array, "layers tokens"]:
        """Delta."""
