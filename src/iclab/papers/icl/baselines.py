"""Claim `icl.baselines`: the trained Transformer against classical learners fitted on each context (figure 4).

Rule, written before the run, at 20 examples. Figure 4 (B): out of domain with decisive fraction 0.6, the Transformer's
error is at least 0.02 below that of each of the five learners, on the same prompts. Reported but not judged: its
advantage at 0.8, which the paper calls not significant. Cost: no extra training, 9,400 small fits, about 12 s.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from iclab.lab.claims import Check, worst
from iclab.lab.entries import Entry, Findings, Note, Part, Size, Table
from iclab.lab.estimates import Difference, shown
from iclab.lab.laboratory import Lab
from iclab.papers.icl import settings
from iclab.papers.icl.settings import in_domain, out_of_domain
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import measure_error, model_errors
from iclab.probes.baselines import baselines, classifier_predictor
from iclab.training import Trained

JUDGED = 20
WHERE = {"in domain": in_domain, "out of domain": out_of_domain}
FRACTIONS = (0.6, 0.8)
FITTED = {"tiny": ((20,), 5, 5), "quick": ((20,), 60, 10), "full": ((10, 20, 40), 125, 10)}
"""Numbers of examples; prompts per seed that learners are fitted on, at the judged setting and elsewhere."""
SIZES = {scale: Size(**vars(size), **dict(zip(("lengths", "judged", "elsewhere"), FITTED[scale], strict=True)))
         for scale, size in settings.SIZES.items()}
MARGIN = 0.02
ICL, PAIRED = "softmax", "softmax on the same prompts"

Errors = dict[str, dict[str, Float[np.ndarray, " seeds"]]]
"""By setting and learner."""


def setting(where: str, fraction: float, length: int) -> str:
    """The name of a setting."""
    return f"{where}, decisive fraction {fraction:g}, {length} examples"


HARD = setting("out of domain", 0.6, JUDGED)


def fit(models: Sequence[Trained], seeds: Sequence[int], lengths: Sequence[int], judged: int, elsewhere: int,
        prompts: int) -> Errors:
    """Errors of the model (at the judged setting also on the learners' prompts) and of every learner."""
    errors: Errors = {}
    for where, fraction, length in ((w, f, n) for w in WHERE for f in FRACTIONS for n in lengths):
        name, test = setting(where, fraction, length), WHERE[where](fraction, prompt_length=length)
        count = judged if name == HARD else elsewhere
        # One after another: small fits spend their time in Python, where only one thread runs at a time.
        learners = {learner: [classifier_predictor(classifier)] * len(seeds)
                    for learner, classifier in baselines().items()}
        if name == HARD:
            learners[PAIRED] = list(models)  # type: ignore[assignment]
        errors[name] = {ICL: model_errors(models, [test], count=prompts, seeds=seeds)[:, 0]} | {
            learner: np.array([measure_error(predictor, test, count=count, seed=seed).error
                               for predictor, seed in zip(predictors, seeds, strict=True)])
            for learner, predictors in learners.items()}
    return errors


def measure(lab: Lab) -> Errors:
    """All errors of this scale."""
    size, models = SIZES[lab.scale], one_layer_models(lab, 0.8)
    return lab.remember(fit, models, lab.seeds(len(models)), size.lengths, size.judged, size.elsewhere, size.prompts)


def advantages(errors: dict[str, Float[np.ndarray, " seeds"]], ours: str = ICL, prompts: int | None = None
               ) -> list[tuple[str, Difference]]:
    """By how much every learner errs more than the Transformer."""
    return [(name, Difference(errors[name], errors[ours], prompts)) for name in baselines()]


def checks(measured: tuple[Errors, int]) -> list[Check]:
    """The rule above; beside the errors, on how many prompts they were measured."""
    errors, prompts = measured
    return [worst("out of domain, 0.6: error of {} less the Transformer's", advantages(errors[HARD], PAIRED, prompts),
                  ">=", MARGIN)]


def run(lab: Lab) -> Findings:
    """Fit all learners."""
    errors, models = measure(lab), one_layer_models(lab, 0.8)
    rows = [(where, f"{fraction:g}", *(f"{errors[setting(where, fraction, JUDGED)][name].mean():.3f}"
                                       for name in (ICL, *baselines()))) for where in WHERE for fraction in FRACTIONS]

    def advantage(where: str) -> str:
        best, difference = min(advantages(errors[setting(where, 0.8, JUDGED)]), key=lambda item: item[1].value)
        mean, low, high = shown(difference)
        return f"{mean:.3f} [{low:.3f}, {high:.3f}] {where} (over {best})"

    hard = errors[HARD]
    best = min(baselines(), key=lambda name: hard[name].mean())
    return Findings(
        shown="Error of the trained one-layer Transformer beside logistic regression, two SVMs and two "
              "nearest-neighbour rules, each fitted on the context examples alone; figure 4 shows the curves.",
        measured=(errors, lab.size.judged),
        tables=[Table("icl.baselines", f"Errors with {JUDGED} examples, mean over seeds",
                      ("test", "decisive fraction", "Transformer", *baselines()), rows)],
        numbers=f"Out of domain at 0.6 with {JUDGED} examples, the Transformer's error is {hard[ICL].mean():.3f}, that "
                f"of the best learner ({best}) {hard[best].mean():.3f}. At 0.8 its advantage is "
                f"{advantage('in domain')} and {advantage('out of domain')}.",
        specs=[(models[0].run, out_of_domain(0.6))])


ENTRY = Entry(
    "icl.baselines", "Against classical learners fitted on the context", "li2024icl, figure 4", run,
    says="Out of domain with many irrelevant examples, in-context learning errs less than classical learners fitted on "
         "the context; with few, it has no clear advantage.",
    sizes=SIZES, parts=(
        Part("figure", "figure 4 (B)", "With decisive fraction 0.6, in-context learning reaches a small error with the "
             "fewest examples.", checks),),
    notes=(Note("2026-11-18", "A learner fitted on the context does not know the patterns; the Transformer has seen "
                "them, or their span, in training. Irrelevant patterns are up to five times as large as relevant "
                "ones."),))
