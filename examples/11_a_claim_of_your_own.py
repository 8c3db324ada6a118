"""A claim of your own: `iclab reproduce examples/11_a_claim_of_your_own.py` judges it and writes its report.

Rule: trained with every example decisive and tested with few, Mamba, which forgets, has an error at least 0.02 above
that of the linear Transformer, which does not.
"""

from __future__ import annotations

from typing import Any

from iclab import replace
from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part, Size
from iclab.lab.estimates import Difference
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.settings import one_layer_run, training_prompts
from iclab.probes import information_floor

DECISIVE = (0.2, 0.4, 0.6, 0.8, 1.0)


def forgetting(errors: dict[str, Any]) -> list[Check]:
    """The rule above; the tests show that it fails for two equal models."""
    cost = Difference(errors["mamba"][:, 0], errors["linear"][:, 0])
    return [Check("Mamba's error less the linear Transformer's, 0.2 decisive", cost, ">=", 0.02)]


def run(lab: Lab) -> Findings:
    """Train both on prompts without poison, test with fewer and fewer decisive examples."""
    prompts = training_prompts(outlier_fraction=0.0)
    tests, errors = [replace(prompts, decisive_fraction=d) for d in DECISIVE], {}
    for member in ("mamba", "linear"):
        models = lab.train_seeds(replace(one_layer_run(member, lab.size.steps), prompts=prompts))
        errors[member] = lab.errors(models, tests)
    panel = Panel("no poison", DECISIVE, [Curve(member, rates) for member, rates in errors.items()],
                  floor=[information_floor(test) for test in tests])
    plot = error_figure("mine.forgetting", "What forgetting costs", "", [panel], "fraction of decisive examples")
    return Findings("Error against the fraction of decisive examples.", measured=errors, plots=[plot])


ENTRY = Entry(
    "mine.forgetting", "What forgetting costs", "ours", run,
    says="With few decisive examples, a model that forgets makes more errors than one that does not.",
    sizes={"quick": Size(seeds=3, steps=500, prompts=1_000), "full": Size(seeds=8, steps=3_000, prompts=10_000)},
    parts=(Part("ours", "the cost of forgetting", "At 0.2 decisive Mamba errs more, by at least 0.02.", forgetting),))
