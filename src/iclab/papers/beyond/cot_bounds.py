"""The bounds of li2024cot's lemmas F.5 and F.7 on the gradient between columns, as printed; parts of `cot.stages`.

Left of each inequality stands p~'^T (dL/dW) p~, an average over the prompts; right stands an average over the prompts
of a polynomial in p_n, the attention of prompt n on columns of the query's step and pattern. Here q = 1 - p, and an
average is written without a sign: `pq2` is that of p (1 - p)^2. The step size, on both sides, is left out.

| equations | p~' and p~ have                   | kind             |
| --------- | --------------------------------- | ---------------- |
| 30, 36    | the same pattern, the same step   | (True, True)     |
| 31, 37    | the same pattern, another step    | (True, False)    |
| 32, 38    | another pattern, the same step    | (False, True)    |
| 33, 39    | another pattern, another step     | (False, False)   |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.training.chain_population import ChainAttended

Kind = tuple[bool, bool]
"""Whether two columns have the same pattern, and the same step."""
KINDS: dict[Kind, str] = {
    (True, True): "same pattern, same step", (True, False): "same pattern, other step",
    (False, True): "other pattern, same step", (False, False): "other pattern, other step"}
Averages = Float[np.ndarray, "seeds records"]


class Attention(NamedTuple):
    """Averages over prompts of what the bounds read of attention."""

    p: Averages
    q2: Averages
    q3: Averages
    pq: Averages
    pq2: Averages
    code: Averages
    """p q times the attention on other steps, plus what the other steps of the query's chain add: see `closed_form`."""
    elsewhere: Averages
    """The attention on other steps."""


class Bound(NamedTuple):
    """One side of an inequality."""

    equation: str
    kind: Kind
    side: str
    """upper, lower, or size: of the absolute value."""
    values: Averages


def attention_of(attended: ChainAttended, steps: int) -> dict[str, float]:
    """`Attention` in one batch."""
    p, s, chain = (np.asarray(part, float) for part in attended)
    q, elsewhere = 1 - p, 1 - s
    values = {"p": p, "q2": q**2, "q3": q**3, "pq": p * q, "pq2": p * q**2,
              "code": p * q * elsewhere + s * chain**2 / (steps - 1), "elsewhere": elsewhere}
    return {name: float(value.mean()) for name, value in values.items()}


def first_stage(of: Attention, prompts: Any) -> list[Bound]:
    """Lemma F.5: equations 30 to 33."""
    K, M = prompts.reasoning_steps, prompts.patterns
    a = float(prompts.matching_fraction)**2 / K**2
    middle31 = (-4 * of.pq - (3 * K - 2) * (1 + a) * of.pq2) / (K * M)
    upper32 = (-a * of.q2 + (K - 1 + (2 * K - 1) * a) * of.pq2) / (K * M) - a / K * of.q2
    return [
        Bound("30", (True, True), "upper", (-4 * (1 + a) * of.pq2 + a * (1 + 2 * (K - 1) / K) * of.q2) / (K * M)
              - a / K * of.q2),
        Bound("31", (True, False), "lower", middle31 + a / K * of.q2),
        Bound("31", (True, False), "upper", middle31 + (1 + a) / K * of.pq2),
        Bound("32", (False, True), "lower", upper32 + (-of.pq2 + a * of.q3) / K),
        Bound("32", (False, True), "upper", upper32),
        Bound("33", (False, False), "lower", (1 + (2 - K) * a) * of.pq2 / (K * M) + a / K * of.q2),
        Bound("33", (False, False), "upper", (2 - K) * (1 + a) * of.pq2 / (K * M) + (1 + a) / K * of.pq2)]


def second_stage(of: Attention, prompts: Any, eps: float) -> list[Bound]:
    """Lemma F.7: equations 36 to 39."""
    M = prompts.patterns
    small = np.full_like(of.p, eps)
    return [Bound("36", (True, True), "upper", -4 * of.pq2 / (2 * M)), Bound("37", (True, False), "size", small),
            Bound("38", (False, True), "size", of.pq2 / (2 * M)), Bound("39", (False, False), "size", small)]


def closed_form(of: Attention, prompts: Any) -> dict[Kind, Averages]:
    """Ours: the gradient of every kind, to leading order in 1 / M.

    W adds a part between patterns, whatever the steps, to one between steps, whatever the patterns. With a columns'
    attention, dL/dt_i = a_i (r_{y_i} - F.r), r = F - z. On the query's own columns, which have p of the attention, F.z
    is p, so that r is -q. What this moves is their input against that of all other columns, p q^2 in the share 1 / M of
    the prompts that query the pattern; and their step against all others, p q times the attention on other steps, in
    the share 1 / K. The other steps of the query's chain, with attention m in all, are answers to nothing: they add
    s m^2 / (K - 1) to the latter, with s the attention on the query's step. Both parts sum up to 0 over patterns, and
    over steps, which gives the other three kinds; outputs of columns make M of M - 1.
    """
    K, M = prompts.reasoning_steps, prompts.patterns
    pattern, step = of.pq2 * M / (M - 1)**2, of.code / K
    return {(same_pattern, same_step): (-pattern if same_pattern else pattern / (M - 1))
            + (-step if same_step else step / (K - 1)) for same_pattern, same_step in KINDS}
