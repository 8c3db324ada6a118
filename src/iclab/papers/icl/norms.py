"""Claim `icl.norms`: queries and keys grow along the relevant patterns until these dominate (figure 2 A).

Proposition 4.1 gives orders with open constants, so that what is judged of an upper bound is whether the measured
number, divided by it, grows. M1 goes from 4 to 12 with M2 = M1, m ~ M1^2 log M1 and T by our law; in domain, K = 0.5;
with the M1 tasks of the minimum, U = 1, and with every task, since condition 3.2 admits both. Out of domain (K' = 5) it
goes from 6 to 10, in the models of `growing`. Tokens have their labels, so that W_K's label column counts; all are
ratios of means over tokens.

Rules. (17): during training the part of W_Q p and of W_K p along the token's pattern at least doubles, and it is at
least 0.5 sqrt(log M1) at every M1. (18), (19): the largest part along another relevant and along an irrelevant pattern,
divided by the part along the token's own and by 1 / M1 + 1 / M2, grows with an exponent of M1 of at most 0.35. Remark
4.2, queries and keys lie mainly along their pattern: share^2 is at least 1/2. Figure 2 (A), out of domain, alpha 0.8:
the part along the pattern at least doubles, and gains more than all that is left of the norm.

Ours. Share^2 is at least 1/2 out of domain too, at K' = 5. 1 - share^2 falls with M1, with an exponent of at most
-0.65. Each gradient moves queries away from the task's other pattern as much as towards its own, so the changes along
all partners (2 with U = 1, M1 - 1 with every task) should sum to minus the change along the token's pattern: within
0.25. What training adds along an irrelevant pattern (equation 103 leaves out what W starts with, delta) is at most 0.1
(1 / M1 + 1 / M2) of what it adds along the token's own.
Training four times as long changes 1 - share^2 by at most 0.05.

These rules were settled on other seeds and after two readings of the paper by others, the second after judging runs;
earlier ones stay beside them: a share of at least 0.9, then exponents of M1 of at most -0.65 for (18), (19) and the
remark, first with m 100 and T 1,000 for all M1, then the constant 1 at every M1, out of domain at the paper's sizes
alone. With M2 = M1 the second and the present rule agree. Cost: 40 trainings of up to 3,000 steps, about 4 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, between, worst
from iclab.lab.entries import Checks, Entry, Findings, Note, Part, Rule, Size
from iclab.lab.estimates import Difference, Mean, power
from iclab.lab.laboratory import Lab, per_seed
from iclab.lab.powers import in_words
from iclab.papers.icl import settings
from iclab.papers.icl.directions import (
    ADDED,
    IRRELEVANT,
    LABEL,
    OWN,
    PARTNERS,
    QUANTITIES,
    RELEVANT,
    REST,
    VECTORS,
    a_run,
    relative_parts,
    test_of,
)
from iclab.papers.icl.growing import FIRST, ends, grown_models
from iclab.papers.icl.mechanism import PLACES, along, watched_specs
from iclab.papers.icl.settings import IN_DOMAIN_CONSTANT, OUT_OF_DOMAIN_CONSTANT
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import UNIT

GAIN = "gain along its pattern less that of the rest"
LEAST = {"growth along its pattern": 2.0, "part along its pattern": 0.9, GAIN: 0.0}
FAMILIES = {"M1 tasks": "cyclic:1", "every task": "all"}
OUTSIDE = "out of domain"
SQUARE, GROWS, STEEPEST, FALLS, BEYOND, ALLOWED, CHANGE = 0.5, 0.5, -1.0, -0.65, 0.35, 0.1, 0.05
LONGER = 4
AXES = {"tiny": ((4, 6), 100, 2), "quick": ((4, 6, 8), 400, 2), "full": ((4, 6, 8, 12), 1_000, 4)}
SIZES = {scale: Size(**vars(size), patterns=AXES[scale][0], longer=AXES[scale][1], grown=AXES[scale][2])
         for scale, size in settings.SIZES.items()}

Norms = Float[np.ndarray, "seeds records"]
Parts = Mapping[tuple[str, str, str], Float[np.ndarray, "seeds patterns"]]
"""By family of tasks (or `OUTSIDE`), vector and quantity."""


class Measured(NamedTuple):
    """Growth and share at the paper's sizes, the parts along other patterns against M1, and after longer training."""

    norms: Mapping[tuple[str, str], Mapping[str, Mean]]
    sizes: Mapping[str, Mapping[int, int]]
    """M2 by M1, of each family and `OUTSIDE`."""
    parts: Parts
    longer: Mapping[str, Difference]
    """By vector: 1 - share^2 at M1 = 6 after longer training, less that after the usual one."""

    def bounds(self, where: str) -> list[tuple[str, float]]:
        """1 / M1 + 1 / M2 with the name of each size."""
        return [(f"M1 {M1}", 1 / M1 + 1 / M2) for M1, M2 in self.sizes[where].items()]

    def relative(self, where: str, vector: str, quantity: str) -> Norms:
        """This part over that along the token's pattern and 1 / M1 + 1 / M2."""
        return self.parts[where, vector, quantity] / np.array([bound for _, bound in self.bounds(where)])


