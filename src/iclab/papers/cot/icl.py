"""Claim `cot.icl`: how many examples the same model needs when it answers at once (figure 3), and what training adds.

Rules: those of `needs`, for theorem 3 (b) and figure 3. Ours: with few matching examples (alpha' = 0.1) and 64 in all,
the untrained model's error exceeds the trained one's by at least 0.2. Cost: 2 s beyond `cot.examples`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Note, Part
from iclab.lab.estimates import Difference
from iclab.lab.laboratory import Lab
from iclab.papers.cot.needs import Faint, Needs, at_small_rho, described, measure, parts
from iclab.papers.cot.settings import SIZES, default_test
from iclab.papers.cot.trained import asked, errors, models, untrained
from iclab.probes import UNIT

FRACTIONS = (0.1, 0.4, 0.8)
EXAMPLES, ADDED = 64, 0.2


class Measured(NamedTuple):
    """Errors along every axis and for small rho, and by alpha' before and after training, with `EXAMPLES` examples."""

    needs: Needs
    faint: Faint
    few: dict[str, Float[np.ndarray, "seeds fractions"]]
    prompts: int


def few_matching(lab: Lab) -> dict[str, Float[np.ndarray, "seeds fractions"]]:
    """Errors by alpha', after and before training."""
    lengths, trained = SIZES[lab.scale].short, models(lab)
    tests = [default_test(matching_fraction=value, prompt_length=max(lengths)) for value in FRACTIONS]
    by_name = {"trained": trained, "untrained": untrained(trained)}
    measured = errors(lab, [asked(lab, tested, tests, lengths) for tested in by_name.values()])
    return {name: part.icl[:, :, lengths.index(EXAMPLES)] for name, part in zip(by_name, measured, strict=True)}


def training_helps(measured: Measured) -> list[Check]:
    """What training adds where few examples match."""
    before, after = measured.few["untrained"][:, 0], measured.few["trained"][:, 0]
    return [Check(f"error of the untrained model less that of the trained, alpha' = {FRACTIONS[0]:g}, {EXAMPLES} "
                  "examples", Difference(before, after, measured.prompts), ">=", ADDED)]


def run(lab: Lab) -> Findings:
    """Measure and draw the laws."""
    measured = Measured(measure(lab, "icl"), at_small_rho(lab, "icl"), few_matching(lab), SIZES[lab.scale].prompts)
    training = curve_figure("cot.icl.training", "What training adds to in-context learning",
                            f"Error of the answer given at once with {EXAMPLES} examples, before and after training.",
                            [Panel("default tau and rho", FRACTIONS,
                                   [Curve(name, rows) for name, rows in measured.few.items()])],
                            "alpha', fraction of matching examples", "error", log_x=True, within=UNIT)
    by_fraction = "; ".join(f"alpha' {fraction:g}: " + ", ".join(
        f"{name} {rows[:, i].mean():.3f}" for name, rows in measured.few.items())
                            for i, fraction in enumerate(FRACTIONS))
    return described(lab, "cot.icl", "in-context learning", measured,
                     f"Errors with {EXAMPLES} examples: {by_fraction}.", [training])


ENTRY = Entry(
    "cot.icl", "Examples that in-context learning needs", "li2024cot, theorem 3 (b), figure 3", run,
    says="The number of examples that in-context learning needs falls with alpha', tau_o and rho_o.", sizes=SIZES,
    parts=(*parts("theorem 3 (b)", "(alpha' tau_o rho_o)^-2", "figure 3", "alpha', tau_o or rho_o"),
           Part("ours", "what training adds", "Where few examples match, the untrained model errs much more often.",
                training_helps, replies={
                    "holds": "Training is what makes the model select examples with the query's pattern."})),
    notes=(Note("2026-11-18", "Where most examples match, the majority of all examples is nearly that of the matching "
                "ones, and the error says little about training. Varying tau_o through tau also changes rho_o, which "
                "steepens the law in tau_o."),))
