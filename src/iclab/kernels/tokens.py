"""Classification prompts as tokens in the dictionary of patterns, drawn word for word as their family draws them.

A token is `c_pattern e_pattern + c_irrelevant e_irrelevant + c_outlier e_outlier + c_label e_label`, where e are rows
of the dictionary: the task's patterns, the irrelevant ones, the outlier directions, the label. Prompts are stored one
after another: token t of prompt b is entry `b T + t`, and the last of its T tokens is the query.

The draw is that of `iclab.prompts.roles` and `iclab.prompts.classification`; tests compare every field.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt32

from iclab.kernels.arithmetic import choice, threefry, uniform16, uniform23
from iclab.kernels.compiling import compiled, inlined, kernel
from iclab.kernels.lookups import WIDEST, gathered, pick
from iclab.kernels.vectors import LANES, choose, fill, lanes, load, roomy, store
from iclab.prompts.attacks import LABEL_RULES, PLACEMENTS
from iclab.prompts.randomness import CELL_COUNTER
from iclab.prompts.tasks import tasks_code

FLIP, TARGET = (list(LABEL_RULES).index(name) for name in ("flip", "target"))
FAR, CLOSE = (PLACEMENTS.index(name) for name in ("far", "close"))
PROMPT_WORDS = np.uint32(CELL_COUNTER)


class Draw(NamedTuple):
    """What the draw reads of a family, with its numbers in the precision of the kernel."""

    patterns: int
    irrelevant: int
    directions: int
    p_a: Any
    decisive: Any
    K: Any
    beta: Any
    kappa_a: Any
    lam_low: Any
    lam_high: Any
    rule: int
    placement: int
    norm: Any
    """|q|: coefficient of a label +1."""
    cells: Int[np.ndarray, "rows 5"]
    cell_count: int
    """Rows of `cells` that are not padding."""


class Tokens(NamedTuple):
    """A batch of prompts, one entry per token."""

    pattern: Int[np.ndarray, " batch*tokens"]
    irrelevant: Int[np.ndarray, " batch*tokens"]
    outlier: Int[np.ndarray, " batch*tokens"]
    c_pattern: Float[np.ndarray, " batch*tokens"]
    c_irrelevant: Float[np.ndarray, " batch*tokens"]
    c_outlier: Float[np.ndarray, " batch*tokens"]
    c_label: Float[np.ndarray, " batch*tokens"]
    label: Float[np.ndarray, " batch"]
    """The query's true label."""


class DrawScratch(NamedTuple):
    """Memory that a draw needs while it works."""

    first: UInt32[np.ndarray, " batch*tokens"]
    second: UInt32[np.ndarray, " batch*tokens"]
    third: UInt32[np.ndarray, " batch*tokens"]
    fourth: UInt32[np.ndarray, " batch*tokens"]
    query: Int[np.ndarray, " batch"]
    partner: Int[np.ndarray, " batch"]
    marks: Float[np.ndarray, " batch*tokens"]
    """1 where an example is poisoned: outliers may have size 0."""


def empty_tokens(batch: int, tokens: int, real: Any) -> tuple[Tokens, DrawScratch]:
    """Memory for a batch, and for drawing it."""
    def whole() -> Any:
        return roomy(batch * tokens, np.int32)

    def number() -> Any:
        return roomy(batch * tokens, real)

    def word() -> Any:
        return roomy(batch * tokens, np.uint32)

    return (Tokens(whole(), whole(), whole(), number(), number(), number(), number(), np.zeros(batch, real)),
            DrawScratch(word(), word(), word(), word(), np.zeros(batch, np.int32), np.zeros(batch, np.int32), number()))


@inlined
def along(tokens, c, table, two, D):
    """The products of `LANES` tokens, from token c on, with a vector over the dictionary: D numbers that a table holds
    or, if D is at most `WIDEST`, two vectors."""
    i, j, k = load(tokens.pattern, c), load(tokens.irrelevant, c), load(tokens.outlier, c)
    if D <= WIDEST and table.itemsize == 4:
        t_i, t_j, t_k = pick(two, i), pick(two, j), pick(two, k)
    else:
        t_i, t_j, t_k = gathered(table, i), gathered(table, j), gathered(table, k)
    return (load(tokens.c_pattern, c) * t_i + load(tokens.c_irrelevant, c) * t_j + load(tokens.c_outlier, c) * t_k
            + load(tokens.c_label, c) * table[D - 1])


def draw_of(prompts: Any, norm: float, real: Any) -> Draw:
    """The draw of a `Classification` whose labels +1 have the coefficient `norm`."""
    cells = np.ascontiguousarray(tasks_code(prompts, prompts.tasks))
    return Draw(prompts.task_patterns, prompts.irrelevant_patterns, prompts.directions,
                real(prompts.outlier_fraction), real(prompts.decisive_fraction), real(prompts.irrelevant_scale),
                real(prompts.pattern_norm), real(prompts.outlier_scale), real(prompts.coefficient_low),
                real(prompts.coefficient_high), list(LABEL_RULES).index(prompts.label_rule),
                PLACEMENTS.index(prompts.placement), real(norm), cells, int((cells[:, 4] > 0).sum()))