def estimates(whole: Norms, part: Norms) -> dict[str, Mean]:
    """Growth and final share of the part along the pattern, and by how much it gains more than the rest."""
    rest = np.sqrt(np.maximum(whole**2 - part**2, 0))
    return dict(zip(LEAST, (Mean(part[:, -1] / part[:, 0]), Mean(part[:, -1] / whole[:, -1], UNIT),
                            Mean(part[:, -1] - part[:, 0] - rest[:, -1] + rest[:, 0])), strict=True))


def rule(*names: str, places: tuple[str, ...] = tuple(PLACES)) -> Checks:
    """Queries and keys grow, or lie, along their pattern."""
    return lambda measured: [Check(f"{vector}, {place}: {name}", values[name], ">=", LEAST[name]) for name in names
                             for (vector, place), values in measured.norms.items() if place in places]


def grows(measured: Measured) -> list[Check]:
    """The part along the token's pattern doubles, and keeps up with sqrt(log M1)."""
    return [*rule("growth along its pattern")(measured), *(
        worst(f"{vector}, {family}: part along its pattern over sqrt(log M1) (at M1 {{}})",
              [(str(M1), Mean(values[:, i] / np.sqrt(np.log(M1)))) for i, M1 in enumerate(measured.sizes[family])],
              ">=", GROWS)
        for (family, vector, name), values in measured.parts.items() if name == OWN)]


def within_order(quantity: str, where: str) -> Checks:
    """This part is at most (1 / M1 + 1 / M2) times the part along the token's pattern, at every size."""
    return lambda measured: [
        worst(f"{vector}: {quantity} over 1 / M1 + 1 / M2 (at {{}})",
              [(name, Mean(measured.relative(where, vector, quantity)[:, i]))
               for i, (name, _) in enumerate(measured.bounds(where))], "<=", 1.0) for vector in VECTORS]


def of_order(quantity: str, where: str) -> Checks:
    """This part over the one along the token's pattern does not outgrow 1 / M1 + 1 / M2."""
    return lambda measured: [
        Check(f"{vector}: exponent of M1 in {quantity} over 1 / M1 + 1 / M2 (theorem 0)",
              power(list(measured.sizes[where]), measured.relative(where, vector, quantity)), "<=", BEYOND)
        for vector in VECTORS]


def mainly(where: str) -> Checks:
    """At least half of the square lies along the token's pattern, at every size."""
    return lambda measured: [
        worst(f"{vector}: share^2 (at {{}})", [(name, Mean(1 - measured.parts[where, vector, REST][:, i]))
                                               for i, (name, _) in enumerate(measured.bounds(where))], ">=", SQUARE)
        for vector in VECTORS]


def falls(quantity: str, family: str = "M1 tasks") -> Checks:
    """This part falls like 1 / M1."""
    return lambda measured: [
        Check(f"{vector}: exponent of M1 in {quantity} (1 / M1: {STEEPEST:g})",
              power(list(measured.sizes[family]), measured.parts[family, vector, quantity]), "<=", FALLS)
        for vector in VECTORS]


def partners_lose(measured: Measured) -> list[Check]:
    """The changes along all partners sum to minus that along the token's own pattern."""
    return [check for (family, vector, other), values in measured.parts.items()
            if other == PARTNERS and family in FAMILIES
            for i in (0, -1) for check in between(f"{vector}, {family}, M1 {list(measured.sizes[family])[i]}: change "
                                                  "along partners over that along its own", Mean(values[:, i]), -1.25,
                                                  -0.75)]


