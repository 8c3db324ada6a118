"""Claim `icl.norms`: queries and keys grow along the relevant patterns until these dominate (figure 2 A).

Rules. Proposition 4.1, in and out of domain: during training the part of W_Q p and of W_K p along the token's pattern
at least doubles (17), and at the end it is at least 0.9 of the whole (18, 19). Figure 2 (A): both, out of domain. Test
prompts have irrelevant patterns ten times as large as in training (K' 5). Cost: no extra training.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab
from iclab.papers.icl.mechanism import PLACES, along, watched_specs
from iclab.papers.icl.settings import SIZES
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import UNIT

GROWTH, SHARE = 2.0, 0.9
LETTERS = ("query", "key")


class Norms(NamedTuple):
    """Norms of a vector, and of its part along the token's pattern, during training."""

    whole: Float[np.ndarray, "seeds records"]
    part: Float[np.ndarray, "seeds records"]


ByPlace = dict[tuple[str, str], Norms]
"""Of queries and keys, by domain."""


def growth(norms: ByPlace, places: Iterable[str] = PLACES) -> list[Check]:
    """The part along the pattern grows."""
    return [Check(f"{vector}, {place}: growth along its pattern", Mean(part[:, -1] / part[:, 0]), ">=", GROWTH)
            for (vector, place), (_, part) in norms.items() if place in places]


def shares(norms: ByPlace, places: Iterable[str] = PLACES) -> list[Check]:
    """The part along the pattern is most of the whole."""
    return [Check(f"{vector}, {place}: part along its pattern", Mean(part[:, -1] / whole[:, -1], UNIT), ">=", SHARE)
            for (vector, place), (whole, part) in norms.items() if place in places]


def figure(norms: ByPlace) -> list[Check]:
    """What figure 2 (A) shows."""
    return [check for rule in (growth, shares) for check in rule(norms, ("out of domain",))]


def run(lab: Lab) -> Findings:
    """Follow the norms during training."""
    models = one_layer_models(lab, 0.6)
    norms = {(vector, place): Norms(*(along(models, f"{vector} {what}/{place}") for what in ("norm",
                                                                                            "along its pattern")))
             for vector in LETTERS for place in PLACES}
    whole, part = norms["query", "in domain"]
    return Findings(
        shown="Each check with its interval over seeds; figure 2 shows the curves.", measured=norms,
        numbers=f"In domain a query's part along its pattern grows from {part[:, 0].mean():.2f} to "
                f"{part[:, -1].mean():.2f} of a norm of {whole[:, -1].mean():.2f}.", specs=watched_specs(models))


ENTRY = Entry(
    "icl.norms", "Queries and keys grow along the relevant patterns", "li2024icl, proposition 4.1, figure 2 (A)", run,
    says="Queries and keys grow along the relevant patterns until these dominate.", sizes=SIZES, parts=(
        Part("theorem", "proposition 4.1 (17)", "Queries and keys grow along the token's relevant pattern.", growth,
             theory=("Proposition 4.1",)),
        Part("theorem", "proposition 4.1 (18), (19)", "Along all other patterns, relevant or not, queries and keys "
             "stay small.", shares, theory=("Proposition 4.1",)),
        Part("figure", "figure 2 (A)", "Out of domain the norms grow during training, and the part along the relevant "
             "pattern is close to the whole.", figure)))