@kernel
def draw_tokens(draw, key_high, key_low, tokens, scratch):
    """Draw the batch of one key into `tokens`."""
    first, second, third, fourth, query, partner, marks = scratch
    B, n = tokens.label.shape[0], tokens.c_label.shape[0]
    _draw_queries(draw, key_high, key_low, tokens.label, query, partner, first)
    for c in range(n):
        first[c], second[c] = threefry(key_high, key_low, np.uint32(0), np.uint32(c))
    for c in range(n):
        third[c], fourth[c] = threefry(key_high, key_low, np.uint32(1), np.uint32(c))
    _draw_inputs(draw, tokens, scratch)
    if draw.placement != 0:
        _place(draw.placement, marks, B, n // B)
    _draw_roles(draw, tokens, scratch)


@compiled
def _draw_inputs(draw, tokens, scratch):
    """What does not depend on the prompt: outliers as marks, and all that tokens have besides a pattern and a label."""
    real = tokens.label.dtype.type
    irrelevant_count, direction_count = max(draw.irrelevant, 1), max(draw.directions, 1)
    irrelevant_at, outlier_at = np.int32(draw.patterns), np.int32(draw.patterns + draw.irrelevant)
    kappa, spread = draw.K if draw.irrelevant > 0 else real(0.0), draw.lam_high - draw.lam_low
    for c in range(0, tokens.c_label.shape[0], LANES):
        first, second, third, fourth = (load(scratch.first, c), load(scratch.second, c), load(scratch.third, c),
                                        load(scratch.fourth, c))
        store(tokens.irrelevant, c, choice(third & np.uint32(0xFFFF), irrelevant_count) + irrelevant_at)
        store(tokens.outlier, c, choice(third >> np.uint32(16), direction_count) + outlier_at)
        store(tokens.c_pattern, c, (uniform16(real, fourth >> np.uint32(16)) * spread + draw.lam_low) * draw.beta)
        store(tokens.c_irrelevant, c, (uniform23(real, second) * real(2.0) - real(1.0)) * kappa * draw.beta)
        poisoned = uniform16(real, first & np.uint32(0xFFFF)) < draw.p_a
        store(scratch.marks, c, choose(poisoned, fill(real(1.0)), real(0.0)))


@compiled
def _draw_roles(draw, tokens, scratch):
    """Patterns and labels, and the sizes of outliers. What is written behind a prompt is then written by the next."""
    real, B = tokens.label.dtype.type, tokens.label.shape[0]
    T = tokens.c_label.shape[0] // B
    others = draw.patterns > 2 and draw.decisive < real(1.0)
    for b in range(B):
        mine, other, z = scratch.query[b], scratch.partner[b], tokens.label[b]
        for first in range(0, T, LANES):
            c, query = b * T + first, lanes() == T - 1 - first
            second, mark = load(scratch.second, c), load(scratch.marks, c)
            same = (second & np.uint32(1)) != np.uint32(0)
            pattern, label = choose(same, fill(mine), other), choose(same, fill(z), -z)
            if others:
                decisive = uniform16(real, load(scratch.first, c) >> np.uint32(16)) < draw.decisive
                third = choice(load(scratch.fourth, c) & np.uint32(0xFFFF), draw.patterns - 2)
                third = choose(third >= min(mine, other), third + np.int32(1), third)
                third = choose(third >= max(mine, other), third + np.int32(1), third)
                pattern, label = choose(decisive, pattern, third), choose(decisive, label, _coin(real, second, 4))
            label = choose(mark != real(0.0), _poisoned_label(draw.rule, real, second, label), label)
            store(tokens.pattern, c, choose(query, mine, pattern))
            store(tokens.c_outlier, c, choose(query, real(0.0), mark * draw.kappa_a))
            store(tokens.c_label, c, choose(query, real(0.0), label * draw.norm))


@inlined
def _coin(real, words, bit):
    """+1 where this bit is set, else -1."""
    return choose((words & np.uint32(bit)) != np.uint32(0), fill(real(1.0)), real(-1.0))


@inlined
def _poisoned_label(rule, real, words, clean):
    """The labels that poisoned examples carry: `iclab.prompts.attacks.LABEL_RULES`."""
    if rule == FLIP:
        return real(0.0) - clean
    if rule == TARGET:
        return fill(real(1.0))
    return _coin(real, words, 2)


@compiled
def _draw_queries(draw, key_high, key_low, label, query, partner, words):
    """The query, partner and label of every prompt: `iclab.prompts.roles.stratified_cells`."""
    real = label.dtype.type
    B = label.shape[0]
    _, shared = threefry(key_high, key_low, PROMPT_WORDS, np.uint32(0))
    start, spacing = uniform23(real, shared), real(draw.cell_count) / real(B)
    for b in range(B):
        words[b], _ = threefry(key_high, key_low, PROMPT_WORDS, np.uint32(b))
    for b in range(B):
        place = min(np.int32((real(b) + start) * spacing), np.int32(draw.cell_count - 1))
        row = draw.cells[place, 3] + np.int32(uniform23(real, words[b]) * real(draw.cells[place, 4]))
        query[b], partner[b], label[b] = draw.cells[row, 0], draw.cells[row, 1], real(draw.cells[row, 2])


@compiled
def _place(placement, marks, B, T):
    """Move the marks of every prompt's outliers: `iclab.prompts.attacks.place`."""
    real = marks.dtype.type
    for b in range(B):
        count = 0
        for t in range(T - 1):
            count += marks[b * T + t] != real(0.0)
        begin = 0 if placement == FAR else T - 1 - count
        for t in range(T - 1):
            marks[b * T + t] = real(1.0) if begin <= t < begin + count else real(0.0)
