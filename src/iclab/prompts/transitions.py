"""How the steps of example chains go wrong: transition matrices, the quantities the theorems derive from them,
and how to build some.

Matrix k holds in row i the probabilities of the patterns that follow pattern i in step k of an example. The right one,
f_k(i), is the most likely of its row (li2024cot, eq. 15). Patterns are numbered in the order of the task: the paper's
f_k moves k places forward.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import optimize

from iclab.core.errors import SpecError, require

Transitions = tuple[tuple[tuple[float, ...], ...], ...]
MOST_ENTRIES = 10**6
"""Most probabilities in the matrices of a task."""
GRID = np.linspace(0.0, 1.0, 201)[1:-1]


class Quality(NamedTuple):
    """What li2024cot's theorems require of transition matrices."""

    tau: float
    """Least probability, over the patterns to start from, of a chain without a wrong step (eq. 20)."""
    rho: float
    """Primacy: how far the second most likely pattern of a row stays behind, `1 - A[i, j] / A[i, f_k(i)]` (eq. 15)."""
    tau_o: float
    """Least probability of the most likely answer (eq. 21)."""
    rho_o: float
    """Primacy of the most likely answer, right or wrong (eq. 16)."""
    condition_one: bool
    """Condition 1: the most likely answer is the right one, whatever the start."""
    right: Float[np.ndarray, " patterns"]
    """Probability of the right answer from each start."""
    failing: Int[np.ndarray, " failing"]
    """The starts for which Condition 1 fails."""


def matrices(transitions: Any) -> Float[np.ndarray, "steps patterns patterns"]:
    """Checked matrices: rows of probabilities, each with a unique largest."""
    rule = "transitions must be one square matrix of numbers per step, all of one size"
    try:
        given = np.asarray(transitions)
    except (TypeError, ValueError):
        raise SpecError(rule) from None
    if given.dtype.kind not in "biuf":  # texts, dates, complex numbers, whole numbers beyond 64 bits
        raise SpecError(f"{rule}, got {given.dtype}")
    checked = given.astype(float)
    square = checked.ndim == 3 and checked.shape[0] >= 1 and checked.shape[1] == checked.shape[2] >= 2
    require(square, "transitions", checked.shape, "have shape (steps, patterns, patterns)")
    for where, row in ((f"transitions[{k}][{i}]", checked[k, i]) for k, i in np.ndindex(checked.shape[:2])):
        shown = [float(f"{x:.4g}") for x in row]
        require(bool((row >= 0).all() and abs(row.sum() - 1.0) < 1e-5), where, shown, "be probabilities that sum to 1")
        first, second = np.sort(row)[:-3:-1]
        require(first > second, where, shown, "have one most likely pattern, the right one")
    return checked


def quality(transitions: Any) -> Quality:
    """tau, rho, tau_o, rho_o and Condition 1 of transition matrices."""
    A = matrices(transitions)
    targets, patterns = A.argmax(axis=2), np.arange(A.shape[1])
    here, along = patterns, np.ones(len(patterns))
    for k, f_k in enumerate(targets):
        along = along * A[k, here, f_k[here]]
        here = f_k[here]
    B = whole_chain(A)
    # A right answer that ties with another is not the most likely one.
    wrong = (B.argmax(axis=1) != here) | (_primacy(B) <= 0)
    return Quality(float(along.min()), float(_primacy(A).min()), float(B.max(axis=1).min()), float(_primacy(B).min()),
                   not wrong.any(), B[patterns, here], np.flatnonzero(wrong))


def whole_chain(A: Float[np.ndarray, "steps patterns patterns"]) -> Float[np.ndarray, "patterns patterns"]:
    """B = A_1 ... A_K: how likely each answer is from each start."""
    return reduce(lambda later, earlier: earlier @ later, A[::-1])


def _primacy(rows: Float[np.ndarray, "*m patterns"]) -> Float[np.ndarray, "*m"]:
    ordered = np.sort(rows, axis=-1)
    return 1.0 - ordered[..., -2] / ordered[..., -1]


def exact_transitions(steps: int, patterns: int) -> Transitions:
    """Examples without wrong steps."""
    _require_entries(steps, patterns)
    return circulant([np.eye(patterns)[0]] * steps)


def circulant(turns: Any) -> Transitions:
    """Matrices alike for all patterns: row `turns[k]` has the probability of each distance from the right pattern."""
    steps = [[np.roll(row, i + k) for i in range(len(row))] for k, row in enumerate(turns, 1)]
    return as_transitions(steps)


def as_transitions(nested: Any) -> Transitions:
    """Any nesting of numbers as tuples, which a spec can hold."""
    return tuple(tuple(tuple(float(x) for x in row) for row in matrix) for matrix in nested)


def one_rival(patterns: int, right: float, rival: float, distance: int = 1) -> Float[np.ndarray, " patterns"]:
    """A row: the right pattern, one rival at `distance`, the others equally likely."""
    _require_sizes(1, patterns)
    row = np.full(patterns, max(1.0 - right - rival, 0.0) / (patterns - 2))
    row[0], row[distance] = right, rival
    return row


