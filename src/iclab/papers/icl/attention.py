"""Claim `icl.attention`: attention concentrates on the examples that share the query's pattern (figure 2 B).

Rules. Corollary 4.3: what is missing to 1 is of order M1^-C, for any C > 1; its constant is open, so that what is
judged is whether (what is missing) M1^C grows, with C = 1.1, just above the weakest: its exponent of M1 is at most
0.35, over M1 from 5 (out of domain 6) to 10, with all that theorem 3.3 asks for growing too (`growing`). Prompts
without an example of the query's pattern are left out. These rules were settled after runs and two readings of the
paper by others; the first ones were a share of 0.8 at M1 = 6, then at most 1 / M1 in domain and, out of domain, at most
(2 - alpha') / (alpha' M1). That is what equation 92 of the proof states, with C = 1 and a constant that depends on
alpha'; it is ours now. Figure 2 (B), out of domain (a = b = 0.64): a share of 0.8 at decisive fraction 0.8 in training
and, as the paper gives no alpha' for the figure, at test, set after a first look at training; ours: the same at 0.6, at
which our figure is drawn. Looked at on other seeds before: about 0.01 in domain, and exponents above 0. Cost: 35
trainings of 800 to 1,900 steps, with `icl.neurons` and `icl.pruning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.lab.claims import Check, worst
from iclab.lab.entries import Checks, Entry, Findings, Note, Part, Rule, Size
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab
from iclab.papers.icl.growing import (
    DECISIVE,
    GROWING,
    Numbers,
    ends,
    exponents,
    falls,
    growing_figure,
    grown_models,
    panel,
    tests_of,
)
from iclab.papers.icl.mechanism import PLACES, along
from iclab.papers.icl.settings import OUT_OF_DOMAIN_CONSTANT, SIZES, out_of_domain
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import UNIT
from iclab.probes.error_rate import averages
from iclab.probes.looks import Look, Shown
from iclab.prompts import Classification
from iclab.training import Trained

SHARE = 0.8
TRAINED, FIGURE_PROMPTS = 0.8, 500
"""Decisive fraction in training and at test for figure 2, unless otherwise specified in the paper, and prompts."""
WEAKEST = 1.1
"""C, just above 1."""
CONSTANTS = {"in domain": 1.0, "out of domain": (2 - DECISIVE) / DECISIVE}
"""Of 1 / M1 in domain, where it is ours, and out of it, from equation 92."""


class Measured(NamedTuple):
    """After training: the share on the same pattern by domain, that of figure 2, what is missing to 1 against M1."""

    shares: dict[str, Mean]
    figure: Mean
    missing: dict[str, Numbers]


def _missing(shown: Shown) -> Float[np.ndarray, "2"]:
    """Attention on other patterns, summed over the prompts that have an example of the query's, and their share."""
    scores, pattern = shown.scores[:, 0, :-1], shown.pattern
    same = pattern[:, :-1] == pattern[:, -1:]
    known = same.any(-1) * shown.arrays.ones_like(scores[:, 0])
    return shown.arrays.stack([((scores * ~same).sum(-1) * known).mean(), known.mean()])


MISSING = Look(_missing, inside=True)


def missing_attention(models: Sequence[Trained], tests: Sequence[Classification], prompts: int, seeds: Sequence[int]
                      ) -> Float[np.ndarray, "models tests"]:
    """Mean attention that is not on the query's pattern, over prompts in which it occurs."""
    lost, known = np.moveaxis(averages(MISSING, models, tests, prompts, seeds), -1, 0)
    return np.asarray(lost / known)


def measure_missing(lab: Lab) -> dict[str, Numbers]:
    """What is missing to 1 against M1, by domain."""
    size = GROWING[lab.scale]
    seeds = lab.seeds(size.seeds)
    by_place: dict[str, dict[int, np.ndarray]] = {place: {} for place in PLACES}
    for M1, models in grown_models(lab).items():
        tests = tests_of(M1, size)
        values = lab.remember(missing_attention, models, list(tests.values()), size.prompts, seeds)
        for place, column in zip(tests, values.T, strict=True):
            by_place[place][M1] = column
    return {place: Numbers(tuple(values), np.stack(list(values.values()), axis=1))
            for place, values in by_place.items()}


def rule(*places: str) -> Checks:
    """Most attention is on the query's pattern."""
    def checks(measured: Measured) -> list[Check]:
        return [Check(f"attention on the same pattern, {place}", measured.shares[place], ">=", SHARE)
                for place in places]

    return checks


def gathered(measured: Measured) -> list[Check]:
    """What figure 2 (B) shows."""
    return [Check("attention on the same pattern, out of domain", measured.figure, ">=", SHARE)]


def bound(place: str) -> Checks:
    """What is missing is at most of order 1 / M1."""
    def checks(measured: Measured) -> list[Check]:
        patterns, values = measured.missing[place]
        relative = values * np.array(patterns) / CONSTANTS[place]
        return [worst(f"{place}: what is missing / ({CONSTANTS[place]:.3g} / M1), largest (at {{}})",
                      [(f"M1 = {M1}", Mean(relative[:, i])) for i, M1 in enumerate(patterns)], "<=", 1.0)]

    return checks


