"""Claim `icl.ood`: the out-of-domain error as the coefficient sum S1 of a new pattern passes 1 (figure 3, A).

Rules, with irrelevant patterns at the paper's K' = 5. Theorem 3.4, which promises a small hinge loss: at S1 >= 1 the
largest error of the one-layer Transformer (decisive fraction 0.6 in training and test, delta 0.13, |q| 1) is at most
0.01 and its hinge loss at most 0.1; the first rule had only the error. Figure 3 (A), GPT-2 (0.8): its error at S1 >= 1
is at most 0.01, and at the smallest S1 larger by 0.01 than at 1, so that it deviates from 0 below 1. The paper gives
neither GPT-2's width nor its optimiser, and at K' = 5 ours errs for any S1, so that the figure is judged with
irrelevant patterns as large as in training, K' = 0.5, and K' = 5 is ours, "at these settings". That was settled after
runs and two readings of the paper by others; before, the figure was judged at K' = 5, by S1 = 0 and first by a fall
from 0.8 to 1. Is the condition necessary, as section 5.1 says of GPT-2, for one layer: the error at 0.8 exceeds that at
1 by at least 0.01.

Ours, over delta, |q| and T (module sums): S1*, from which on the error stays below 0.01, is larger by at least 0.5 at
delta 0.02 than at 0.13 (|q| = 1, mean over T; the first rule took the longer training alone, with 6 seeds, and was
inconclusive at base seed 1); and the hinge loss falls at most twice as fast between 0.8 and 1 as between 0 and 0.8, at
every delta of the longer training, so that there is no cliff. Both were settled on other seeds, on which S1* went from
about 0.1 at delta 0.13 to beyond 1 at 0.02.
Cost: GPT-2 trains for about 15 s, the map about 5 s, tests take about 4 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, worst
from iclab.lab.entries import Entry, Findings, Note, Part, Rule, Size
from iclab.lab.estimates import Difference, Mean, Rate
from iclab.lab.laboratory import Lab
from iclab.papers.icl import sums as at_other_settings
from iclab.papers.icl.settings import (
    GPT2_SIZES,
    LARGEST_SUM,
    NEW_SCALE,
    OUT_OF_DOMAIN_CONSTANT,
    SIZES,
    TRAINING_SCALE,
    out_of_domain,
)
from iclab.papers.icl.sums import both_errors
from iclab.papers.icl.trained import gpt2_models, one_layer_models
from iclab.probes import UNIT, information_floor
from iclab.prompts import Classification
from iclab.training import Trained

LARGEST = float(f"{LARGEST_SUM:.2f}")
ALL = {"softmax": (-1.0, -0.5, 0.0, 0.5, 0.8, 1.0, 1.1, LARGEST), "gpt2": (-0.5, 0.0, 0.5, 0.8, 1.0, LARGEST)}
"""S1 by model."""
SUMS: dict[str, dict[str, tuple[float, ...]]] = {"tiny": dict.fromkeys(ALL, (0.8, 1.0)), "quick": ALL, "full": ALL}
DECISIVE = {"softmax": 0.6, "gpt2": 0.8}
ERROR_ALLOWED, LOSS_ALLOWED, CLIFF = 0.01, 0.1, 0.01


class Errors(NamedTuple):
    """Errors of one model by coefficient sum."""

    sums: Sequence[float]
    values: Float[np.ndarray, "seeds sums"]
    prompts: int
    tests: Sequence[Classification]
    hinge: Any = None
    """Hinge losses, of the one-layer Transformer."""

    @property
    def floor(self) -> list[float]:
        """The information floor of each test."""
        return [information_floor(test) for test in self.tests]

    @property
    def words(self) -> str:
        """The mean errors."""
        return ", ".join(f"{value:.3f} at {total:g}" for total, value in zip(self.sums, self.values.mean(axis=0),
                                                                             strict=True))

    @property
    def beyond(self) -> list[int]:
        """Where S1 >= 1."""
        return [i for i, total in enumerate(self.sums) if total >= 1]


def models_of(lab: Lab, model: str) -> list[Trained]:
    """The trained models of a curve."""
    return one_layer_models(lab, DECISIVE[model]) if model == "softmax" else gpt2_models(lab)


def measure(lab: Lab, model: str, scale: float) -> Errors:
    """Errors by coefficient sum, at one scale of the irrelevant patterns."""
    sums, prompts = SUMS[lab.scale][model], {"softmax": SIZES, "gpt2": GPT2_SIZES}[model][lab.scale].prompts
    tests = [out_of_domain(DECISIVE[model], total, irrelevant_scale=scale) for total in sums]
    models = models_of(lab, model)
    if model == "gpt2":
        return Errors(sums, lab.errors(models, tests, prompts), prompts, tests)
    both = lab.remember(both_errors, models, sums, prompts, [trained.run.init_seed for trained in models])
    return Errors(sums, both[..., 0], prompts, tests, both[..., 1])


def small_beyond(errors: Errors) -> list[Check]:
    """The error is small wherever S1 >= 1."""
    rates = [(f"S1 = {errors.sums[i]:g}", Rate(errors.values[:, i], errors.prompts)) for i in errors.beyond]
    return [worst("largest error at S1 >= 1 (at {})", rates, "<=", ERROR_ALLOWED)]


def small_loss_beyond(errors: Errors) -> list[Check]:
    """The hinge loss is small wherever S1 >= 1, as the error is."""
    losses = [(f"S1 = {errors.sums[i]:g}", Mean(errors.hinge[:, i])) for i in errors.beyond]
    return [*small_beyond(errors), worst("largest hinge loss at S1 >= 1 (at {})", losses, "<=", LOSS_ALLOWED)]


def cliff(errors: Errors) -> list[Check]:
    """The error falls between 0.8 and 1."""
    before, after = (errors.values[:, errors.sums.index(total)] for total in (0.8, 1.0))
    return [Check("error at S1 = 0.8 less that at 1", Difference(before, after, errors.prompts), ">=", CLIFF)]


def deviates(errors: Errors) -> list[Check]:
    """The error is larger far below 1."""
    at = {total: errors.values[:, i] for i, total in enumerate(errors.sums)}
    far = max((total for total in at if total <= 0), default=min(at))
    return [Check(f"error at S1 = {far:g} less that at 1", Difference(at[far], at[1.0], errors.prompts), ">=", CLIFF)]


def as_drawn(errors: Errors) -> list[Check]:
    """Small from 1 on, and larger at the smallest sum."""
    at = dict(zip(errors.sums, errors.values.T, strict=True))
    return [*small_beyond(errors), Check(f"error at S1 = {min(at):g} less that at 1",
                                         Difference(at[min(at)], at[1.0], errors.prompts), ">=", CLIFF)]


def run(lab: Lab) -> Findings:
    """Measure both models."""
    one_layer, gpt2, tame = (measure(lab, *point) for point in (("softmax", NEW_SCALE), ("gpt2", NEW_SCALE),
                                                                ("gpt2", TRAINING_SCALE)))
    curves = at_other_settings.measure(lab)
    plot = curve_figure("icl.ood", "Out-of-domain error against the coefficient sum of a new pattern",
                        "One-layer Transformer, 20 examples, decisive fraction 0.6; the theorem requires S1 >= 1.",
                        [Panel("one-layer Transformer", one_layer.sums, [Curve("softmax", one_layer.values)],
                               floor=one_layer.floor, marks=[("theorem 3.4", 1.0)])],
                        "S1, coefficient sum of the first new pattern", "error", within=UNIT)
    runs = {model: models_of(lab, model)[0].run for model in ALL}
    return Findings(
        shown="Error on test prompts with new patterns, combinations of the training patterns, against the coefficient "
              "sum of the first one. Figure 3 shows GPT-2's curves.",
        measured={"softmax": one_layer, "gpt2": gpt2, "tame": tame, "map": curves},
        plots=[plot, *at_other_settings.plots(curves)],
        numbers=f"One layer: {one_layer.words}. GPT-2 at the paper's K' = 5: {gpt2.words}. At K' = K = 0.5: "
                f"{tame.words}. {at_other_settings.words(curves)}",
        specs={THEOREM: [(runs["softmax"], one_layer.tests[i]) for i in one_layer.beyond],
               NECESSARY: [(runs["softmax"], one_layer.tests[one_layer.sums.index(total)]) for total in (0.8, 1.0)],
               FIGURE: [(runs["gpt2"], test) for test in tame.tests],
               AT_FIVE: [(runs["gpt2"], test) for test in gpt2.tests]})


GPT2_SEARCH = (
    "GPT-2 trained otherwise (3 layers, 2 heads, vectors of 64, |q| 3, B 32, gradients clipped at norm 1, cosine "
    "decay; one seed, 2,000 test prompts, decisive fraction 0.8). Errors at S1 = 0, 0.8, 1, 1.28 with K' = 5. Adam at "
    "2e-3, 12,000 steps: 0.15, 0.14, 0.14, 0.15. The same with weight decay 0.5 on read-in and read-out, 30,000 steps: "
    "0.07, 0.08, 0.09, 0.11. A read-in that starts at N(0, 0.02^2) as GPT-2's other weights do, 3,000 steps: 0.08, "
    "0.06, 0.06, 0.05; at N(0, 0.004^2): 0.13, 0.09, 0.09, 0.08. In all of these the error is at most 0.001 on unseen "
    "tasks in domain, and at most 0.001 for S1 >= 0.8 with K' = 0.5. Inputs and labels as tokens of their own with the "
    "loss at every decisive position, Adam at 1e-3, weight decay 0.5, 12,000 steps: 0.41, 0.32, 0.31, 0.29, and 0.37 "
    "on unseen tasks in domain.")
THEOREM, NECESSARY, FIGURE = "theorem 3.4", "necessity of (12), one layer", "figure 3 (A), with K' = 0.5"
AT_FIVE = "figure 3 (A), with K' = 5"
ENTRY = Entry(
    "icl.ood", "Out of domain: the coefficient sum of a new pattern", "li2024icl, theorem 3.4, figure 3 (A)", run,
    says="Out of domain the error is small where the coefficient sum of a new pattern is at least 1; GPT-2's deviates "
         "from 0 below that.",
    sizes={scale: Size(**vars(size), sums=SUMS[scale], gpt2=vars(GPT2_SIZES[scale])) for scale, size in SIZES.items()},
    parts=(
        Part("theorem", THEOREM, "The loss is small on new patterns that are combinations of the training ones with "
             "coefficient sums of at least 1 (here at delta 0.13).",
             lambda errors: small_loss_beyond(errors["softmax"]),
             theory=("Theorem 3.4",), constant=OUT_OF_DOMAIN_CONSTANT,
             earlier=(Rule(lambda errors: small_beyond(errors["softmax"]), "The theorem is about the hinge loss."),),
             replies={"holds": "This is theorem 3.4.",
                      "fails": "The constants of m, B, l_tr and T are open, and larger ones lower the loss.",
                      "inconclusive": "The loss at some sum is too near its threshold."}),
        Part("figure", FIGURE, "GPT-2's error is below 0.01 when S1 >= 1 and deviates from 0 when S1 < 1, with "
             "irrelevant patterns as large as in training.", lambda errors: as_drawn(errors["tame"]),
             replies={"holds": "As drawn, if with a smaller K' than section 5 gives.",
                      "fails": "GPT-2's width, start, optimiser, batch size and T are not given; vectors of 64 with "
                               "Adam are one choice.",
                      "inconclusive": "GPT-2's seeds differ too much, or its errors lie too near 0.01, in one "
                                      "direction or the other."}),
        Part("ours", AT_FIVE, "The same at the paper's K' = 5, with the GPT-2 of these settings.",
             lambda errors: as_drawn(errors["gpt2"]),
             earlier=(Rule(lambda errors: [*small_beyond(errors["gpt2"]), *cliff(errors["gpt2"])],
                           "The figure's error deviates from 0 below 1; it need not jump."),
                      Rule(lambda errors: [*small_beyond(errors["gpt2"]), *deviates(errors["gpt2"])],
                           "The figure need not have left 0 at S1 = 0.")),
             replies={"holds": "As drawn.",
                      "fails": "Not reproduced: other steps, weight decay, read-ins and separate tokens for labels "
                               "were tried too (see the note), but the figure's own settings are not given.",
                      "inconclusive": "GPT-2's seeds differ too much."}),
        Part("ours", NECESSARY, "A coefficient sum of at least 1 is also necessary (one layer; the paper's figure "
             "shows GPT-2).", lambda errors: cliff(errors["softmax"]), theory=("Theorem 3.4",),
             measured=("coefficient sum",), constant=OUT_OF_DOMAIN_CONSTANT, tight=True,
             replies={"tight": "Section 5.1 says so of GPT-2, in figure 3 (A).",
                      "not tight": "Theorem 3.4 says that a sum of 1 is enough; that it is needed is an observation on "
                                   "GPT-2.",
                      "inconclusive": "The difference is too near its threshold."}),
        Part("ours", "which sum is needed", "The sum from which on the error is small depends on the starting value: "
             "1 is not special.", lambda errors: at_other_settings.moves(errors["map"]),
             earlier=(Rule(lambda errors: at_other_settings.moves(errors["map"], longest_only=True),
                           "The longer training alone, with 6 seeds, did not decide at base seed 1."),),
             replies={"holds": "Theorem 3.4 takes delta as a constant. A start of delta already reads any pattern, "
                               "whatever its sum; only what training adds reads the sum.",
                      "fails": "The starting values tried are too close to each other.",
                      "inconclusive": "Seeds differ too much in the sum that they need."}),
        Part("ours", "no cliff", "The hinge loss falls at most twice as fast just below 1 as below that.",
             lambda errors: at_other_settings.no_cliff(errors["map"]),
             replies={"holds": "Large neurons read the mean pattern, so the output changes evenly with the sum.",
                      "fails": "At one setting the loss falls faster just below 1, if without a jump.",
                      "inconclusive": "At one setting the seeds differ too much."})),
    notes=(Note("2026-11-18", "The theorem is about the one-layer Transformer; the paper's figure shows GPT-2."),
           Note("2026-11-18", GPT2_SEARCH)))
