"""Claim `selectors.decode`: the MLP decides by the labels that attention brings, not by the features (figure 1, b).

Rule, written before the run, over the neurons that vote for the truth: at the end of training the label part of a
neuron's input exceeds its feature part in at least half of the cases; with the label part alone the model errs on at
most 0.01 of the prompts, with the feature part alone on at least 0.3. Cost: none beyond `selectors.features`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.selectors.mechanism import WATCHED, along
from iclab.papers.selectors.trained import trained_models
from iclab.probes import UNIT, seed_interval
from iclab.sweeps.store import run_id

SEEN = ("share", "error of labels", "error of features", "labels", "features", "share after values",
        "error of features after values")
HALF, RIGHT, WRONG = 0.5, 0.01, 0.3
STATEMENT = "In a constant fraction of the neurons the label part exceeds the feature part, and it decides the output."
PLACE = "li2024selectors, proposition 2, figure 1 (b)"


def checks(probed: dict[str, Float[np.ndarray, "seeds records"]]) -> list[Check]:
    """The rule above, on the probe's values during training."""
    ends = {name: seed_interval(probed[name][:, -1], within=UNIT)
            for name in ("share", "error of labels", "error of features")}
    return [Check.of("share of neurons whose label part exceeds the feature part", ends["share"], ">=", HALF),
            Check.of("error with the label part alone", ends["error of labels"], "<=", RIGHT),
            Check.of("error with the feature part alone", ends["error of features"], ">=", WRONG)]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    models = trained_models(lab)
    probed = {name: along(models, name) for name in SEEN}
    judged = checks(probed)
    claim = Claim(id="selectors.decode", statement=STATEMENT, place=PLACE, checks=judged, conditions=[],
                  settings={"training": to_json(models[0].run), "prompts watched": WATCHED},
                  seeds=lab.seeds(len(models)), runs=[str(run_id(m.run)) for m in models], scale=lab.scale)
    return Outcome(
        shown="The two parts of the neurons' input, and what the model would answer with either one alone.",
        paper="The label part exceeds the feature part in a constant fraction of the neurons; the others stay near "
              "their initial values.",
        measured=f"Verdict: {claim.verdict}. The label part is the larger in {judged[0].measured:.2f} of the neurons "
                 f"that vote for the truth; on average it is {probed['labels'][:, -1].mean():.2f}, the feature part "
                 f"{probed['features'][:, -1].mean():.2f}. With the label part alone the model errs on "
                 f"{judged[1].measured:.4f} of the prompts, with the feature part alone on {judged[2].measured:.2f}. "
                 "The proposition splits the coordinates after W_V; split there, the label part is the larger in "
                 f"{probed['share after values'][:, -1].mean():.2f} of the neurons, and the feature part alone errs on "
                 f"{probed['error of features after values'][:, -1].mean():.2f} of the prompts: training mixes these "
                 "coordinates.",
        claim=claim, seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("selectors.decode", "claim", "The label part decides the output", PLACE, run)