def little_is_added(measured: Measured) -> list[Check]:
    """What training adds along irrelevant patterns is within the order of (19)."""
    return [worst(f"{vector}, {family}: part added along an irrelevant pattern over 1 / M1 + 1 / M2 (at M1 {{}})",
                  [(str(M1), Mean(values[:, i] * M1 / 2)) for i, M1 in enumerate(measured.sizes[family])], "<=",
                  ALLOWED)
            for (family, vector, other), values in measured.parts.items() if other == ADDED and family in FAMILIES]


def longer_is_no_better(measured: Measured) -> list[Check]:
    """Longer training leaves the share as it is."""
    return [check for vector, difference in measured.longer.items() for check in between(
        f"{vector}: 1 - share^2 after {LONGER} times as many steps, less that before", difference, -CHANGE, CHANGE)]


def run(lab: Lab) -> Findings:
    """Follow the norms during training, and compare the parts as M1 grows."""
    models, (patterns, seeds) = one_layer_models(lab, 0.8), (lab.size.patterns, lab.seeds(lab.size.grown))
    norms = {(vector, place): [along(models, f"{vector} {what}/{place}") for what in ("norm", "along its pattern")]
             for vector in VECTORS for place in PLACES}
    runs = {family: [a_run(M1, lab.size.longer, tasks) for M1 in patterns] for family, tasks in FAMILIES.items()}
    usual = a_run(6, lab.size.longer)
    patient = replace(usual, training=replace(usual.training, steps=LONGER * usual.training.steps))
    grown = lab.train([seeded for run in [*runs["M1 tasks"], *runs["every task"], patient]
                       for seeded in per_seed(run, seeds)])
    looked = lab.remember(relative_parts, grown, False).reshape(-1, len(seeds), len(VECTORS), len(QUANTITIES))
    new = {M1: some for M1, some in grown_models(lab).items() if M1 >= FIRST}
    outside = lab.remember(relative_parts, [model for some in new.values() for model in some], True)
    outside = outside.reshape(len(new), -1, len(VECTORS), len(QUANTITIES))
    parts = {(family, vector, quantity): looked[first:first + len(patterns), :, i, j].T
             for family, first in zip(FAMILIES, (0, len(patterns)), strict=True)
             for i, vector in enumerate(VECTORS) for j, quantity in enumerate(QUANTITIES)}
    parts |= {(OUTSIDE, vector, quantity): outside[..., i, j].T
              for i, vector in enumerate(VECTORS) for j, quantity in enumerate(QUANTITIES)}
    at_six, rest = patterns.index(6), QUANTITIES.index(REST)
    longer = {vector: Difference(looked[-1, :, i, rest], looked[at_six, :, i, rest])
              for i, vector in enumerate(VECTORS)}
    plot = curve_figure("icl.norms", "Parts of queries and keys along other patterns, as M1 grows",
                        "Largest part along another relevant and along an irrelevant pattern, divided by the part "
                        "along the token's own, and 1 - share^2; in domain, M2 = M1, m ~ M1^2 log M1.",
                        [Panel(f"{vector}, {family}", patterns, [Curve(other, parts[family, vector, other])
                                                                 for other in (RELEVANT, IRRELEVANT, REST)])
                         for family in FAMILIES for vector in VECTORS], "M1", "size, relative", log_x=True, log_y=True)
    whole, part = norms["query", "in domain"]
    sizes = {family: {M1: M1 for M1 in patterns} for family in FAMILIES}
    sizes[OUTSIDE] = {M1: some[0].run.prompts.irrelevant_patterns for M1, some in new.items()}
    measured = Measured({key: estimates(*values) for key, values in norms.items()}, sizes, parts, longer)
    at_paper = watched_specs(models)
    of_family = {family: [(run, test_of(run.prompts.relevant_patterns)) for run in runs[family]] for family in FAMILIES}
    label = {family: values[:, at_six].mean() for (family, vector, quantity), values in parts.items()
             if (vector, quantity) == ("key", LABEL) and family in FAMILIES}
    return Findings(
        shown="How large queries and keys are along other patterns than the token's, against M1; figure 2 shows the "
              "norms during training.", plots=[plot],
        specs={GROWTH: at_paper, SMALL_RELEVANT: of_family["M1 tasks"], SMALL_IRRELEVANT: of_family["M1 tasks"],
               WITH_ALL: of_family["every task"],
               **dict.fromkeys((NEW_RELEVANT, NEW_IRRELEVANT), ends(lab, OUTSIDE))},
        measured=measured,
        numbers=f"In domain at the paper's M1 = 6 a query's part along its pattern grows from {part[:, 0].mean():.2f} "
                f"to {part[:, -1].mean():.2f} of a norm of {whole[:, -1].mean():.2f}. Exponents of M1: " + "; ".join(
                    f"{family}, {vector}, {quantity} {in_words(power(list(sizes[family]), values))}"
                    for (family, vector, quantity), values in parts.items()
                    if quantity in (RELEVANT, IRRELEVANT, REST))
                + ". Parts of queries over that along their pattern and 1 / M1 + 1 / M2: " + "; ".join(
                    f"{family}, {quantity} " + ", ".join(
                        f"{value:.2f} (M1 {M1})" for M1, value in
                        zip(sizes[family], measured.relative(family, "query", quantity).mean(axis=0), strict=True))
                    for family in sizes for quantity in (RELEVANT, IRRELEVANT))
                + ". Share of the norm along the pattern out of domain at M1 = 6, M2 = 24: " + " and ".join(
                    f"{measured.norms[vector, OUTSIDE]['part along its pattern'].value:.2f} ({vector})"
                    for vector in VECTORS)
                + ". At M1 = 6 W_K's label column is as long as " + " and ".join(
                    f"{value:.2f} ({family})" for family, value in label.items()) + " of what it has along a pattern.")


