"""A claim of your own: `iclab reproduce examples/11_a_claim_of_your_own.py` judges it and writes its report.

Rule: trained with every example decisive and tested with few, Mamba, which forgets, has an error at least 0.02 above
that of the linear Transformer, which does not.
"""

from __future__ import annotations

from typing import Any

from iclab import model_errors, replace, seed_interval
from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, Size, per_seed
from iclab.papers.mamba.settings import one_layer_run, training_prompts
from iclab.probes import information_floor

SIZES = {"quick": Size(seeds=3, steps=500, prompts=1_000), "full": Size(seeds=8, steps=3_000, prompts=10_000)}
DECISIVE = (0.2, 0.4, 0.6, 0.8, 1.0)
STATEMENT = "With few decisive examples, a model that forgets makes more errors than one that does not."


def checks(errors: dict[str, Any]) -> list[Check]:
    """The rule above; the tests show that it fails for two equal models."""
    excess = errors["mamba"][:, 0] - errors["linear"][:, 0]
    return [Check.of("Mamba's error less the linear Transformer's, 0.2 decisive", seed_interval(excess), ">=", 0.02)]


def run(lab: Lab) -> Outcome:
    """Train both on prompts without poison, test with fewer and fewer decisive examples."""
    size, prompts = SIZES[lab.scale], training_prompts(outlier_fraction=0.0)
    tests, seeds, errors = [replace(prompts, decisive_fraction=d) for d in DECISIVE], lab.seeds(size.seeds), {}
    for member in ("mamba", "linear"):
        models = lab.train(per_seed(replace(one_layer_run(member, size.steps), prompts=prompts), seeds))
        errors[member] = model_errors(models, tests, count=size.prompts, seeds=seeds)
    judged = checks(errors)
    settings = {"training": to_json(prompts), "steps": size.steps, "prompts": size.prompts}
    panel = Panel("no poison", DECISIVE, [Curve(member, rates) for member, rates in errors.items()],
                  floor=[information_floor(test) for test in tests])
    plot = error_figure("mine.forgetting", "What forgetting costs", "", [panel], "fraction of decisive examples")
    claim = Claim(id="mine.forgetting", statement=STATEMENT, place="ours", checks=judged, conditions=[], runs=[],
                  settings=settings, seeds=seeds, scale=lab.scale)
    return Outcome(shown="Error against the fraction of decisive examples.", paper="Nothing: the question is ours.",
                   measured=judged[0].words, plots=[plot], claim=claim, settings=settings, seeds=seeds)


ENTRY = Entry("mine.forgetting", "claim", "What forgetting costs", "ours", run)
