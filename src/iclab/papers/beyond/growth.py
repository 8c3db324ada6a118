"""The growth rates of li2025mamba's lemmas 3 to 6, read off population dynamics; parts of `mamba.dynamics`.

All on one shift of tasks, as in the paper's construction after condition 1, with eta 0.02. Rates are read up to step
20, where lemma 4's time ends with constant 1 at the usual setting, and to step 100 for lemma 3, whose time is T.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.parallel import each
from iclab.core.spec import replace
from iclab.lab.claims import Check, between, worst
from iclab.lab.estimates import Mean, power
from iclab.lab.laboratory import Lab
from iclab.lab.powers import TOLERANCE
from iclab.papers.mamba.iterations import TARGET, a_run
from iclab.probes.scaling import iterations_to
from iclab.training import Run
from iclab.training.order import PatternWeights
from iclab.training.population import population_dynamics

EVERY = 5
PHASE_ONE, UP_TO_T = (5, 10, 15, 20), (25, 50, 75, 100)
"""Steps at which rates of lemma 4 and of lemma 3 are read."""
LATE = 4
"""Lemma 5 is read at this multiple of T, the step at which the loss is 0.2: its constant is open."""
NEGLIGIBLE = 0.05
SHUT_SPEED, SLOWED = 2.0, 0.5
USUAL = "1 - p_a", 0.6


class Grown(NamedTuple):
    """Order parameters in one setting, a row per sampling of the gradients."""

    steps: Float[np.ndarray, " records"]
    order: Mapping[str, Float[np.ndarray, "samplings records"]]
    T: Float[np.ndarray, " samplings"]
    """Steps to a loss of 0.2; NaN where it was not followed as far."""

    def at(self, name: str, step: float) -> Float[np.ndarray, " samplings"]:
        """An order parameter at a step, between two records by a line."""
        return np.array([np.interp(step, self.steps, row) for row in self.order[name]])

    def at_T(self, name: str, multiple: float) -> Float[np.ndarray, " samplings"]:
        """An order parameter at a multiple of T; NaN where it was not followed as far."""
        return np.array([np.interp(multiple * T, self.steps, row, right=np.nan) for T, row in
                         zip(self.T, self.order[name], strict=True)])


Growth = Mapping[tuple[str, float], Grown]
"""By axis and value."""


def in_lemmas(weights: PatternWeights) -> dict[str, Any]:
    """What the lemmas bound: entries of W_B by pair of patterns, and w along patterns."""
    M1, first = weights.relevant, weights.relevant + weights.irrelevant
    others = np.abs(weights.W_B[M1:-1, :-1] - np.diag(np.diag(weights.W_B))[M1:-1, :-1]).max()
    return {"diagonal": weights.between(weights.W_B, 0), "partner": -weights.between(weights.W_B, 1),
            "irrelevant": weights.W_B[M1, M1], "others": max(others, np.abs(weights.W_B[:M1, M1:first]).max()),
            "w relevant": -weights.mean_gate("relevant"), "w outlier": -weights.mean_gate("outlier")}


def lemma_run(axis: str, value: float, steps: int) -> Run:
    """Mamba on one shift of tasks with one setting changed; more patterns in a larger space."""
    changes: dict[str, int] = {}
    if axis == "V":
        changes = {"outlier_patterns": int(value)}
    elif axis == "M1":
        changes = {"relevant_patterns": int(value), "dimension": max(30, int(value) + 20)}
    run = a_run("mamba", steps, *(USUAL if changes else (axis, value)))
    return replace(run, prompts=replace(run.prompts, tasks="cyclic:1", **changes),
                   training=replace(run.training, record_every=EVERY))


def followed(runs: Sequence[Run], seeds: Sequence[int], prompts: int) -> list[Any]:
    """`Grown` of every run, as lists."""
    def job(item: tuple[Run, int]) -> Any:
        of = population_dynamics(item[0], order=in_lemmas, prompts=prompts, seed=item[1])
        return of.steps, of.order, iterations_to(of, TARGET)

    by_job = dict(each(job, [(run, seed) for run in runs for seed in seeds]))
    rows = [[by_job[i * len(seeds) + k] for k in range(len(seeds))] for i in range(len(runs))]
    return [(row[0][0], {name: np.stack([order[name] for _, order, _ in row]) for name in row[0][1]},
             np.array([T for *_, T in row])) for row in rows]


def measure_growth(lab: Lab) -> dict[tuple[str, float], Grown]:
    """Follow the population along every axis; M1 beyond T, the others early only, with smaller sampling errors."""
    size, delta, grown = lab.size, lemma_run(*USUAL, 1).model.init_scale, {}
    for late, prompts in ((True, size.population // 2), (False, 4 * size.population)):
        points = [(axis, float(value)) for axis, values in size.lemma_axes.items() for value in values
                  if late == (axis == "M1")]
        runs = [lemma_run(*point, int(size.steps_per_pattern * point[1]) if late else UP_TO_T[-1]) for point in points]
        histories = lab.remember(followed, runs, lab.seeds(size.samplings), prompts)
        for point, (steps, order, T) in zip(points, histories, strict=True):
            grown[point] = Grown(np.asarray(steps), {
                name: np.asarray(values) - (delta if name in ("diagonal", "irrelevant") else 0.0)
                for name, values in order.items()}, np.asarray(T))
    return grown


def values_of(growth: Growth, axis: str) -> list[float]:
    """The values of an axis."""
    return [value for other, value in growth if other == axis]


def usual(growth: Growth) -> Grown:
    """The usual setting, or the nearest to it that was followed."""
    return growth[min((point for point in growth if point[0] == USUAL[0]), key=lambda point: abs(point[1] - USUAL[1]))]


def over_time(growth: Growth, name: str, times: Sequence[float]) -> Any:
    """The exponent of t."""
    return power(times, np.stack([usual(growth).at(name, t) for t in times], axis=1))


def along(growth: Growth, axis: str, name: str, time: float) -> Any:
    """The exponent of a setting at a time."""
    x = values_of(growth, axis)
    return power(x, np.stack([growth[axis, value].at(name, time) for value in x], axis=1))


def lemma3(growth: Growth) -> list[Check]:
    """W_B grows at least like t (1 - p_a) / M1 on the diagonal, and as fast against it for partners; nothing else."""
    last, checks = UP_TO_T[-1], []
    for name in ("diagonal", "partner"):
        checks += [Check(f"{name}: exponent of t", over_time(growth, name, UP_TO_T), ">=", 1 - TOLERANCE),
                   Check(f"{name}: exponent of 1 - p_a", along(growth, "1 - p_a", name, UP_TO_T[0]), "<=",
                         1 + TOLERANCE),
                   Check(f"{name}: exponent of M1", along(growth, "M1", name, UP_TO_T[0]), ">=", -1 - TOLERANCE)]
    of = usual(growth)
    rest = [(name, Mean(np.abs(of.at(name, last)) / of.at("diagonal", last), (0.0, np.inf)))
            for name in ("irrelevant", "others")]
    return [*checks, worst("growth of {} entries over that of the diagonal", rest, "<=", NEGLIGIBLE)]


def lemma4(growth: Growth) -> list[Check]:
    """In phase one w falls at least like t (1 - p_a) / V along outliers and like t (1 - p_a) / M1 along relevant
    patterns; so examples lose, poisoned ones more."""
    at = PHASE_ONE[-1]
    checks = [Check("outlier: exponent of t", over_time(growth, "w outlier", PHASE_ONE), ">=", 1 - TOLERANCE),
              Check("outlier: exponent of 1 - p_a", along(growth, "1 - p_a", "w outlier", at), "<=", 1 + TOLERANCE),
              Check("outlier: exponent of V", along(growth, "V", "w outlier", at), ">=", -1 - TOLERANCE),
              *between("relevant: exponent of t", over_time(growth, "w relevant", PHASE_ONE), 1 - TOLERANCE,
                       1 + TOLERANCE),
              *between("relevant: exponent of 1 - p_a", along(growth, "1 - p_a", "w relevant", at), 1 - TOLERANCE,
                       1 + TOLERANCE),
              *between("relevant: exponent of M1", along(growth, "M1", "w relevant", at), -1 - TOLERANCE,
                       -1 + TOLERANCE)]
    falls = [(f"{kind}, {axis} {value:g}, step {t}", Mean(of.at(f"w {kind}", t)))
             for (axis, value), of in growth.items() for t in PHASE_ONE for kind in ("relevant", "outlier")]
    return [*checks, worst("least fall of w ({})", falls, ">", 0.0)]


def logits(growth: Growth, M1: float, multiple: float) -> tuple[Any, Any]:
    """-w.p of clean examples, and of poisoned ones, at a multiple of T."""
    of, prompts = growth["M1", M1], lemma_run("M1", M1, 1).prompts
    clean = prompts.pattern_norm * of.at_T("w relevant", multiple)
    return clean, clean + prompts.outlier_scale * of.at_T("w outlier", multiple)


def lemma5(growth: Growth, multiple: float = LATE) -> list[Check]:
    """Once t is of the order of T, w.p falls to -log M1 for poisoned examples and stays of order 1 for clean ones."""
    M1 = values_of(growth, "M1")
    clean, poisoned = (np.stack(parts, axis=1) for parts in zip(*(logits(growth, m, multiple) for m in M1),
                                                                strict=True))
    return [Check("poisoned: exponent of log M1 in -w.p", power(np.log(M1).tolist(), poisoned), ">=", 1 - TOLERANCE),
            Check("clean: exponent of M1 in -w.p", power(M1, clean), "<=", TOLERANCE)]


def weighted_gates(growth: Growth, length: float) -> Float[np.ndarray, " samplings"]:
    """The largest mean of sum_i G_i (l - i + 1) in phase one. Tokens are independent, and w is 0 along what else they
    carry, so the mean gate d places from the query is s (1 - s)^(d - 1) (1 - s_query), with s the mean gate."""
    of, prompts = growth["l_tr", length], lemma_run("l_tr", length, 1).prompts
    distance, largest = np.arange(1, int(length) + 1), []
    for t in PHASE_ONE:
        z = -prompts.pattern_norm * of.at("w relevant", t)
        clean, poisoned = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-z + prompts.outlier_scale * of.at("w outlier", t)))
        s = prompts.outlier_fraction * poisoned + (1 - prompts.outlier_fraction) * clean
        largest.append((distance[:, None] * s * (1 - s) ** (distance[:, None] - 1)).sum(axis=0) * (1 - clean))
    return np.max(largest, axis=0)


def lemma6(growth: Growth) -> list[Check]:
    """In phase one gates weighted by distance sum to order 1, whatever the length."""
    lengths = values_of(growth, "l_tr")
    sums = np.stack([weighted_gates(growth, length) for length in lengths], axis=1)
    return [Check("exponent of l_tr in the weighted sum of gates", power(lengths, sums), "<=", TOLERANCE)]


def share_of_poison(growth: Growth) -> list[Check]:
    """Along outliers w falls in proportion to p_a as well."""
    clean = np.array(values_of(growth, "1 - p_a"))
    rates = np.stack([growth["1 - p_a", value].at("w outlier", PHASE_ONE[-1]) / value for value in clean], axis=1)
    return between("exponent of p_a in the fall of w along outliers over 1 - p_a", power((1 - clean).tolist(), rates),
                   1 - TOLERANCE, 1 + TOLERANCE)


def two_phases(growth: Growth) -> list[Check]:
    """The gate shuts ever faster up to T, and slower after it."""
    of = growth["M1", 6.0]
    rise = partial(of.at_T, "w outlier")
    first = of.at("w outlier", PHASE_ONE[-1]) / PHASE_ONE[-1]
    before, after = ((rise(end) - rise(start)) / ((end - start) * of.T) for start, end in ((0.5, 1.0), (2.0, 4.0)))
    return [Check("speed of w along outliers before T over that in phase one", Mean(before / first), ">=", SHUT_SPEED),
            Check("speed from 2 T to 4 T over that before T", Mean(after / before), "<=", SLOWED)]
