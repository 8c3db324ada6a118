"""Claim `icl.norms`: queries and keys grow along the relevant patterns until these dominate (figure 2 A).

Rule: during training the part of W_Q p and of W_K p along the token's pattern at least doubles, in and out of domain;
and at the end it is at least 0.9 of the whole. Test prompts have irrelevant patterns ten times as large as in training
(K' 5). Cost: no extra training.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.icl.mechanism import PLACES, along
from iclab.papers.icl.settings import SIZES, one_layer_run
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import UNIT, seed_interval
from iclab.sweeps.store import run_id

GROWTH, SHARE = 2.0, 0.9
LETTERS = ("query", "key")
STATEMENT = "Queries and keys grow along the relevant patterns until these dominate."
Norms = dict[tuple[str, str], tuple[Float[np.ndarray, "seeds records"], Float[np.ndarray, "seeds records"]]]


def checks(norms: Norms) -> list[Check]:
    """The rule above, on norms of the whole and of the part along the pattern."""
    judged = []
    for (vector, place), (whole, part) in norms.items():
        judged += [Check.of(f"{vector}, {place}: growth along its pattern", seed_interval(part[:, -1] / part[:, 0]),
                            ">=", GROWTH),
                   Check.of(f"{vector}, {place}: part along its pattern",
                            seed_interval(part[:, -1] / whole[:, -1], within=UNIT), ">=", SHARE)]
    return judged


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    models = one_layer_models(lab, 0.6)
    norms: Norms = {(vector, place): (along(models, f"{vector} norm/{place}"),
                                      along(models, f"{vector} along its pattern/{place}"))
                    for vector in LETTERS for place in PLACES}
    judged = checks(norms)
    claim = Claim(id="icl.norms", statement=STATEMENT, place="li2024icl, proposition 4.1, figure 2 (A)", checks=judged,
                  conditions=[], settings={"training": to_json(one_layer_run(0.6, SIZES[lab.scale].steps))},
                  seeds=lab.seeds(len(models)), runs=[str(run_id(m.run)) for m in models], scale=lab.scale)
    whole, part = norms["query", "in domain"]
    return Outcome(
        shown="Each check with a 95 % interval over seeds; figure 2 shows the curves.",
        paper="The norms grow during training, and the part along the relevant pattern is close to the whole.",
        measured=f"Verdict: {claim.verdict}. In domain a query's part along its pattern grows from "
                 f"{part[:, 0].mean():.2f} to {part[:, -1].mean():.2f} of a norm of {whole[:, -1].mean():.2f}. The "
                 "rest is irrelevant patterns: their weights stay at their initial values, but test prompts contain "
                 "them up to five times as large as the relevant ones.",
        claim=claim, seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("icl.norms", "claim", "Queries and keys grow along the relevant patterns",
              "li2024icl, proposition 4.1, figure 2 (A)", run)
