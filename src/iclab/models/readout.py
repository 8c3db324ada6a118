"""The way of a prompt through models with a stream: read in, through all layers, and read out, at the query or at every
token."""

from __future__ import annotations

from typing import Any

from jaxtyping import Array, Float

from iclab.core.errors import require
from iclab.models.embedding import LabelEmbedding, TokenEmbedding


def require_readable(embedding: Any) -> None:
    """Refuse an embedding whose answers have another form."""
    require(isinstance(embedding, (LabelEmbedding, TokenEmbedding)), "embedding", type(embedding).__name__,
            "be a LabelEmbedding or a TokenEmbedding: this model's output is one number, or a row of scores per token")


def at_query(model: Any) -> bool:
    """Whether a model answers at the query alone."""
    return not isinstance(model.embedding, TokenEmbedding)


def answer(model: Any, params: Any, columns: Float[Array, "tokens width"]) -> tuple[Float[Array, "*answer"], Any]:
    """A prompt's columns read in, through `model.stream`, and read out: at the query, or at every token where the
    embedding is one of tokens."""
    h = columns @ params.read_in.W + params.read_in.b
    if at_query(model):
        h, seen = model.stream(params, h, asked=1)
        return h[-1] @ params.read_out.W[:, 0] + params.read_out.b[0], seen
    h, seen = model.stream(params, h)
    return h @ params.read_out.W + params.read_out.b, seen