GROWTH, SMALL_RELEVANT, SMALL_IRRELEVANT = (f"proposition 4.1 ({number})" for number in (17, 18, 19))
WITH_ALL = "proposition 4.1 (18), every task trained"
NEW_RELEVANT, NEW_IRRELEVANT = (f"proposition 4.1 ({number}), out of domain" for number in (18, 19))
SHARE = Rule(rule("part along its pattern"), "The bounds are orders; with all constants 1 the share at M1 = 6 is 0.91, "
                                             "and that of an untrained model is above 0.9.")
SLOPE = "It was replaced by the order with the constant 1, at every M1, which the bound does not state."
OPEN = "The constant of the order is open; what contradicts an order is growth beyond it."
CROSSES = "An interval crosses its threshold."


def _part(kind: str, place: str, says: str, checks: Checks, holds: str, fails: str, *, earlier: tuple[Rule, ...] = (),
          constant: float = IN_DOMAIN_CONSTANT) -> Part:
    """A part with what all have in common."""
    return Part(kind, place, says, checks, theory=("Proposition 4.1",) if kind == "theorem" else (), constant=constant,
                earlier=earlier, replies={"holds": holds, "fails": fails, "inconclusive": CROSSES})


PARTNER_STAYS = ("Equation 28 lets the part along the other pattern of a task vanish; the softmax takes from it what "
                 "it gives to the query's own, and where each pattern has few partners that is much for each.")
START_STAYS = ("The proof (99) takes tokens without their irrelevant part and leaves out W(0); what the starting value "
               "delta, of order 1 by remark 4.2, gives to that part is no smaller for a larger M1, and (19) should "
               "speak of what training adds.")