def vanishes(place: str) -> Checks:
    """What is missing falls like a power of M1 above the first."""
    return lambda measured: [falls(f"what is missing {place}", measured.missing[place], -WEAKEST)]


def within_proof(measured: Measured) -> list[Check]:
    """What the proof bounds, in and out of domain."""
    return [check for place in measured.missing for check in bound(place)(measured)]


def run(lab: Lab) -> Findings:
    """Follow the attention during training, and compare it as M1 grows."""
    models = one_layer_models(lab, TRAINED)
    shares = {name: along(models, f"attention/{name}") for name in PLACES}
    missing, seeds = measure_missing(lab), lab.seeds(len(models))
    figure = 1 - lab.remember(missing_attention, models, [out_of_domain(TRAINED)], FIGURE_PROMPTS, seeds)[:, 0]
    plot = growing_figure("icl.attention", "Attention that is not on the query's pattern, as M1 grows",
                          "One-layer Transformer after training, decisive fraction 0.6.",
                          [panel(f"1 - attention, {place}", {"softmax": numbers})
                           for place, numbers in missing.items()], "1 - attention")
    ranges = "; ".join(f"{place} {numbers.values[:, 0].mean():.3f} at M1 = {numbers.patterns[0]}, "
                       f"{numbers.values[:, -1].mean():.3f} at {numbers.patterns[-1]}"
                       for place, numbers in missing.items())
    return Findings(
        shown="What attention leaves on other patterns, against M1; figure 2 shows the curves during training.",
        plots=[plot],
        measured=Measured({name: Mean(values[:, -1], UNIT) for name, values in shares.items()},
                          Mean(figure, UNIT), missing),
        specs={COROLLARIES[place]: ends(lab, place) for place in PLACES} | {PROOF: ends(lab, *PLACES)},
        numbers=f"Attention on the query's pattern before and after training, at test fraction {DECISIVE:g}: "
                + "; ".join(f"{name} {values[:, 0].mean():.2f}, {values[:, -1].mean():.3f}"
                            for name, values in shares.items())
                + f"; out of domain at {TRAINED:g} {figure.mean():.3f}. Missing to 1: {ranges}. Exponents of M1: "
                  f"{exponents(missing)}.")


COROLLARIES = {place: f"corollary 4.3, {place}" for place in PLACES}
NEAR = "Seeds differ too much around the threshold."
PROOF = "equation 92"
GATHERS = {"holds": "Attention gathers on the examples that matter, as drawn.",
           "fails": "The figure's alpha', |q|, delta and T are not given.", "inconclusive": NEAR}
VANISHES = {"holds": "What is missing falls as fast as we prove.",
            "fails": "Equation 92 has C = 1 and the factor 2 / alpha', and once every margin is 1 the hinge loss moves "
                     "no weight, so that what is missing stays where it is; (20) promises more than that.",
            "inconclusive": NEAR}
ENTRY = Entry(
    "icl.attention", "Attention concentrates on the query's pattern", "li2024icl, corollary 4.3, figure 2 (B)", run,
    says="After training, attention lies on the context examples with the query's pattern, the more so the larger M1.",
    sizes={scale: Size(**vars(size), growing=vars(GROWING[scale])) for scale, size in SIZES.items()}, parts=(
        *(Part("theorem", COROLLARIES[place], f"What attention misses to 1 {place} is of order M1^-C for any C > 1.",
               vanishes(place), theory=("Corollary 4.3",), constant=OUT_OF_DOMAIN_CONSTANT, replies=VANISHES,
               earlier=(Rule(rule(place), "The corollary bounds what is missing by a power of M1."),
                        Rule(bound(place), "It had C = 1, which the corollary excludes as too weak, and constants.")))
          for place in PLACES),
        Part("figure", "figure 2 (B)", "After training, attention concentrates on examples with the query's pattern, "
             "out of domain.", gathered, replies=GATHERS),
        Part("ours", "figure 2 (B) at test fraction 0.6", "The same where fewer test examples are decisive, 0.6 of "
             "them.", rule("out of domain"),
             replies={"holds": "Attention gathers with fewer decisive examples too.",
                      "fails": "With fewer decisive examples there are more on which to lose attention.",
                      "inconclusive": NEAR}),
        Part("ours", PROOF, "What the proof has, with constants: what attention misses to 1 is at most 1 / M1 in "
             "domain, and (2 - alpha') / (alpha' M1) out of it.", within_proof, theory=("Corollary 4.3",),
             constant=OUT_OF_DOMAIN_CONSTANT,
             replies={"holds": "This is what equation 92 gives, at the M1 of these runs.",
                      "fails": "Equation 92 has a constant too.", "inconclusive": NEAR})),
    notes=(Note("2026-11-18", "Longer training: at M1 = 6, 8 and 10, with twice and four times as many steps, 3 other "
                "seeds, what is missing was between 0.008 and 0.011 in domain and between 0.097 and 0.117 out of "
                "domain; exponents of M1 were -0.22 to -0.12 and 0.04 to 0.23."),))
