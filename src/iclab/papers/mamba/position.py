"""Claim `mamba.position`: outliers next to the query hurt Mamba most; the linear Transformer ignores their position.

The paper gives neither its label rule nor kappa_a'. Both models are judged at one common setting, a label rule of the
paper's own: flip, with outliers as large as in training (chosen after a look at `mamba.table1`, which has others; the
rule before it was judged at the setting of the numbers below). Rule: Mamba's accuracy with outliers far from the query
is at least that with outliers anywhere (less 0.005), which is above that with outliers close; the linear Transformer's
three accuracies differ by at most 0.02, and leave room (none is above 0.95). A linear Transformer whose tokens read all
others, as here, cannot but be flat; ours: a causal one is flat, too (the layers as the appendix defines them, read
literally). Ours, numbers: all six are within 0.1 of the paper's, at the setting that came nearest to them on other
seeds: a label rule of ours, by which a poisoned example is mislabelled in four of five cases, and outliers as large as
in training. Two of the earlier rules judged each model under its own label rule,
or both under target, at three times the training scale. At smaller scales flip at three times the training scale
stands in, and the numbers are not judged. Cost: no extra training.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.lab.claims import Check, between
from iclab.lab.entries import Checks, Entry, Findings, Part, Rule
from iclab.lab.estimates import Difference, Mean
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.table1 import (
    MOSTLY_WRONG,
    NAMES,
    PAPER,
    PLACEMENTS,
    SIZES,
    Accuracies,
    judged_prompts,
    measure,
    percent,
)
from iclab.probes import UNIT

FACTOR = 3.0
COMMON = ("flip", 1.0)
NEAREST = (MOSTLY_WRONG, 1.0)
STANDS_IN = ("flip", FACTOR)
SLACK, FLAT, ROOM, NEAR = 0.005, 0.02, 0.95, 0.1


def checks(mamba: Float[np.ndarray, "seeds 3"], linear: Float[np.ndarray, "seeds 3"]) -> list[Check]:
    """The rule above, on accuracies far, random, close."""
    far, anywhere, close = mamba.T
    return [Check("Mamba: far less random", Difference(far, anywhere), ">=", -SLACK),
            Check("Mamba: random less close", Difference(anywhere, close), ">", 0.0),
            Check("linear Transformer: largest less least of the three",
                  Mean(linear.max(axis=1) - linear.min(axis=1), UNIT), "<=", FLAT)]


def common(accuracies: Accuracies) -> tuple[str, float]:
    """The setting at which both models are judged."""
    return COMMON if COMMON in accuracies.rows else STANDS_IN


def at_common(accuracies: Accuracies) -> list[Check]:
    """The rule at the common setting, where the linear Transformer's accuracy must leave room to change."""
    return with_room(accuracies, common(accuracies))


def at_nearest(accuracies: Accuracies) -> list[Check]:
    """The earlier rule: at the setting that is nearest to the paper's numbers."""
    return with_room(accuracies, NEAREST if NEAREST in accuracies.rows else STANDS_IN)


def causal(accuracies: Accuracies) -> list[Check]:
    """A causal linear Transformer ignores positions."""
    if "causal" not in accuracies.values:
        return []
    of = accuracies.at("causal", *common(accuracies))
    return [Check("causal linear Transformer: largest less least of the three",
                  Mean(of.max(axis=1) - of.min(axis=1), UNIT), "<=", FLAT)]


def with_room(accuracies: Accuracies, setting: tuple[str, float]) -> list[Check]:
    """The rule at one setting for both models."""
    mamba, linear = (accuracies.at(model, *setting) for model in PAPER)
    return [*checks(mamba, linear),
            Check("linear Transformer: largest of the three", Mean(linear.max(axis=1), UNIT), "<=", ROOM)]


def numbers(accuracies: Accuracies) -> list[Check]:
    """All six accuracies are near the paper's."""
    found = []
    for model, theirs in PAPER.items():
        measured = accuracies.at(model, *NEAREST) if NEAREST in accuracies.rows else np.full((2, 3), np.nan)
        for place, values, value in zip(PLACEMENTS, measured.T, theirs, strict=True):
            found += between(f"{NAMES[model]}, {place}", Mean(values, UNIT), value - NEAR, min(value + NEAR, 1.0))
    return found


def under(mamba: str, linear: str) -> Checks:
    """The rule with these label rules at three times the training scale."""
    return lambda accuracies: checks(accuracies.at("mamba", mamba, FACTOR), accuracies.at("linear", linear, FACTOR))


def run(lab: Lab) -> Findings:
    """Measure table 1."""
    accuracies = measure(lab)
    rule, factor = common(accuracies)
    rows = [f"{NAMES[model]} {' / '.join(map(percent, accuracies.at(model, rule, factor).T))} %"
            for model in accuracies.values]
    return Findings(shown="Each check with its interval over seeds; the accuracies are table 1.", measured=accuracies,
                    numbers=f"Far / random / close, label {rule}, kappa_a' = {factor:g} kappa_a: {'; '.join(rows)}.",
                    specs=[(accuracies.run, judged_prompts(rule, factor))])


ENTRY = Entry(
    "mamba.position", "The position of outliers matters to Mamba, not to the linear Transformer",
    "li2025mamba, table 1", run,
    says="Mamba is most accurate with outliers far from the query and least with outliers close to it; the linear "
         "Transformer ignores their position.", sizes=SIZES, parts=(
        Part("figure", "table 1", "Mamba suffers most from outliers next to the query; the linear Transformer is much "
             "less affected by their position.", at_common, earlier=(
                 Rule(under("target", "target"), "The paper gives no label rule; each model was then judged under the "
                      "one that comes nearest to its row."),
                 Rule(under("flip", "target"), "The models were judged at different settings, the linear Transformer "
                      "where nothing could hurt it; both are now judged at one that leaves room."),
                 Rule(at_nearest, "It was judged under a label rule of ours, found by a search against the table's "
                      "numbers; now under one of the paper's.")), replies={
                 "holds": "This is what the table shows, at one setting for both models; a linear Transformer whose "
                          "tokens read all others is flat by construction.",
                 "fails": "The table's setting is not given, and this one is not it.",
                 "inconclusive": "Mamba's accuracy with outliers next to the query varies much between seeds."}),
        Part("ours", "table 1, a causal linear Transformer", "A causal linear Transformer ignores the position of "
             "outliers, too.", causal, replies={
                 "holds": "Both readings of the layers are flat.",
                 "fails": "Read literally, with causal layers, three layers see positions; the table's linear "
                          "Transformer is then not this one.",
                 "inconclusive": "Not measured at this scale, or seeds differ too much."}),
        Part("ours", "table 1, numbers", "At a label rule of ours, which the paper's definition allows, the accuracies "
             "are near the paper's: 99.84, 99.04 and 73.28 % for Mamba, 78.52, 78.28 and 78.60 % for the linear "
             "Transformer.", numbers, replies={
                 "holds": "A common label rule and scale give all six numbers roughly, though another setting may have "
                          "been used.",
                 "fails": "The table's setting is not given, and this one is not it.",
                 "inconclusive": "Mamba's accuracy with outliers next to the query varies much between seeds, or the "
                                 "scale is too small for this row."})))
