"""Claim `icl.norms`: queries and keys grow along the relevant patterns until these dominate (figure 2 A).

Rules. Proposition 4.1, in and out of domain: during training the part of W_Q p and of W_K p along the token's pattern
at least doubles (17), and at the end it is at least 0.9 of the whole (18, 19). Figure 2 (A): both, out of domain. Test
prompts have irrelevant patterns ten times as large as in training (K' 5). Cost: no extra training.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.lab.claims import Check
from iclab.lab.entries import Checks, Entry, Findings, Part
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab
from iclab.papers.icl.mechanism import PLACES, along, watched_specs
from iclab.papers.icl.settings import SIZES
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import UNIT

LEAST = {"growth along its pattern": 2.0, "part along its pattern": 0.9}

Norms = Float[np.ndarray, "seeds records"]


def estimates(whole: Norms, part: Norms) -> dict[str, Mean]:
    """Growth and final share of the part along the pattern."""
    return dict(zip(LEAST, (Mean(part[:, -1] / part[:, 0]), Mean(part[:, -1] / whole[:, -1], UNIT)), strict=True))


def rule(*names: str, places: tuple[str, ...] = tuple(PLACES)) -> Checks:
    """Queries and keys grow, or lie, along their pattern."""
    return lambda norms: [Check(f"{vector}, {place}: {name}", values[name], ">=", LEAST[name]) for name in names
                          for (vector, place), values in norms.items() if place in places]


def run(lab: Lab) -> Findings:
    """Follow the norms during training."""
    models = one_layer_models(lab, 0.6)
    norms = {(vector, place): [along(models, f"{vector} {what}/{place}") for what in ("norm", "along its pattern")]
             for vector in ("query", "key") for place in PLACES}
    whole, part = norms["query", "in domain"]
    return Findings(
        shown="Each check with its interval over seeds; figure 2 shows the curves.", specs=watched_specs(models),
        measured={key: estimates(*values) for key, values in norms.items()},
        numbers=f"In domain a query's part along its pattern grows from {part[:, 0].mean():.2f} to "
                f"{part[:, -1].mean():.2f} of a norm of {whole[:, -1].mean():.2f}.")


ENTRY = Entry(
    "icl.norms", "Queries and keys grow along the relevant patterns", "li2024icl, proposition 4.1, figure 2 (A)", run,
    says="Queries and keys grow along the relevant patterns until these dominate.", sizes=SIZES, parts=(
        Part("theorem", "proposition 4.1 (17)", "Queries and keys grow along the token's relevant pattern.",
             rule("growth along its pattern"), theory=("Proposition 4.1",)),
        Part("theorem", "proposition 4.1 (18), (19)", "Along all other patterns, relevant or not, queries and keys "
             "stay small.", rule("part along its pattern"), theory=("Proposition 4.1",)),
        Part("figure", "figure 2 (A)", "Out of domain the norms grow during training, and the part along the relevant "
             "pattern is close to the whole.", rule(*LEAST, places=("out of domain",)))))
