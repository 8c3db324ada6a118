"""Claim `scaling.irrelevant`: what changes as the number of irrelevant patterns M2 grows.

Rules, written before the judging run, from runs with search seeds. M1 6; d grows with M2. The papers' iterations and
losses are free of M2: along it the hinge loss of the one-layer Transformer on unseen tasks, 1 - its attention on the
query's pattern, and the error of Mamba under attack (outlier fraction 0.7, flip, three times the training scale) do
not change, by an exponent within 0.1 of 0, and stay small at every M2 (at most 0.01, 0.05 and 0.05). Proposition 4.5
(21): 1 - the cosine of large neurons with the mean pattern falls like M2^-1 or faster (exponent at most -0.65). That M2
is at most of order M1 is a premise of the paper, which a growing M2 leaves; the part asks whether the order says
anything beyond it.
Searched on other seeds: that angle grows, with an exponent of about 0.8.
Cost: 80 trainings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iclab.core.spec import replace
from iclab.lab.entries import Entry, Findings, Part, Size
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.settings import attacked_prompts, one_layer_run
from iclab.papers.scaling import softmax
from iclab.papers.scaling.limits import OPEN, Along, Numbers, pictured, tabulated, told
from iclab.probes import UNIT
from iclab.training import Run

LOSS, ATTENTION, NEURONS, ATTACK = ("softmax, hinge loss", "softmax, attention",
                                    "softmax, patterns of proposition 4.5", "Mamba under attack")
FLAT, STEEP, FRACTION = 0.1, -0.65, 0.7
SIZES = {
    "tiny": Size(seeds=2, steps=60, prompts=200, mamba_steps=60, room=30, irrelevant=(10, 20)),
    "quick": Size(seeds=4, steps=200, prompts=1_000, mamba_steps=300, room=30, irrelevant=(10, 20)),
    "full": Size(seeds=6, steps=1_000, prompts=8_000, mamba_steps=1_000, room=0, irrelevant=(6, 12, 24, 48, 96)),
}


def mamba_run(M2: int, steps: int) -> Run:
    """Mamba with so many irrelevant patterns."""
    run = one_layer_run("mamba", steps)
    return replace(run, prompts=replace(run.prompts, irrelevant_patterns=M2, dimension=max(30, M2 + 10)))


def of_mamba(lab: Lab, irrelevant: Sequence[int]) -> Numbers:
    """Mamba's error under attack."""
    columns = []
    for M2 in irrelevant:
        run = mamba_run(M2, lab.size.mamba_steps)
        test = attacked_prompts("flip", FRACTION, irrelevant_patterns=M2, dimension=run.prompts.dimension)
        columns.append(lab.errors(lab.train_seeds(run), [test])[:, 0])
    return {ATTACK: Along(f"error of Mamba at outlier fraction {FRACTION:g}", "M2", irrelevant,
                          np.stack(columns, axis=1), 1 / lab.size.prompts, prompts=lab.size.prompts)}


def of_softmax(lab: Lab, irrelevant: Sequence[int]) -> Numbers:
    """Loss, attention and neurons of the one-layer Transformer."""
    numbers = softmax.seen(lab, [softmax.a_run(lab.size.steps, room=lab.size.room, irrelevant_patterns=M2)
                                 for M2 in irrelevant])
    return {LOSS: Along("hinge loss on unseen tasks", "M2", irrelevant, numbers.hinge, within=(0.0, np.inf)),
            ATTENTION: Along("1 - attention on the query's pattern", "M2", irrelevant, numbers.scattered, within=UNIT),
            NEURONS: Along("1 - cosine of large neurons with the mean pattern", "M2", irrelevant,
                           numbers.pattern_angle, within=softmax.ANGLES)}


def run(lab: Lab) -> Findings:
    """Measure every number at every M2."""
    numbers = of_softmax(lab, lab.size.irrelevant) | of_mamba(lab, lab.size.irrelevant)
    return Findings(shown="Loss, attention, neurons and error against the number of irrelevant patterns.",
                    measured=numbers, numbers=told(numbers), settings=softmax.SETTINGS,
                    tables=[tabulated("scaling.irrelevant", numbers)],
                    plots=pictured("scaling.irrelevant", "As the number of irrelevant patterns grows", numbers))


ENTRY = Entry(
    "scaling.irrelevant", "As the number of irrelevant patterns M2 grows",
    "ours: what becomes of li2024icl, theorem 3.3, proposition 4.5, and li2025mamba, theorem 2", run,
    says="Do irrelevant patterns matter, once there are many of them?", sizes=SIZES, parts=(
        Part("ours", LOSS, "The hinge loss on unseen tasks does not depend on M2.",
             lambda numbers: [*numbers[LOSS].follows(0.0, FLAT), numbers[LOSS].stays_below(0.01)],
             replies={
                 "holds": "At this M1 the premise that M2 is at most of order M1 is not seen to be needed for the "
                          "loss.",
                 "fails": "The paper asks for M2 of order M1 at most, and so many irrelevant patterns are outside.",
                 "inconclusive": OPEN}),
        Part("ours", ATTENTION, "The attention on the query's pattern does not depend on M2.",
             lambda numbers: [*numbers[ATTENTION].follows(0.0, FLAT), numbers[ATTENTION].stays_below(0.05)],
             replies={
                 "holds": "Nor is that premise seen to be needed for attention, at this M1.",
                 "fails": "The paper asks for M2 of order M1 at most, and so many irrelevant patterns are outside.",
                 "inconclusive": OPEN}),
        Part("ours", NEURONS, "The more irrelevant patterns, the closer large neurons are to the mean pattern.",
             lambda numbers: [numbers[NEURONS].falls(STEEP)],
             replies={
                 "holds": "The order 1 / M2 says more than that M2 may be as large as M1.",
                 "fails": "With M1 fixed, M2 soon leaves the premise M2 <= O(M1); within it the order 1 / M2 is no "
                          "smaller than 1 / M1.",
                 "inconclusive": OPEN}),
        Part("ours", ATTACK, "Mamba's error under attack does not depend on M2.",
             lambda numbers: [*numbers[ATTACK].follows(0.0, FLAT), numbers[ATTACK].stays_below(0.05)],
             replies={
                 "holds": "Theorem 2 has no M2, and none is seen to be needed at these sizes.",
                 "fails": "Theorem 2 has no M2, so that something else must depend on it.",
                 "inconclusive": OPEN})))
