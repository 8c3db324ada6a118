"""Training prompts of the cot paper as places in their task's order, drawn word for word as their family draws them.

A task orders the patterns: `rank[p]` is the pattern at place p. A column is the step k of a chain from place p to place
q; in coordinates it is (one-hot rank[p]; one-hot rank[q]; code k). Without wrong steps, a chain is determined by where
it starts, so the columns of a prompt are those of the M possible chains, each as often as examples start there. With
transition matrices every example has columns of its own. Either way the column c = k E + e is step k of chain e.

Arrays end with an axis of lanes, one for each prompt of the batch and a few that pad it, so that one instruction does
the same for many prompts.

The draw is that of `iclab.prompts.chain`; tests compare every field.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, UInt32

from iclab.kernels.arithmetic import choice, threefry, uniform16, uniform23
from iclab.kernels.compiling import compiled, kernel
from iclab.prompts.chain import ABSENT
from iclab.prompts.randomness import CELL_COUNTER

LANES = 16
PROMPT_WORDS = np.uint32(CELL_COUNTER)


class ChainDraw(NamedTuple):
    """What the draw reads of a family, with its numbers in the precision of the kernel."""

    batch: int
    examples: int
    ways: int
    """Queries that a batch has equally often: M K, of a test M."""
    spacing: Any
    """Ways per prompt."""
    alpha: Any
    route: Int[np.ndarray, "steps+1 patterns"]
    """Where a chain without wrong steps stands after each step, from every place."""
    cumulative: Float[np.ndarray, "steps patterns patterns"]
    """Cumulative transition probabilities; no entries where no step goes wrong."""


class Chains(NamedTuple):
    """A batch of prompts."""

    rank: Int[np.ndarray, "patterns lanes"]
    """Pattern at every place."""
    weight: Float[np.ndarray, "columns lanes"]
    """How often a prompt has a column."""
    place: Int[np.ndarray, "steps+1 chains lanes"]
    """Where the examples' chains and last the query's stand after each step; without matrices, where they start."""
    query: Int[np.ndarray, " lanes"]
    """Pattern of the query's last input."""
    asked: Int[np.ndarray, " lanes"]
    """k - 1: the step that is asked for."""
    label: Int[np.ndarray, " lanes"]
    """Pattern of the right answer."""


