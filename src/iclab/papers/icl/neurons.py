"""Claim `icl.neurons`: large neurons read the mean relevant pattern, and the label with their output weight's sign.

Rules. Proposition 4.5 says that there is a set L of order m neurons with rows of at least a constant (14) whose input
part has a cosine of at least 1 - c / M2 with the mean pattern (21) and whose label part one of at least 1 - c / M1 with
+-q, the sign of the output weight (22). With all constants 1: at least a quarter of the neurons have a row of at least
1 and such a cosine, for every M1 = M2 from 5 to 10 with all that theorem 3.3 asks for growing too (`growing`). The
first rule, at M1 = 6 over the half of the neurons with the largest rows: the mean cosine of the label part is at least
0.95, the median cosine of the input part at least 0.8. Figure 2 (C, D), after training at decisive fraction 0.8: those
cosines, and both parts have at least twice the norm that they had before. Ours: of the neurons with a row of at least
1, three in four have that cosine, written after a second reading by others, as the proposition is about every neuron in
L. The median of what the larger half misses to these cosines falls with exponents of at most -1, up to the usual
tolerance of 0.35. Looked at on other seeds before: of the input part it does not fall, of the label part it falls like
M1^-2. Cost: that of `icl.attention`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.lab.claims import Check, worst
from iclab.lab.entries import Checks, Entry, Findings, Part, Rule, Size
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab
from iclab.papers.icl.growing import GROWING, Numbers, ends, exponents, falls, growing_figure, grown_models, panel
from iclab.papers.icl.mechanism import NEURONS, along, signs
from iclab.papers.icl.settings import IN_DOMAIN_CONSTANT, SIZES
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import UNIT
from iclab.training import Trained

LABEL_COSINE, PATTERN_COSINE = 0.95, 0.8
COSINES = (-1.0, 1.0)
ORDER = -1.0
"""The exponents of M2 in (21) and of M1 in (22)."""
SHARE, MOST, GROWTH = 0.25, 0.75, 2.0
INPUT, LABEL = "1 - cosine of the input part with the mean pattern", "1 - cosine of the label part with +-q"
ROW = "norm of the row"
BOUND = {INPUT: "1 / M2", LABEL: "1 / M1"}
Neurons = dict[str, Float[np.ndarray, "seeds neurons"]]


class Measured(NamedTuple):
    """The neurons before and after training; against M1 the share that is in L, that share among all large
    ones, and the median of the larger half."""

    before: Neurons
    after: Neurons
    shares: dict[str, Numbers]
    among_large: dict[str, Numbers]
    medians: dict[str, Numbers]


def angles(neurons: Neurons) -> tuple[Mean, Mean]:
    """Mean cosine with +-q and median cosine with the mean pattern, over the larger half of the neurons, by seed."""
    size = np.hypot(neurons["norm x"], neurons["norm y"])
    large = size >= np.median(size, axis=1, keepdims=True)
    label = [(cosines * signs(neurons))[mask].mean() for cosines, mask in zip(neurons["cosine y"], large, strict=True)]
    pattern = [np.median(cosines[mask]) for cosines, mask in zip(neurons["cosine x"], large, strict=True)]
    return Mean(np.array(label), COSINES), Mean(np.array(pattern), COSINES)


def missing_cosines(trained: Trained) -> dict[str, Float[np.ndarray, " neurons"]]:
    """What every neuron misses to a cosine of 1, and the norm of its row."""
    prompts, params = trained.run.prompts, trained.params
    rows = np.asarray(params.W_O) @ np.asarray(params.W_V)
    inputs, labels = np.split(rows, [prompts.dimension], axis=1)
    # Relevant patterns lie along the first M1 axes, q along the first of the labels'.
    along_mean = inputs[:, :prompts.relevant_patterns].sum(axis=1) / np.sqrt(prompts.relevant_patterns)
    sign = np.where(np.arange(len(rows)) < len(rows) // 2, 1.0, -1.0)
    return {INPUT: 1 - along_mean / np.linalg.norm(inputs, axis=1),
            LABEL: 1 - sign * labels[:, 0] / np.linalg.norm(labels, axis=1), ROW: np.linalg.norm(rows, axis=1)}


def share_in_set(trained: Trained, name: str) -> float:
    """The share of neurons with a row of at least 1 and a cosine that misses at most 1 / M2 or 1 / M1."""
    values, prompts = missing_cosines(trained), trained.run.prompts
    allowed = 1 / (prompts.irrelevant_patterns if name == INPUT else prompts.relevant_patterns)
    return float(((values[ROW] >= 1) & (values[name] <= allowed)).mean())


def share_among_large(trained: Trained, name: str) -> float:
    """That share among the neurons with a row of at least 1; 0 if there are none."""
    large = float((missing_cosines(trained)[ROW] >= 1).mean())
    return share_in_set(trained, name) / large if large else 0.0


def median_missing(trained: Trained, name: str) -> float:
    """The median over the larger half of the neurons."""
    values = missing_cosines(trained)
    return float(np.median(values[name][values[ROW] >= np.median(values[ROW])]))


def against_patterns(lab: Lab, measure: Callable[[Trained, str], float]) -> dict[str, Numbers]:
    """A measure of both cosines at every M1."""
    models = grown_models(lab)
    return {name: Numbers(tuple(models), np.array([[measure(model, name) for model in by_seed]
                                                   for by_seed in models.values()]).T) for name in (INPUT, LABEL)}


def cosines(measured: Measured) -> list[Check]:
    """The first rule."""
    label, pattern = angles(measured.after)
    return [Check("large neurons: cosine of the label part with +-q", label, ">=", LABEL_COSINE),
            Check("large neurons: cosine of the input part with the mean pattern", pattern, ">=", PATTERN_COSINE)]


def turn_and_grow(measured: Measured) -> list[Check]:
    """What figure 2 shows."""
    growth = [(part, Mean(np.median(measured.after[f"norm {axis}"], axis=1)
                          / np.median(measured.before[f"norm {axis}"], axis=1)))
              for part, axis in (("input", "x"), ("label", "y"))]
    return [*cosines(measured), *(Check(f"growth of the median norm of the {part} part", value, ">=", GROWTH)
                                  for part, value in growth)]


def enough(name: str) -> Checks:
    """A constant share of the neurons belongs to L."""
    def checks(measured: Measured) -> list[Check]:
        patterns, values = measured.shares[name]
        return [worst(f"least share of neurons with a row of at least 1 and {name} of at most {BOUND[name]} (at {{}})",
                      [(f"M1 = {M1}", Mean(values[:, i], UNIT)) for i, M1 in enumerate(patterns)], ">=", SHARE)]

    return checks


def most(measured: Measured) -> list[Check]:
    """Most of the large neurons have the cosines."""
    return [worst(f"least share, among neurons with a row of at least 1, of those with {name} of at most {BOUND[name]} "
                  "(at {})", [(f"M1 = {M1}", Mean(numbers.values[:, i], UNIT))
                              for i, M1 in enumerate(numbers.patterns)], ">=", MOST)
            for name, numbers in measured.among_large.items()]


def vanishes(name: str) -> Checks:
    """What is missing falls like a power of M1."""
    return lambda measured: [falls(f"{name}, median of large neurons", measured.medians[name], ORDER)]


def run(lab: Lab) -> Findings:
    """Look at the neurons before and after training, and as M1 grows."""
    models = one_layer_models(lab, 0.8)
    history = {name: along(models, name) for name in NEURONS}
    before, after = ({name: values[:, i] for name, values in history.items()} for i in (0, -1))
    turned = [f"{then.value:.2f} before training, {now.value:.3f} after"
              for then, now in zip(angles(before), angles(after), strict=True)]
    shares, among, medians = (against_patterns(lab, measure) for measure in (share_in_set, share_among_large,
                                                                             median_missing))
    plot = growing_figure("icl.neurons", "What large neurons miss to a cosine of 1, as M1 grows",
                          "Rows of W_O W_V: median of the larger half of the neurons.",
                          [panel("larger half of the neurons", medians)], "1 - cosine")
    least = "; ".join(f"{name} {numbers.values.mean(axis=0).min():.2f}" for name, numbers in shares.items())
    return Findings(
        shown="How far large neurons are from the directions that they should read, against M1; figure 2 shows neurons "
              "during training.", plots=[plot], measured=Measured(before, after, shares, among, medians),
        specs=dict.fromkeys((MEAN_PATTERN, SIGNED_LABEL), ends(lab, "in domain")),
        numbers=f"In the larger half of the neurons, cosine of the label part with +-q: {turned[0]}; of the input "
                f"part with the mean pattern: {turned[1]}. Least share of neurons in L over M1: {least}. Exponents of "
                f"M1: {exponents(medians)}.")


MEAN_PATTERN, SIGNED_LABEL = (f"proposition 4.5 ({number})" for number in (21, 22))
NEAR = "Seeds differ too much around the threshold."
FIRST = Rule(cosines, "The proposition is about a set of order m neurons, with bounds of order 1 / M2 and 1 / M1.")
READS = {"holds": "A constant share of the neurons reads the direction that we say.",
         "fails": "The bound has a constant, which this rule takes to be 1.", "inconclusive": NEAR}
ENTRY = Entry(
    "icl.neurons", "What the large neurons read", "li2024icl, proposition 4.5, figure 2 (C, D)", run,
    says="After training the large neurons point along the mean relevant pattern, and along +q or -q according to the "
         "sign of their output weight.",
    sizes={scale: Size(**vars(size), growing=vars(GROWING[scale])) for scale, size in SIZES.items()}, parts=(
        Part("theorem", MEAN_PATTERN, "The input part of order m large neurons has a cosine of at least 1 - c / M2 "
             "with the mean pattern.", enough(INPUT), theory=("Proposition 4.5",), constant=IN_DOMAIN_CONSTANT,
             replies=READS, earlier=(FIRST,)),
        Part("theorem", SIGNED_LABEL, "Their label part has one of at least 1 - c / M1 with q or -q.", enough(LABEL),
             theory=("Proposition 4.5",), constant=IN_DOMAIN_CONSTANT, replies=READS, earlier=(FIRST,)),
        Part("figure", "figure 2 (C), (D)", "Except for some neurons, the input part grows towards the mean pattern "
             "and the label part towards q or -q.", turn_and_grow, earlier=(Rule(cosines, "The parts grow, too."),),
             replies={"holds": "Large neurons turn and grow, as our figure shows.",
                      "fails": "The figure depends on |q| and delta, which we do not give.", "inconclusive": NEAR}),
        Part("ours", "every large neuron", "Of the neurons with a row of at least 1, at least three in four have both "
             "cosines, with constants of 1.", most,
             replies={"holds": "The set L is nearly all of the large neurons.",
                      "fails": "Some large neurons point elsewhere, or have a cosine below the bound with a constant "
                               "of 1.", "inconclusive": NEAR}),
        Part("ours", "the input part as M1 grows", "What the input part misses to a cosine of 1 falls like 1 / M2.",
             vanishes(INPUT),
             replies={"fails": "The proposition is a bound: what is missing may stay below it without falling.",
                      "holds": "It falls as fast as the bound.", "inconclusive": NEAR}),
        Part("ours", "the label part as M1 grows", "What the label part misses to a cosine of 1 falls like 1 / M1.",
             vanishes(LABEL),
             replies={"holds": "It falls at least as fast as the bound.",
                      "fails": "The proposition is a bound: what is missing may stay below it without falling.",
                      "inconclusive": NEAR})))
