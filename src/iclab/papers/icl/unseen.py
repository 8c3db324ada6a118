"""Claim `icl.unseen`: trained on M1 tasks that cover every pattern with both labels, the model solves all others.

Rule, written before the run. Theorem 3.3: at decisive fraction 0.8 and 20 examples the error on the 24 unseen tasks is
at most 0.005.
Cost: 16 trainings of 1,000 steps, about 2 s.
"""

from __future__ import annotations

from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part
from iclab.lab.estimates import Rate
from iclab.lab.laboratory import Lab
from iclab.papers.icl.settings import SIZES, in_domain
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import information_floor

FRACTIONS = (0.2, 0.4, 0.6, 0.8, 1.0)
JUDGED = 0.8
ERROR_ALLOWED = 0.005


def checks(error: Rate) -> list[Check]:
    """The rule above."""
    return [Check(f"error on unseen tasks at decisive fraction {JUDGED:g}", error, "<=", ERROR_ALLOWED)]


def run(lab: Lab) -> Findings:
    """Measure the error at every decisive fraction."""
    models, tests = one_layer_models(lab, JUDGED), [in_domain(fraction) for fraction in FRACTIONS]
    errors = lab.errors(models, tests)
    plot = error_figure("icl.unseen", "Error on unseen tasks",
                        "In-domain test prompts of 20 examples, irrelevant patterns ten times as large as in training.",
                        [Panel("unseen tasks", FRACTIONS, [Curve("softmax", errors)],
                               floor=[information_floor(test) for test in tests])],
                        "fraction of examples with a pattern of the task")
    return Findings(
        shown="Error on the 24 tasks outside the training family, against the fraction of test examples that carry one "
              "of the task's patterns.",
        measured=Rate(errors[:, FRACTIONS.index(JUDGED)], lab.size.prompts),
        numbers="Error: " + ", ".join(f"{error:.4f} at decisive fraction {fraction:g}" for fraction, error in
                                      zip(FRACTIONS, errors.mean(axis=0), strict=True)) + ".",
        plots=[plot], specs=[(models[0].run, in_domain(JUDGED))])


ENTRY = Entry(
    "icl.unseen", "Tasks outside the training family, in domain", "li2024icl, theorem 3.3", run,
    says="Trained on 6 of 30 tasks that show every pattern with both labels, the one-layer Transformer errs on none of "
         "the other 24.",
    sizes=SIZES, parts=(
        Part("theorem", "theorem 3.3", "After training on M1 tasks that show every pattern equally often with either "
             "label, the loss is small on every in-domain task.", checks, theory=("Theorem 3.3",)),))
