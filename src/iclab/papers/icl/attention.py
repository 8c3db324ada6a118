"""Claim `icl.attention`: attention concentrates on the examples that share the query's pattern (figure 2 B).

Rules, set after a first look at training: after training at least 0.8 of the attention is on these examples, at
decisive fraction 0.6. Corollary 4.3, by which it tends to 1: in and out of domain. Figure 2 (B): out of domain
(a = b = 0.64). Cost: no extra training.
"""

from __future__ import annotations

from iclab.lab.claims import Check
from iclab.lab.entries import Checks, Entry, Findings, Part
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab
from iclab.papers.icl.mechanism import PLACES, along, watched_specs
from iclab.papers.icl.settings import OUT_OF_DOMAIN_CONSTANT, SIZES
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import UNIT

SHARE = 0.8


def rule(*places: str) -> Checks:
    """Most attention is on the query's pattern."""
    def checks(shares: dict[str, Mean]) -> list[Check]:
        return [Check(f"attention on the same pattern, {place}", shares[place], ">=", SHARE) for place in places]

    return checks


def run(lab: Lab) -> Findings:
    """Follow the attention during training."""
    models = one_layer_models(lab, 0.6)
    shares = {name: along(models, f"attention/{name}") for name in PLACES}
    return Findings(
        shown="Each check with its interval over seeds; figure 2 shows the curves.",
        measured={name: Mean(values[:, -1], UNIT) for name, values in shares.items()}, specs=watched_specs(models),
        numbers="Attention on the query's pattern before and after training: " + "; ".join(
            f"{name} {values[:, 0].mean():.2f}, {values[:, -1].mean():.3f}" for name, values in shares.items()) + ".")


ENTRY = Entry(
    "icl.attention", "Attention concentrates on the query's pattern", "li2024icl, corollary 4.3, figure 2 (B)", run,
    says="After training, attention lies on the context examples with the query's pattern, in and out of domain.",
    sizes=SIZES, parts=(
        Part("theorem", "corollary 4.3", "The attention on examples with the query's pattern tends to 1, in and out of "
             "domain.", rule(*PLACES), theory=("Corollary 4.3",), constant=OUT_OF_DOMAIN_CONSTANT),
        Part("figure", "figure 2 (B)", "After training, attention concentrates on examples with the query's pattern, "
             "out of domain.", rule("out of domain"))))
