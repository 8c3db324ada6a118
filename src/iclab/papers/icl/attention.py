"""Claim `icl.attention`: attention concentrates on the examples that share the query's pattern (figure 2 B).

Rule, set after a first look at training: after training at least 0.8 of the attention is on these examples, in and out
of domain (a = b = 0.64), at decisive fraction 0.6. (By the corollary it tends to 1.) Cost: no extra training.
Expect: .99 in domain, .89 out of domain.
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

SHARE = 0.8
STATEMENT = "After training, attention lies on the context examples with the query's pattern, in and out of domain."


def checks(shares: dict[str, Float[np.ndarray, " seeds"]]) -> list[Check]:
    """The rule above."""
    return [Check.of(f"attention on the same pattern, {name}", seed_interval(values, within=UNIT), ">=",
                     SHARE) for name, values in shares.items()]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    models = one_layer_models(lab, 0.6)
    shares = {name: along(models, f"attention/{name}") for name in PLACES}
    claim = Claim(id="icl.attention", statement=STATEMENT, place="li2024icl, corollary 4.3, figure 2 (B)",
                  checks=checks({name: values[:, -1] for name, values in shares.items()}), conditions=[],
                  settings={"training": to_json(one_layer_run(0.6, SIZES[lab.scale].steps))},
                  seeds=lab.seeds(len(models)), runs=[str(run_id(m.run)) for m in models], scale=lab.scale)
    return Outcome(
        shown="Each check with a 95 % interval over seeds; figure 2 shows the curves.",
        paper="The attention on examples with the query's pattern tends to 1.",
        measured=f"Verdict: {claim.verdict}. From {shares['in domain'][:, 0].mean():.2f} before training it rises to "
                 f"{shares['in domain'][:, -1].mean():.3f} in domain and {shares['out of domain'][:, -1].mean():.3f} "
                 "out of domain.", claim=claim, seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("icl.attention", "claim", "Attention concentrates on the query's pattern",
              "li2024icl, corollary 4.3, figure 2 (B)", run)
