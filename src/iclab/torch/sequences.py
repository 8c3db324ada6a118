"""`iclab.models.forms` in PyTorch:  o_t = sum_{i<=t} G_{i,t} v_i (k_i^T q_t)  as a sum, state by state, in chunks.

Every tensor may have leading axes for a batch.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn


class TorchGates(NamedTuple):
    """Gates of a sequence; the value and key axes have size 1 where a gate is shared along them."""

    log_decay: Float[Tensor, "*batch tokens value key"]
    intake: Float[Tensor, "*batch tokens value"]


class TorchStreams(NamedTuple):
    """What one layer makes of its input."""

    keys: Float[Tensor, "*batch tokens state"]
    queries: Float[Tensor, "*batch tokens state"]
    values: Float[Tensor, "*batch tokens width"]
    gates: TorchGates


def reach(log_decay: Float[Tensor, "*batch tokens axis"]) -> Float[Tensor, "*batch tokens axis"]:
    """`prod_{i<k<=T} d_k`: what is left of each token at the last one."""
    # Each token's own decay is left out before the sum: subtracted after it, it would leave its rounding error.
    later = nn.functional.pad(log_decay[..., 1:, :], (0, 0, 0, 1))
    return later.flip(-2).cumsum(-2).flip(-2).exp()


def direct_sum(streams: TorchStreams) -> Float[Tensor, "*batch tokens width"]:
    """The double sum over pairs of tokens, li2025mamba, eq. 3 at every token."""
    keys, queries, values, gates = streams
    total = gates.log_decay.cumsum(-3)
    tokens = keys.shape[-2]
    past = torch.ones(tokens, tokens, dtype=torch.bool, device=keys.device).tril()[:, :, None, None]
    between = (total.unsqueeze(-3) - total.unsqueeze(-4)).masked_fill(~past, -torch.inf)
    weights = between.exp()
    let_in = values * gates.intake
    if weights.shape[-1] > 1:
        return torch.einsum("...tik,...ik,...tk->...ti", weights[..., 0, :], keys, queries) @ let_in
    pairs = queries @ keys.mT
    if weights.shape[-2] > 1:
        return torch.einsum("...tiv,...ti,...iv->...tv", weights[..., 0], pairs, let_in)
    return (weights[..., 0, 0] * pairs) @ let_in


def recurrence(streams: TorchStreams) -> Float[Tensor, "*batch tokens width"]:
    """State by state: `h_t = d_t h_{t-1} + b_t v_t k_t^T`, `o_t = h_t q_t`, h_0 = 0. li2025mamba, eq. 1."""
    keys, queries, values, gates = streams
    decay, let_in = gates.log_decay.exp(), values * gates.intake
    state = torch.zeros((), dtype=values.dtype, device=values.device)
    outputs = []
    for t in range(keys.shape[-2]):
        state = decay[..., t, :, :] * state + let_in[..., t, :, None] * keys[..., t, None, :]
        outputs.append((state @ queries[..., t, :, None]).squeeze(-1))
    return torch.stack(outputs, dim=-2)


def chunked(streams: TorchStreams, size: int) -> Float[Tensor, "*batch tokens width"]:
    """Chunks of `size` tokens: the direct sum inside a chunk, the state carried between chunks."""
    state: Tensor | None = None
    outputs = []
    for first in range(0, streams.keys.shape[-2], size):
        token, gate = (..., slice(first, first + size), slice(None)), (..., slice(first, first + size), slice(None),
                                                                       slice(None))
        log_decay, intake = streams.gates.log_decay[gate], streams.gates.intake[token]
        chunk = TorchStreams(streams.keys[token], streams.queries[token], streams.values[token],
                             TorchGates(log_decay, intake))
        total = log_decay.cumsum(-3)
        decay, to_end, let_in = total.exp(), (total[..., -1:, :, :] - total).exp(), chunk.values * intake
        # A decay has size 1 on the value axis or on the key axis, so it can go to one factor of each product.
        on_keys = decay.shape[-1] > 1
        inside = direct_sum(chunk)
        if state is None:
            outputs.append(inside)
        elif on_keys:
            outputs.append(inside + (chunk.queries * decay[..., 0, :]) @ state.mT)
        else:
            outputs.append(inside + decay[..., 0] * (chunk.queries @ state.mT))
        added = let_in.mT @ (chunk.keys * to_end[..., 0, :]) if on_keys else (let_in * to_end[..., 0]).mT @ chunk.keys
        state = added if state is None else decay[..., -1, :, :] * state + added
    return torch.cat(outputs, dim=-2)
