"""Claim `selectors.features`: relevant patterns grow in queries and keys, irrelevant ones do not (figure 1, a).

Rule, written before the run: at the end of training the mean norms of W_Q mu and of W_K mu are at least 3 times their
initial values, those of W_Q nu and W_K nu at most 1.5 times. Cost: 4 trainings of 600 steps, about 8 s.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.selectors.mechanism import along
from iclab.papers.selectors.trained import trained_models
from iclab.probes import seed_interval
from iclab.sweeps.store import run_id

GROWS, STAYS = 3.0, 1.5
STATEMENT = "Training promotes the relevant patterns in queries and keys and leaves the irrelevant ones as they were."
PLACE = "li2024selectors, proposition 1, figure 1 (a)"


def checks(norms: dict[str, Float[np.ndarray, "seeds records"]]) -> list[Check]:
    """The rule above, on norms during training."""
    return [Check.of(f"growth of {name} patterns", seed_interval(values[:, -1] / values[:, 0]),
                     *((">=", GROWS) if name.endswith(" relevant") else ("<=", STAYS)))
            for name, values in norms.items()]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    models = trained_models(lab)
    judged = checks({f"{weights} {kind}": along(models, f"{weights} {kind}") for weights in ("query", "key")
                     for kind in ("relevant", "irrelevant")})
    claim = Claim(id="selectors.features", statement=STATEMENT, place=PLACE, checks=judged, conditions=[],
                  settings={"training": to_json(models[0].run)}, seeds=lab.seeds(len(models)),
                  runs=[str(run_id(m.run)) for m in models], scale=lab.scale)
    return Outcome(shown="The factor by which pattern norms grow in queries and keys; the curves are figure 1.",
                   paper="Relevant patterns grow to order sqrt(log M), irrelevant ones stay of order 1.",
                   measured=f"Verdict: {claim.verdict}. "
                            + "; ".join(f"{check.name}: {check.measured:.2f}" for check in judged) + ".",
                   claim=claim, seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("selectors.features", "claim", "Relevant patterns grow in queries and keys", PLACE, run)