def weak_step(tau: float, rho: float, *, steps: int = 3, patterns: int = 10, weak: int = 1) -> Transitions:
    """Matrices with this tau and rho: step `weak` has a rival as strong as rho allows, the others go wrong evenly.

    Both are exact, for every pair that matrices with one-to-one f_k can have: a row of primacy rho is right
    with a probability in [1 / (1 + (M' - 1)(1 - rho)), 1 / (2 - rho)], and tau is a product of `steps` of them.
    """
    require(0 < rho < 1, "rho", rho, "be in (0, 1)")
    _require_sizes(steps, patterns)
    require(1 <= weak <= steps, "weak", weak, f"be a step, 1 to {steps}")
    least, most = 1.0 / (1.0 + (patterns - 1) * (1.0 - rho)), 1.0 / (2.0 - rho)
    low, high = least**steps, most
    if steps == 1:
        low = least
    require(low <= tau <= high, "tau", tau, f"be in [{low:.3g}, {high:.3g}] when rho is {rho:g}: the weak step is "
                                            f"right "
            f"with probability {most:.3g} at most, and every step with {least:.3g} at least")
    if steps == 1:
        return circulant([one_rival(patterns, tau, (1.0 - rho) * tau)])
    with np.errstate(divide="ignore", over="ignore"):
        # The power of a long chain may be 0 in floating point: it then bounds nothing.
        rest_at_least = float(np.divide(tau, least ** (steps - 1)))
    p_w = float(np.clip(tau ** (1.0 / steps), max(tau, least), min(most, rest_at_least)))
    other = (tau / p_w) ** (1.0 / (steps - 1))
    turns = [one_rival(patterns, other, (1.0 - other) / (patterns - 1))] * steps
    turns[weak - 1] = one_rival(patterns, p_w, (1.0 - rho) * p_w)
    return circulant(turns)


def same_steps(tau_o: float, rho_o: float, *, condition_one: bool, steps: int = 3, patterns: int = 10,
               distance: int = 1) -> Transitions:
    """Matrices with this tau_o and rho_o, with or without Condition 1: all steps alike, with one rival at `distance`.

    A wrong turn taken in any one of the steps leads to the same wrong answer, which thus becomes the most likely one
    although every step is most often right: without Condition 1 the likeliest answer is one wrong turn away.
    """
    require(0 < rho_o < 1, "rho_o", rho_o, "be in (0, 1)")
    _require_sizes(steps, patterns)
    require(steps >= 2, "steps", steps, "be a whole number >= 2")
    require(distance in range(1, patterns), "distance", distance, f"be a whole number in [1, {patterns - 1}]")

    def outcome(right: Any, rival: Any) -> Any:
        """tau_o and rho_o of the answer that is to be the most likely one."""
        rows = np.moveaxis(np.broadcast_to((1.0 - right - rival) / (patterns - 2), (patterns, *np.shape(rival))), 0, -1)
        rows = np.array(rows)
        rows[..., 0], rows[..., distance] = right, rival
        answers = np.fft.irfft(np.fft.rfft(rows) ** steps, patterns)
        likeliest = 0 if condition_one else distance
        tau = answers[..., likeliest]
        return tau, 1.0 - np.delete(answers, likeliest, axis=-1).max(axis=-1) / tau

    right, share = np.meshgrid(GRID, GRID, indexing="ij")
    # The rival stays behind the right pattern, and ahead of all others.
    low, high = (1.0 - right) / (patterns - 1), np.minimum(right, 1.0 - right)
    rival = low + share * (high - low)
    tau, rho = outcome(right, rival)
    possible = high > low
    name = f"{'with' if condition_one else 'without'} Condition 1 ({steps} equal steps with one rival)"
    most = rho[possible].max()
    require(most > 1e-6, "distance", distance, f"be another: no matrices are {name}")
    require(rho_o <= most, "rho_o", rho_o, f"be in (0, {most:.3g}] {name}")
    # Along the rival's strength rho_o is crossed between two points of the grid; the weakest such rival is taken.
    crossed = (rho[:, :-1] - rho_o) * (rho[:, 1:] - rho_o) <= 0
    crossings = [(i, int(np.argmax(row))) for i, row in enumerate(crossed & possible[:, 1:]) if row.any()]
    taus = np.array([tau[cell] for cell in crossings])
    require(bool(len(taus)) and taus.min() <= tau_o <= taus.max(), "tau_o", tau_o, "be in " + (
        f"[{taus.min():.3g}, {taus.max():.3g}]" if len(taus) else "another place")
        + f" when rho_o is {rho_o:g} {name}")
    start = crossings[int(np.argmin(abs(taus - tau_o)))]
    solved = optimize.root(lambda p: np.subtract(outcome(*p), (tau_o, rho_o)), (right[start], rival[start]), tol=1e-12)
    transitions = circulant([one_rival(patterns, float(solved.x[0]), float(solved.x[1]), distance)] * steps)
    reached = quality(transitions)
    close = np.allclose((reached.tau_o, reached.rho_o), (tau_o, rho_o), atol=1e-6)
    require(bool(close) and reached.condition_one == condition_one, "tau_o", tau_o,
            f"be further from the ends of [{taus.min():.3g}, {taus.max():.3g}], rho_o {rho_o:g} {name}")
    return transitions


def _require_sizes(steps: int, patterns: int) -> None:
    for field, value, least in (("steps", steps, 1), ("patterns", patterns, 3)):
        require(isinstance(value, (int, np.integer)) and value >= least, field, value, f"be a whole number >= {least}")
    _require_entries(steps, patterns)


def _require_entries(steps: int, patterns: int) -> None:
    require(steps * patterns**2 <= MOST_ENTRIES, "steps and patterns", (steps, patterns),
            f"make at most {MOST_ENTRIES:,} transition probabilities, steps * patterns^2")


def own_pattern_distance(steps: int, patterns: int) -> int:
    """The rival's distance at which one wrong turn leads to the pattern that the chain started from."""
    return -(steps * (steps + 1) // 2) % patterns


def right_targets(transitions: Any) -> Int[np.ndarray, "steps patterns"]:
    """f_k: the most likely pattern after each."""
    return matrices(transitions).argmax(axis=2)
