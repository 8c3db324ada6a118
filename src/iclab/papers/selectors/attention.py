"""Claim `selectors.attention`: attention goes to the examples with the query's pattern, in and out of domain.

Rules, inside the premises, written before the run and after a look at search seeds (missing attention 0.002 to 0.01 of
what may be 1 / M = 0.06). The missing attention is what the examples with the query's pattern do not get. Equation 9:
at the end of training it is at most 1 / M, the order of its limit with the constant 1. Its rate of O(1 / t) is a part
of its own: from the first record on at which the loss is at most 0.2, step T, the slope of log missing attention
against log t is at most -0.65 in the mean over seeds, the usual tolerance. Corollary 1: it is at most 1 / M on the
training tasks and on new patterns, positive combinations of the training ones (two pairs of the four; one pair and the
other two).

History. The first rule on the rate, that the missing attention exceeds 1 / M by at most T / t times its initial value,
could not fail where it is below 1 / M all along; the slope was reported, and not judged, for long. Cost: none beyond
`selectors.features`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part, Rule
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab
from iclab.papers.selectors.mechanism import along
from iclab.papers.selectors.patterns import POSITIVE, new_patterns
from iclab.papers.selectors.settings import CONSTANT, SIZES, theorem_prompts
from iclab.papers.selectors.trained import theorem_models
from iclab.probes.inside import score_masses
from iclab.prompts import Classification
from iclab.training import Trained

TRAINED, SLOPE = 0.2, -0.65
"""The training loss from which on the rate is judged, and the largest slope."""
PROMPTS = 1_000
RATE = "proposition 1, eq. 9, the rate"


class Measured(NamedTuple):
    """Missing attention during training, and by test."""

    steps: Float[np.ndarray, " records"]
    losses: Float[np.ndarray, "models records"]
    missing: Float[np.ndarray, "models records+1"]
    """From before training on."""
    tested: dict[str, Float[np.ndarray, " models"]]
    patterns: int
    """M."""

    @property
    def beyond(self) -> Float[np.ndarray, " models"]:
        """The largest excess over 1 / M, times t, from step T on, over T times the initial value; NaN where the loss
        stays large."""
        largest = []
        for loss, missing in zip(self.losses, self.missing, strict=True):
            reached = np.flatnonzero(loss <= TRAINED)
            late = slice(reached[0], None) if len(reached) else slice(0, 0)
            excess = np.maximum(missing[1:][late] - 1 / self.patterns, 0.0) * self.steps[late]
            largest.append(excess.max() / (self.steps[late][0] * missing[0]) if len(excess) else np.nan)
        return np.array(largest)


def concentrates(measured: Measured) -> list[Check]:
    """Equation 9, its limit."""
    return [Check("missing attention at the end, times M", Mean(measured.missing[:, -1] * measured.patterns), "<=",
                  1.0)]


def falls_like_one_over_t(measured: Measured) -> list[Check]:
    """Equation 9, its rate."""
    return [Check("slope of log missing attention against log t, after T", Mean(slopes(measured)), "<=", SLOPE)]


def limit_and_bound(measured: Measured) -> list[Check]:
    """The first rule."""
    return [*concentrates(measured),
            Check("largest excess after T, over a fall like T / t", Mean(measured.beyond), "<=", 1.0)]


def everywhere(measured: Measured) -> list[Check]:
    """Corollary 1."""
    return [Check(f"missing attention, {name}, times M", Mean(values * measured.patterns), "<=", 1.0)
            for name, values in measured.tested.items()]


def missing_on(models: Sequence[Trained], test: Classification, lab: Lab) -> Float[np.ndarray, " models"]:
    """Missing attention of trained models on a test."""
    seeds = [trained.run.init_seed for trained in models]
    same = lab.remember(score_masses, models, test, count=PROMPTS, seeds=seeds)[0]
    return 1 - np.asarray(same)[:, 0]


def slopes(measured: Measured) -> Float[np.ndarray, " models"]:
    """Of log missing attention against log t, from step T to the end; NaN where there is nothing to fit."""
    fitted = []
    for loss, missing in zip(measured.losses, measured.missing[:, 1:], strict=True):
        late = (np.cumsum(loss <= TRAINED) > 0) & (missing > 0)
        fitted.append(np.polyfit(np.log(measured.steps[late]), np.log(missing[late]), 1)[0] if late.sum() > 1
                      else np.nan)
    return np.array(fitted)


def run(lab: Lab) -> Findings:
    """Train, follow the attention, and look at it on new patterns."""
    models = theorem_models(lab)
    prompts, new = theorem_prompts(), new_patterns()
    M = prompts.relevant_patterns + prompts.irrelevant_patterns
    tests = {"training tasks": prompts} | {name: new[name] for name in POSITIVE}
    measured = Measured(np.asarray(models[0].steps, float), np.stack([trained.loss for trained in models]),
                        along(models, "missing"), {name: missing_on(models, test, lab) for name, test in tests.items()},
                        M)
    fitted = slopes(measured)
    fall = (f" After T it falls on like t^{np.nanmean(fitted):.1f} (from {np.nanmin(fitted):.1f} to "
            f"{np.nanmax(fitted):.1f} over seeds)." if np.isfinite(fitted).any() else "")
    return Findings(
        shown="Attention that does not go to the examples with the query's pattern.", measured=measured,
        numbers=f"Missing attention {measured.missing[:, 0].mean():.3f} before training, "
                f"{measured.missing[:, -1].mean():.4f} after it (1 / M is {1 / M:.4f}); on tests " + ", ".join(
                    f"{name} {values.mean():.4f}" for name, values in measured.tested.items())
                + f".{fall}",
        specs={"proposition 1, eq. 9": [(models[0].run, prompts)],
               RATE: [(models[0].run, prompts)],
               "corollary 1": [(models[0].run, new[name]) for name in POSITIVE]},
        settings={"prompts per test": PROMPTS})


ENTRY = Entry(
    "selectors.attention", "Attention selects the examples with the query's pattern",
    "li2024selectors, proposition 1, corollary 1", run, sizes=SIZES,
    says="The attention that misses the examples with the query's pattern falls to the order of 1 / M, at a rate of "
         "O(1 / T), and stays there on new patterns.", parts=(
        Part("theorem", "proposition 1, eq. 9", "The missing attention falls to its limit, at most of order 1 / M.",
             concentrates, theory=("Proposition 1",), constant=CONSTANT,
             earlier=(Rule(limit_and_bound, "Its second check bounded the excess over 1 / M, of which there is none; "
                           "the rate has a part of its own."),),
             replies={"holds": "As the equation says, with the constant 1 and C = 1, the largest limit it allows.",
                      "inconclusive": "The constant before 1 / M^C is open."}),
        Part("theorem", RATE, "It falls like 1 / T or faster.", falls_like_one_over_t, theory=("Proposition 1",),
             constant=CONSTANT,
             replies={"holds": "As the equation says.",
                      "inconclusive": "Seeds differ in how the missing attention falls once it is small, where the "
                                      "open limit, of order 1 / M^C, may count.",
                      "fails": "The missing attention is already below the limit of order 1 / M^C, and the equation "
                               "says nothing of how it goes on to fall there."}),
        Part("theorem", "corollary 1", "On any test data the missing attention is at most of order 1 / M.", everywhere,
             theory=("Corollary 1",), constant=CONSTANT,
             replies={"holds": "As the corollary says, with the constant 1, in and out of domain.",
                      "inconclusive": "The constant before 1 / M is open."})))