PARTS = (
    _part("theorem", GROWTH, "Queries and keys grow along the token's relevant pattern, to the order sqrt(log M1).",
          grows, "This growth is what makes attention concentrate.",
          "Training is too short for the growth that (17) speaks of.", constant=OUT_OF_DOMAIN_CONSTANT,
          earlier=(Rule(rule("growth along its pattern"), "It left out the order sqrt(log M1)."),)),
    _part("theorem", SMALL_RELEVANT, "Along other relevant patterns queries and keys are smaller by the order 1 / M1 + "
          "1 / M2, with the M1 tasks that condition 3.2 asks for at least.", of_order(RELEVANT, "M1 tasks"),
          "As in (97) and (98).", PARTNER_STAYS,
          earlier=(SHARE, Rule(falls(RELEVANT), SLOPE), Rule(within_order(RELEVANT, "M1 tasks"), OPEN))),
    _part("theorem", WITH_ALL, "The same when every task is trained, as condition 3.2 admits.",
          of_order(RELEVANT, "every task"), "With M1 - 1 partners for each pattern, each has little to lose.",
          PARTNER_STAYS, earlier=(Rule(within_order(RELEVANT, "every task"), OPEN),)),
    _part("theorem", NEW_RELEVANT, "Along other new patterns too, out of domain.", of_order(RELEVANT, OUTSIDE),
          "As in (111) and (112).", "The new patterns are made of patterns that are partners in training.",
          constant=OUT_OF_DOMAIN_CONSTANT, earlier=(Rule(within_order(RELEVANT, OUTSIDE), OPEN),)),
    _part("theorem", SMALL_IRRELEVANT, "Along irrelevant patterns queries and keys are smaller by the order 1 / M1 + "
          "1 / M2.", of_order(IRRELEVANT, "M1 tasks"), "As in (103) and (110).", START_STAYS,
          earlier=(SHARE, Rule(falls(IRRELEVANT), SLOPE), Rule(within_order(IRRELEVANT, "M1 tasks"), OPEN))),
    _part("theorem", NEW_IRRELEVANT, "Along irrelevant patterns too, out of domain.",
          of_order(IRRELEVANT, OUTSIDE), "As in (103) and (110).", START_STAYS, constant=OUT_OF_DOMAIN_CONSTANT,
          earlier=(Rule(within_order(IRRELEVANT, OUTSIDE), OPEN),)),
    _part("remark", "remark 4.2, in domain", "Queries and keys lie mainly along their pattern.", mainly("M1 tasks"),
          "This is what remark 4.2 says.", "More than half of the square lies elsewhere.",
          earlier=(Rule(falls(REST), "The remark says mainly, not that it is the more so the larger M1."),)),
    _part("figure", "figure 2 (A)", "Out of domain the norms grow during training, mostly along the relevant pattern.",
          rule("growth along its pattern", GAIN, places=(OUTSIDE,)),
          "As drawn; how close the part is to the whole depends on delta, |q| and T, which are not given.",
          "Delta, step size and T of the figure are not given; delta 0.02 to 0.2, |q| 1 and 3 and a longer T were "
          "tried.", earlier=(Rule(rule("growth along its pattern", "part along its pattern", places=(OUTSIDE,)),
                                  "The figure puts no number on how close the part is to the whole; 0.9 was ours."),)),
    _part("ours", "share out of domain, K' = 5", "Out of domain, at these settings, at least half of the square of "
          "queries and keys lies along their new pattern.", mainly(OUTSIDE),
          "Remark 4.2 is true even with irrelevant patterns as large as these.",
          "The remark is about (17) to (19) as orders, with K' of order 1; with K' = 5 irrelevant patterns take a "
          "large share."),
    _part("ours", "1 - share^2 as M1 grows", "The share along the pattern tends to 1 as M1 grows, with the M1 tasks of "
          "the minimum.", falls(REST), "What remark 4.2 suggests of large M1 is so.",
          "With two partners for each pattern the share stays where it is, whatever M1."),
    _part("ours", "1 - share^2 as M1 grows, every task trained", "The same when every task is trained.",
          falls(REST, "every task"), "What remark 4.2 suggests of large M1 is so with many tasks.",
          "What is left over does not come from partners alone."),
    _part("ours", "partners", "What queries and keys gain along their pattern they lose, in sum, along the patterns "
          "that form a training task with it.", partners_lose,
          "A softmax only moves attention: towards equal patterns, away from the task's other.",
          "Other patterns take part, or noise of the batches does."),
    _part("ours", "what training adds along irrelevant patterns", "Without what W starts with, parts along irrelevant "
          "patterns are well within the order of (19).", little_is_added, "(19) holds for what training adds.",
          "Noise of the batches adds more than the bound allows."),
    _part("ours", "longer training", "Four times as many steps leave the share along the pattern as it is.",
          longer_is_no_better, "Where the hinge loss is 0 nothing grows any more.",
          "The share still moves when the loss is small."))
ENTRY = Entry(
    "icl.norms", "Queries and keys grow along the relevant patterns", "li2024icl, proposition 4.1, figure 2 (A)", run,
    says="Queries and keys grow along the relevant patterns, and other parts stay small beside them.",
    sizes=SIZES, parts=PARTS,
    notes=(Note("2026-11-18", "A search for figure 2 (A): delta 0.02, 0.05, 0.13, 0.2, |q| 1 and 3, m 100, eta 0.5, "
                "alpha 0.8, T long enough to train and four times that, one seed each. Out of domain (K' = 5) the "
                "share of the part along the pattern was 0.57 to 0.68 with U = 1, 0.70 to 0.83 with U = 4 and 0.69 to "
                "0.84 with every task."),))
