"""Claim `icl.ood`, its one-layer part: the out-of-domain error as the coefficient sum S1 of a new pattern passes 1.

Rule, written before the run, at decisive fraction 0.6 in training and test: the largest error at S1 >= 1 is at most
0.01; and the condition is necessary, the error at 0.8 exceeds that at 1 by at least 0.01.
Cost: no training of its own, about 3 s. Expect: .035 / .019 / .008 / .002 / .001 at -.5 / 0 / .5 / .8 / 1.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.papers.claims import Check, Claim
from iclab.papers.entries import Entry, Lab, Outcome
from iclab.papers.icl.settings import LARGEST_SUM, SIZES, one_layer_run, out_of_domain
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import information_floor, model_errors, seed_interval
from iclab.runs.store import run_id
from iclab.specs import to_json

SUMS = (-1.0, -0.5, 0.0, 0.5, 0.8, 1.0, 1.1, float(f"{LARGEST_SUM:.2f}"))
DECISIVE = 0.6
ERROR_ALLOWED, CLIFF = 0.01, 0.01
STATEMENT = ("Out of domain the error falls to about 0 as the coefficient sum of a new pattern passes 1, and not "
             "before.")


def checks(errors: Float[np.ndarray, "seeds sums"]) -> list[Check]:
    """The rule above."""
    inside = [i for i, total in enumerate(SUMS) if total >= 1]
    worst = inside[int(np.argmax(errors[:, inside].mean(axis=0)))]
    below = errors[:, SUMS.index(0.8)] - errors[:, SUMS.index(1.0)]
    return [Check.of(f"largest error at S1 >= 1 (at {SUMS[worst]:g})", seed_interval(errors[:, worst]), "<=",
                     ERROR_ALLOWED),
            Check.of("error at S1 = 0.8 less that at 1", seed_interval(below), ">=", CLIFF)]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    size, models = SIZES[lab.scale], one_layer_models(lab, DECISIVE)
    seeds, tests = lab.seeds(size.seeds), [out_of_domain(DECISIVE, total) for total in SUMS]

    def compute() -> list:
        return model_errors(models, tests, count=size.prompts, seeds=seeds).tolist()

    errors = np.array(lab.store.recall("icl-ood", [[m.run for m in models], tests, size.prompts], compute))
    judged = checks(errors)
    claim = Claim(id="icl.ood", statement=STATEMENT, place="li2024icl, theorem 3.4, figure 3 (A)", checks=judged,
                  conditions=[], settings={"training": to_json(one_layer_run(DECISIVE, size.steps)),
                                           "test": to_json(out_of_domain(DECISIVE)), "prompts": size.prompts},
                  seeds=seeds, runs=[str(run_id(m.run)) for m in models], scale=lab.scale,
                  notes=["The paper's figure 3 (A) is GPT-2's; this is the one-layer Transformer, of which the theorem "
                         "speaks."])
    plot = curve_figure("icl.ood", "Out-of-domain error against the coefficient sum of a new pattern",
                        "One-layer Transformer, 20 examples, decisive fraction 0.6; the theorem asks for S1 >= 1.",
                        [Panel("one-layer Transformer", SUMS, [Curve("softmax", errors)],
                               floor=[information_floor(test) for test in tests])],
                        "S1, coefficient sum of the first new pattern", "error")
    numbers = ", ".join(f"{errors[:, i].mean():.4f} at {total:g}" for i, total in enumerate(SUMS))
    return Outcome(
        shown="Error when test prompts are made of patterns that never occurred in training, combinations of the "
              "training patterns, against the coefficient sum of the first of them.",
        paper="The error is below 0.01 when S1 >= 1 and leaves 0 when S1 < 1.",
        measured=f"Verdict: {claim.verdict}. Error by S1: {numbers}. It is small above 1, as the theorem says; but it "
                 "falls smoothly, and nothing happens at 1: the condition is sufficient, not necessary.",
        plots=[plot], claim=claim, seeds=seeds, settings=claim.settings)


ENTRY = Entry("icl.ood", "claim", "Out of domain: the coefficient sum of a new pattern",
              "li2024icl, theorem 3.4, figure 3 (A)", run)
