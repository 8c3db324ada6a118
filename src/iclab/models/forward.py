"""A prompt through a model: `forward` is what training, probes and attacks all call.

Columns are padded to a width that suits the processor: products with rows of 31 numbers take 1.5 times as long as with
32. An embedding has coordinates that are 0 in every column, such as the label coordinates after the first. Adding or
removing some leaves the model unchanged: the weights multiplied by them have no effect and do not change. So a built-in
model gets just enough of them to make its width a multiple of `ALIGNMENT`. A user's model reads columns as its
embedding makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from iclab.core.spec import spec_class, with_structure
from iclab.models.chain_attention import ChainAttention, ChainParams
from iclab.models.embedding import ChainEmbedding, LabelEmbedding
from iclab.models.gated_attention import GatedAttention, LayerParams
from iclab.models.gpt2 import GPT2
from iclab.models.intervened import Beside
from iclab.models.mamba2_block import Mamba2Block
from iclab.models.mamba_block import MambaBlock
from iclab.models.softmax_attention import SoftmaxAttention
from iclab.models.softmax_mlp import SoftmaxMLP, SoftmaxParams
from iclab.prompts.prompt import Prompt

ALIGNMENT = 8


def forward(model: Any, params: Any, prompt: Prompt) -> tuple[Float[Array, "*answer"], Any]:
    """The model's output for one prompt's query, and its named intermediates."""
    dimension = prompt.x.shape[-1]
    return read(model, params, reader(model, dimension).columns(prompt), dimension)


IN_CACHE = 100
"""Prompts that a model reads at once: its intermediates stay in a core's cache, which is up to twice as fast."""


def forward_batch(model: Any, params: Any, prompts: Prompt) -> tuple[Float[Array, "batch *answer"], Any]:
    """`forward` for a batch of prompts, a part of it at a time."""
    known = prompts._replace(label=None) if isinstance(model.embedding, Beside) else prompts._replace(label=None,
                                                                                                     truth=None)
    return jax.lax.map(lambda prompt: forward(model, params, prompt), known, batch_size=IN_CACHE)


def reader(model: Any, dimension: int) -> Any:
    """The embedding that makes the columns which `read` takes."""
    embedding = model.embedding
    if spec_class(model) not in FITTED:
        return embedding
    if isinstance(embedding, ChainEmbedding):
        return with_structure(embedding, steps=embedding.steps + -embedding.width(dimension) % ALIGNMENT)
    if isinstance(embedding, LabelEmbedding):
        return with_structure(embedding, size=1 + -(dimension + 1) % ALIGNMENT)
    return embedding


def read(model: Any, params: Any, columns: Float[Array, "columns width"], dimension: int
         ) -> tuple[Float[Array, "*answer"], Any]:
    """`model.apply` on columns that its `reader` made."""
    return fitted_model(model, dimension).apply(fitted(model, params, columns.shape[1]), columns)


def fitted_model(model: Any, dimension: int) -> Any:
    """The same model with the coordinates that its `reader` makes."""
    return with_structure(model, embedding=reader(model, dimension)) if spec_class(model) in FITTED else model


def fitted(model: Any, params: Any, width: int) -> Any:
    """The same weights for columns of this width."""
    fit = FITTED.get(spec_class(model))
    return params if fit is None else fit(model, params, width)


def _to(weights: Float[Array, "rows width"], width: int, rows: bool = False) -> Float[Array, "padded width"]:
    """Weights for columns of this width, cut or padded with zeros; where rows are coordinates too, they are padded
    as well."""
    extra = width - weights.shape[1]
    if extra <= 0:
        return weights[:, :width]
    return jnp.pad(weights, ((0, extra if rows else 0), (0, extra)))


def _gated(model: GatedAttention, params: tuple[LayerParams, ...], width: int) -> tuple[LayerParams, ...]:
    """Fit every layer. There is one gate for all channels, one per channel, or one per key row (whose number stays)."""
    def layer(weights: LayerParams) -> LayerParams:
        on_keys, w = model.member == "gla", weights.gate.w
        per_channel = not on_keys and w.shape[0] == weights.W_B.shape[1]
        w = _to(w, width, rows=per_channel)
        return LayerParams(_to(weights.W_B, width, rows=not on_keys), _to(weights.W_C, width, rows=not on_keys),
                           weights.gate._replace(w=w[:width] if per_channel else w))

    return tuple(layer(weights) for weights in params)


def _softmax(model: SoftmaxMLP, params: SoftmaxParams, width: int) -> SoftmaxParams:
    W_Q, W_K, W_V = (_to(weights, width) for weights in params[:3])
    return params._replace(W_Q=W_Q, W_K=W_K, W_V=W_V)


def _read_in(model: Any, params: Any, width: int) -> Any:
    """Models whose columns enter through a linear map."""
    return params._replace(read_in=params.read_in._replace(W=_to(params.read_in.W.T, width).T))


def _chain(model: ChainAttention, params: ChainParams, width: int) -> ChainParams:
    return ChainParams(_to(params.W, width, rows=True))


FITTED: dict[type, Callable[..., Any]] = {
    GatedAttention: _gated, SoftmaxMLP: _softmax, GPT2: _read_in, MambaBlock: _read_in, Mamba2Block: _read_in,
    SoftmaxAttention: _read_in, ChainAttention: _chain}