def lanes_of(batch: int) -> int:
    """Lanes that hold a batch."""
    return -(-batch // LANES) * LANES


def chain_draw_of(prompts: Any, batch: int, real: Any) -> ChainDraw:
    """The draw of a `Chain`."""
    M, K = prompts.patterns, prompts.reasoning_steps
    ways = M * K if prompts.partly_solved else M
    if prompts.transitions is None:
        right = [(np.arange(M) + k) % M for k in range(1, K + 1)]
        cumulative = np.zeros((0, 0, 0), real)
    else:
        A = np.asarray(prompts.transitions, real)
        right = list(A.argmax(axis=2))
        with jax.enable_x64(real == np.float64):
            # By JAX, whose sums are in the same order as when the family draws.
            cumulative = np.array(jnp.cumsum(jnp.asarray(A), axis=2), real)
    route = [np.arange(M)]
    for f_k in right:
        route.append(f_k[route[-1]])
    return ChainDraw(batch, prompts.prompt_length, ways, real(ways / batch), real(prompts.matching_fraction),
                     np.array(route, np.int32), cumulative)


def empty_chains(draw: ChainDraw) -> tuple[Chains, UInt32[np.ndarray, "words lanes"]]:
    """Memory for a batch, and for the random words it is drawn from."""
    lanes, real = lanes_of(draw.batch), draw.cumulative.dtype
    K, M = len(draw.route) - 1, draw.route.shape[1]
    exact, chains = len(draw.cumulative) == 0, draw.examples + 1
    words = M + draw.examples * (1 if exact else 1 + K)
    return Chains(np.zeros((M, lanes), np.int32), np.ones((K * (M if exact else chains), lanes), real),
                  np.zeros((1 if exact else K + 1, chains, lanes), np.int32),
                  *(np.zeros(lanes, np.int32) for _ in range(3))), np.zeros((-(-words // 4) * 4, lanes), np.uint32)


@kernel
def draw_chains(draw, key_high, key_low, chains, words):
    """Draw the batch of one key into `chains`."""
    rank, weight, place, query, asked, label = chains
    K, M, E, n = draw.route.shape[0] - 1, rank.shape[0], draw.examples, rank.shape[1]
    exact = draw.cumulative.shape[0] == 0
    draw_words(key_high, key_low, 0, words)
    draw_queries(draw, key_high, key_low, 0, asked, query)
    _draw_begins(key_high, key_low, place[0, E], 1 if exact else M)
    draw_examples(draw, words, place)
    rank_words(words, rank)
    # The order is rotated so that the query gets the pattern allotted to it; `label` holds by how much.
    for b in range(n):
        label[b] = query[b] - rank[draw.route[asked[b], place[0, E, b]], b]
    for p in range(M):
        for b in range(n):
            turned = rank[p, b] + label[b]
            turned = turned + np.int32(M) if turned < 0 else turned
            rank[p, b] = turned - np.int32(M) if turned >= M else turned
    for b in range(n):
        label[b] = rank[draw.route[asked[b] + 1, place[0, E, b]], b]
    _weigh(weight, place, asked, K, exact)


@compiled
def draw_words(key_high, key_low, begin, words):
    """Four words for each counter of the prompts from `begin` on: `iclab.prompts.randomness.draw_bits`."""
    count = words.shape[0] // 4
    for j in range(count):
        first, second, third, fourth = words[j], words[count + j], words[2 * count + j], words[3 * count + j]
        for b in range(words.shape[1]):
            counter = np.uint32(begin + b) * np.uint32(count) + np.uint32(j)
            first[b], second[b] = threefry(key_high, key_low, np.uint32(0), counter)
        for b in range(words.shape[1]):
            counter = np.uint32(begin + b) * np.uint32(count) + np.uint32(j)
            third[b], fourth[b] = threefry(key_high, key_low, np.uint32(1), counter)


@compiled
def draw_queries(draw, key_high, key_low, begin, asked, query):
    """The step that every prompt from `begin` on asks for, and its query's pattern there; of a test, which asks for the
    first, the query's place."""
    real, M = draw.cumulative.dtype.type, np.int32(draw.route.shape[1])
    _, shared = threefry(key_high, key_low, PROMPT_WORDS, np.uint32(0))
    start = uniform23(real, shared)
    for b in range(asked.shape[0]):
        cell = min(np.int32((real(begin + b) + start) * draw.spacing), np.int32(draw.ways - 1))
        asked[b] = cell // M
        query[b] = cell - asked[b] * M


@compiled
def _draw_begins(key_high, key_low, begin, places):
    """Where the query's chain starts, which may be any of the first places."""
    for b in range(begin.shape[0]):
        word, _ = threefry(key_high, key_low, PROMPT_WORDS, np.uint32(b))
        begin[b] = choice(word & np.uint32(0xFFFF), places)


@compiled
def draw_examples(draw, words, place):
    """The chains of the examples, given where the query's starts."""
    _draw_starts(draw, words, place[0])
    for k in range(place.shape[0] - 1):
        _draw_steps(draw, k, words, place)


@compiled
def _draw_starts(draw, words, start):
    """The places where the examples start: the query's, or any other."""
    real, M = draw.cumulative.dtype.type, draw.route.shape[1]
    begin = start[draw.examples]
    for e in range(draw.examples):
        chosen, mine = words[M + e], start[e]
        for b in range(begin.shape[0]):
            other = choice(chosen[b] & np.uint32(0xFFFF), M - 1)
            other += np.int32(other >= begin[b])
            mine[b] = begin[b] if uniform16(real, chosen[b] >> np.uint32(16)) < draw.alpha else other


@compiled
def _draw_steps(draw, k, words, place):
    """Step k of all chains; the query's never goes wrong."""
    real, M, E = draw.cumulative.dtype.type, draw.route.shape[1], draw.examples
    for e in range(E):
        chosen, here, there = words[M + E + k * E + e], place[k, e], place[k + 1, e]
        for b in range(here.shape[0]):
            row = draw.cumulative[k, here[b]]
            drawn, bound = 0, uniform23(real, chosen[b]) * row[M - 1]
            for q in range(M - 1):
                drawn += bound >= row[q]
            there[b] = drawn
    for b in range(place.shape[2]):
        place[k + 1, E, b] = draw.route[k + 1, place[0, E, b]]


@kernel
def rank_words(words, rank):
    """Ranks of random words are a random order; equal words have equal ranks."""
    M, n = rank.shape
    for i in range(M):
        mine, word = rank[i], words[i]
        for b in range(n):
            mine[b] = 0
        for j in range(0, M - 3, 4):
            w0, w1, w2, w3 = words[j], words[j + 1], words[j + 2], words[j + 3]
            for b in range(n):
                mine[b] += (np.int32(word[b] > w0[b]) + np.int32(word[b] > w1[b])
                            + np.int32(word[b] > w2[b]) + np.int32(word[b] > w3[b]))
        for j in range(M - M % 4, M):
            other = words[j]
            for b in range(n):
                mine[b] += np.int32(word[b] > other[b])


@compiled
def _weigh(weight, place, asked, K, exact):
    """Count the columns; of the query's chain, only the steps before the one that is asked for are shown."""
    zero, one = weight.dtype.type(0.0), weight.dtype.type(1.0)
    E, n = weight.shape[0] // K, weight.shape[1]
    if not exact:
        for k in range(K):
            for b in range(n):
                weight[k * E + E - 1, b] = one if k < asked[b] else zero
        return
    for c in range(E):
        for b in range(n):
            weight[c, b] = zero
    for e in range(place.shape[1] - 1):
        for b in range(n):
            weight[place[0, e, b], b] += one
    for c in range(E, K * E):
        for b in range(n):
            weight[c, b] = weight[c % E, b]
    for k in range(K):
        for b in range(n):
            weight[k * E, b] += one if k < asked[b] else zero


def columns_of(draw: ChainDraw, chains: Chains) -> tuple[Int[np.ndarray, "batch columns"], ...]:
    """Pattern, answer and step of every column, laid out as the family does, for tests."""
    K, B = len(draw.route) - 1, draw.batch
    place = chains.place if len(draw.cumulative) else draw.route[:, chains.place[0]]
    pattern = chains.rank[place, np.arange(place.shape[2])][..., :B].transpose(2, 1, 0)
    step = np.broadcast_to(np.arange(K), (*pattern.shape[:2], K))
    columns = []
    for shown in (pattern[..., :-1], pattern[..., 1:], step):
        flat = shown.reshape(B, -1)
        padded = np.concatenate([np.full((B, K - 1), ABSENT), flat], axis=1)
        columns.append(np.stack([row[k:k + flat.shape[1]] for row, k in zip(padded, chains.asked, strict=False)]))
    columns[1][:, -1] = ABSENT
    return tuple(columns)
