"""Claim `cot.examples`: how many examples a chain of thought needs as alpha', tau or rho fall (figure 2).

Rules: those of `needs`, for theorem 2 and figure 2. Ours: at the default setting the error with 4, 8, 16 and 32
examples is within 0.02 of that of the ideal majority vote. Cost: no extra training, about 10 s.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from iclab.lab.claims import Check, between
from iclab.lab.entries import Entry, Findings, Note, Part
from iclab.lab.estimates import Difference
from iclab.lab.laboratory import Lab
from iclab.papers.cot.needs import Faint, Needs, at_default, at_small_rho, described, measure, parts
from iclab.papers.cot.settings import SIZES
from iclab.probes.chains import ChainErrors

NEAR, JUDGED = 0.02, (4, 8, 16, 32)


class Measured(NamedTuple):
    """Errors along every axis and for small rho, and at the default setting with `JUDGED` examples."""

    needs: Needs
    faint: Faint
    default: ChainErrors
    prompts: int


def like_the_vote(measured: Measured) -> list[Check]:
    """The distance from the ideal vote at the default setting."""
    cot, vote = measured.default.cot, measured.default.vote
    return [check for i, examples in enumerate(JUDGED)
            for check in between(f"error less that of the ideal vote, {examples} examples",
                                 Difference(cot[:, i], vote[:, i], measured.prompts), -NEAR, NEAR)]


def run(lab: Lab) -> Findings:
    """Measure and draw the laws."""
    measured = Measured(measure(lab, "cot"), at_small_rho(lab, "cot"), at_default(lab, JUDGED),
                        SIZES[lab.scale].default_prompts)
    distance = np.abs((measured.default.cot - measured.default.vote).mean(axis=0)).max()
    return described(lab, "cot.examples", "a chain of thought", measured, "At the default setting the error with "
                     f"{JUDGED[0]} to {JUDGED[-1]} examples is at most {distance:.3f} from the ideal vote's.")


ENTRY = Entry(
    "cot.examples", "Examples that a chain of thought needs", "li2024cot, theorem 2, figure 2", run,
    says="The number of examples that a chain of thought needs falls with alpha', tau and rho.", sizes=SIZES, parts=(
        *parts("theorem 2", "(alpha' tau rho)^-2", "figure 2", "alpha', tau or rho"),
        Part("ours", "the ideal vote", "At the default setting a chain of thought errs as often as a majority vote "
             "over matching examples.", like_the_vote, replies={
                 "holds": "That is what the proof makes of the model: a vote over matching examples.",
                 "inconclusive": "The vote has many ties, and the noise of its tests is as large as the margin."})),
    notes=(Note("2026-11-18", "At fixed tau a small rho also makes the weak step right less often, at most "
                "1 / (2 - rho), which makes the law in rho steeper than a square until rho is small."),
           Note("2026-11-18", "Small rho: with rho 0.05 and 16,384 examples four models erred in 18 % of steps when "
                "trained with eta 10, B 60, l_tr 20, in 7 % with eta 10, B 300, l_tr 64 (6 % after seven times as many "
                "steps), in 3 % with eta 0.9, B 300, l_tr 512, and the ideal vote in 0.5 %. The proof of theorem 3 "
                "knows the weights of its vote up to epsilon (eq. 86), and this batch supports an epsilon of 0.1."),))
