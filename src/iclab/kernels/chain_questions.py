"""Test prompts of the cot paper as patterns and signs, drawn word for word as their family draws them.

An example is K + 1 tokens, the input of its first step and the outputs of all; token j is the output of step j - 1 and
the input of step j. Examples are numbered from the last, so that the last n of a prompt are the first n here. One row
holds all tokens of a prompt in blocks of 8 examples: tokens 0 of these, then tokens 1, to tokens K. So one instruction
does the same for many tokens, the first n examples stand in front, and the output of the column that begins at place i
is at place i + 8.

Noise is a corner of a cube: with s its length over the root of the number of directions, a token has s or -s in every
direction that is orthogonal to the patterns, by the bits of its own random words. A token whose words are all 0 has
none.

Sixteen prompts are drawn at once (`iclab.kernels.chain_draw`), then read one by one. The draw is that of
`iclab.prompts.chain`; tests compare every token and every sign.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt32
from numba.extending import register_jitable

from iclab.kernels.arithmetic import threefry
from iclab.kernels.chain_draw import (
    LANES,
    ChainDraw,
    chain_draw_of,
    draw_examples,
    draw_queries,
    draw_words,
    empty_chains,
    rank_words,
)
from iclab.kernels.compiling import inlined
from iclab.prompts.chain import WORD
from iclab.prompts.randomness import CELL_COUNTER

PROMPT_KEY = np.uint32(CELL_COUNTER + 1)
BLOCK = 8
"""Examples whose tokens stand together."""


class Question(NamedTuple):
    """One prompt; places without a token are 0."""

    tokens: Int[np.ndarray, " places"]
    """Pattern of every token."""
    signs: UInt32[np.ndarray, "words places"]
    """Bits of every token's noise: 1 for s, 0 for -s. Without noise, there are no words."""
    noisy: Float[np.ndarray, " places"]
    """1 for tokens that carry noise, else 0."""
    chain: Int[np.ndarray, " steps+1"]
    """Patterns of the query and of the right output of each step."""


class Questions(NamedTuple):
    """What the draw reads of a test, and memory for some of its prompts."""

    draw: ChainDraw
    chains: Any
    """Prompts that are drawn at once, as places in the order of their tasks (`iclab.kernels.chain_draw.Chains`)."""
    words: UInt32[np.ndarray, "words lanes"]
    """Random words of these prompts."""
    noise: UInt32[np.ndarray, "words lanes"]
    """Random words of their noise: the first of all counters, then the second."""
    prompt: Question


@register_jitable
def places_of(examples: int, tokens: int) -> int:
    """Places that the tokens of some examples take, those of the last block's missing examples included."""
    return -(-examples // BLOCK) * BLOCK * tokens


def questions_of(test: Any, batch: int, real: Any) -> Questions:
    """The draw of a `Chain` whose queries stand alone, with memory of its own."""
    draw = chain_draw_of(test, batch, real)
    tokens = test.reasoning_steps + 1
    words = 0 if test.noise_norm is None else -(-(test.dimension - test.patterns) // WORD)
    pairs, places = -(-words * tokens * test.prompt_length // 2), places_of(test.prompt_length, tokens)
    return Questions(draw, *empty_chains(draw._replace(batch=LANES)), np.zeros((2 * pairs, LANES), np.uint32),
                    Question(np.zeros(places, np.int32), np.zeros((words, places), np.uint32),
                               np.zeros(places, real), np.zeros(tokens, np.int32)))


@inlined
def place_of(example, token, tokens):
    """Where a token of an example stands."""
    return (example // BLOCK * tokens + token) * BLOCK + example % BLOCK


@inlined
def draw_questions(questions, key_high, key_low, begin):
    """Draw the prompts from `begin` on of the batch of one key, as many as there are lanes."""
    draw, chains = questions.draw, questions.chains
    draw_words(key_high, key_low, begin, questions.words)
    draw_queries(draw, key_high, key_low, begin, chains.asked, chains.query)
    for b in range(LANES):
        chains.place[0, draw.examples, b] = chains.query[b]
    draw_examples(draw, questions.words, chains.place)
    rank_words(questions.words, chains.rank)
    pairs = questions.noise.shape[0] // 2
    for i in range(pairs):
        first, second = questions.noise[i], questions.noise[pairs + i]
        for b in range(LANES):
            high, low = threefry(key_high, key_low, PROMPT_KEY, np.uint32(begin + b))
            first[b], second[b] = threefry(high, low, np.uint32(0), np.uint32(i))


@inlined
def lay_out(questions, b):
    """Make the prompt in lane b the one to be read."""
    draw, rank, place, prompt = questions.draw, questions.chains.rank, questions.chains.place, questions.prompt
    E, tokens, exact = draw.examples, prompt.chain.shape[0], place.shape[0] == 1
    for j in range(tokens):
        prompt.chain[j] = rank[draw.route[j, place[0, E, b]], b]
        for e in range(E):
            drawn = E - 1 - e
            here = draw.route[j, place[0, drawn, b]] if exact else place[j, drawn, b]
            prompt.tokens[place_of(e, j, tokens)] = rank[here, b]
    _lay_out_noise(questions.noise, b, E, prompt)


@inlined
def _lay_out_noise(noise, b, examples, prompt):
    """The words of all tokens of one prompt, and which of them are not all 0."""
    tokens, words, real = prompt.chain.shape[0], prompt.signs.shape[0], prompt.noisy.dtype.type
    for w in range(words):
        signs = prompt.signs[w]
        for e in range(examples):
            row = (examples - 1 - e) * tokens * words + w
            for j in range(tokens):
                word, i = noise[row + j * words, b], place_of(e, j, tokens)
                signs[i] = word
                prompt.noisy[i] = max(real(word != 0), real(0.0) if w == 0 else prompt.noisy[i])
