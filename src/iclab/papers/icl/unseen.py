"""Claim `icl.unseen`: trained on M1 tasks that cover every pattern with both labels, the model solves all others.

Rule, written before the run: at decisive fraction 0.8 and 20 examples the error on the 24 unseen tasks is at most
0.005. Cost: 16 trainings of 1,000 steps, about 8 s.
Expect (full scale): below .0005.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.icl.settings import SIZES, in_domain, one_layer_run
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import UNIT, information_floor, model_errors, seed_interval
from iclab.sweeps.store import run_id
from iclab.theory.icl import theorem33_conditions

FRACTIONS = (0.2, 0.4, 0.6, 0.8, 1.0)
JUDGED = 0.8
ERROR_ALLOWED = 0.005
STATEMENT = "Trained on 6 of 30 tasks, the one-layer Transformer errs on none of the other 24."


def checks(errors: Float[np.ndarray, " seeds"]) -> list[Check]:
    """The rule above."""
    return [Check.of(f"error on unseen tasks at decisive fraction {JUDGED:g}",
                     seed_interval(errors, within=UNIT), "<=", ERROR_ALLOWED)]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    size, models = SIZES[lab.scale], one_layer_models(lab, 0.8)
    seeds, tests = lab.seeds(size.seeds), [in_domain(fraction) for fraction in FRACTIONS]

    def compute() -> list:
        return model_errors(models, tests, count=size.prompts, seeds=seeds).tolist()

    errors = np.array(lab.store.recall("icl-unseen", [[m.run for m in models], tests, size.prompts], compute))
    judged = checks(errors[:, FRACTIONS.index(JUDGED)])
    claim = Claim(id="icl.unseen", statement=STATEMENT, place="li2024icl, theorem 3.3", checks=judged,
                  conditions=theorem33_conditions(one_layer_run(0.8, size.steps), in_domain()),
                  settings={"training": to_json(one_layer_run(0.8, size.steps)), "test": to_json(in_domain()),
                            "prompts": size.prompts},
                  seeds=seeds, runs=[str(run_id(m.run)) for m in models], scale=lab.scale)
    plot = error_figure("icl.unseen", "Error on unseen tasks",
                        "In-domain test prompts of 20 examples, irrelevant patterns ten times as large as in training.",
                        [Panel("unseen tasks", FRACTIONS, [Curve("softmax", errors)],
                               floor=[information_floor(test) for test in tests])],
                        "fraction of examples with a pattern of the task")
    return Outcome(
        shown="Error on the 24 tasks outside the training family, against the fraction of test examples that carry one "
              "of the task's patterns.",
        paper="Training on M1 tasks that cover every pattern with both labels gives zero error on all in-domain tasks.",
        measured=f"Verdict: {claim.verdict}. At decisive fraction 0.8 the error is {judged[0].measured:.5f} "
                 f"[{max(judged[0].low, 0):.5f}, {judged[0].high:.5f}]; with fewer decisive examples it rises with "
                 "the information floor.",
        plots=[plot], claim=claim, seeds=seeds, settings=claim.settings)


ENTRY = Entry("icl.unseen", "claim", "Tasks outside the training family, in domain", "li2024icl, theorem 3.3", run)
