"""Claim `mamba.position`: outliers next to the query hurt Mamba most; the linear Transformer ignores their position.

The paper does not give its label rule; each model is judged under the one that comes nearest to its paper row: flip for
Mamba, target for the linear Transformer. Rule, at three times the training scale: Mamba's accuracy with outliers far
from the query is at least that with outliers anywhere (less 0.005), which is above that with outliers close; the linear
Transformer's three accuracies differ by at most 0.02. Cost: no extra training.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.mamba.deep import DEEP, deep_run
from iclab.papers.mamba.settings import attacked_prompts
from iclab.papers.mamba.table1 import FRACTION, measure, percent
from iclab.probes import seed_interval

RULES = {"mamba": "flip", "linear": "target"}
FACTOR = 3.0
SLACK, FLAT = 0.005, 0.02
STATEMENT = ("Mamba is most accurate with outliers far from the query and least with outliers close to it; the linear "
             "Transformer ignores their position.")


def checks(mamba: Float[np.ndarray, "seeds 3"], linear: Float[np.ndarray, "seeds 3"]) -> list[Check]:
    """The rule above, on accuracies far, random, close."""
    return [Check.of("Mamba: far less random", seed_interval(mamba[:, 0] - mamba[:, 1]), ">=", -SLACK),
            Check.of("Mamba: random less close", seed_interval(mamba[:, 1] - mamba[:, 2]), ">", 0.0),
            Check.of("linear Transformer: largest less least of the three",
                     seed_interval(linear.max(axis=1) - linear.min(axis=1)), "<=", FLAT)]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    accuracies, size = measure(lab), DEEP[lab.scale]
    mamba, linear = (accuracies.at(model, rule, FACTOR) for model, rule in RULES.items())
    other = {model: accuracies.at(model, rule, FACTOR) for model, rule in (("mamba", "target"), ("linear", "flip"))}

    def row(values: Float[np.ndarray, "seeds 3"]) -> str:
        return " / ".join(percent(values[:, i]) for i in range(3)) + " %"

    claim = Claim(id="mamba.position", statement=STATEMENT, place="li2025mamba, table 1", checks=checks(mamba, linear),
                  conditions=[], settings={"training": to_json(deep_run("mamba", size.steps)),
                                           "test": to_json(attacked_prompts("flip", FRACTION, FACTOR)),
                                           "prompts": size.prompts},
                  seeds=lab.seeds(size.seeds), runs=accuracies.runs, scale=lab.scale,
                  notes=[f"Under the other label rule, far / random / close: Mamba (target) {row(other['mamba'])}, in "
                         f"the same order; the linear Transformer (flip) {row(other['linear'])}, which is not flat."])
    return Outcome(
        shown="Each check with a 95 % interval over seeds; the accuracies are table 1.",
        paper="Mamba is very sensitive to the position of outliers, because gates decay with distance and outliers "
              "near the query push the clean examples away from it; the linear Transformer is much less affected.",
        measured=f"Verdict: {claim.verdict}. Far / random / close: Mamba under flip {row(mamba)}, linear Transformer "
                 f"under target {row(linear)}. Under flip the linear Transformer is not flat.",
        claim=claim, seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("mamba.position", "claim", "The position of outliers matters to Mamba, not to the linear Transformer",
              "li2025mamba, table 1", run)
