"""Claim `icl.neurons`: large neurons read the mean relevant pattern, and the label with their output weight's sign.

Rule, written before the run: after training, over the half of the neurons with the largest rows of W_O W_V, the mean
cosine of the label part with +-q (the sign of the neuron's output weight) is at least 0.95, and the median cosine of
the input part with the mean pattern is at least 0.8. Cost: no extra training. Expect: .998 and .91.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.icl.mechanism import along
from iclab.papers.icl.settings import SIZES, one_layer_run
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import seed_interval
from iclab.sweeps.store import run_id

LABEL_COSINE, PATTERN_COSINE = 0.95, 0.8
COSINES = (-1.0, 1.0)
STATEMENT = ("After training the large neurons point along the mean relevant pattern, and along +q or -q according to "
             "the sign of their output weight.")
Parts = dict[str, Float[np.ndarray, "seeds neurons"]]


def angles(parts: Parts) -> tuple[Float[np.ndarray, " seeds"], Float[np.ndarray, " seeds"]]:
    """Mean cosine with +-q and median cosine with the mean pattern, over the larger half of the neurons, by seed."""
    neurons = parts["norm x"].shape[1]
    size = np.hypot(parts["norm x"], parts["norm y"])
    sign = np.where(np.arange(neurons) < neurons // 2, 1.0, -1.0)
    large = size >= np.median(size, axis=1, keepdims=True)
    label = np.array([(cosines * sign)[mask].mean() for cosines, mask in zip(parts["cosine y"], large, strict=True)])
    return label, np.array([np.median(cosines[mask]) for cosines, mask in zip(parts["cosine x"], large, strict=True)])


def checks(parts: Parts) -> list[Check]:
    """The rule above."""
    label, pattern = angles(parts)
    return [Check.of("large neurons: cosine of the label part with +-q", seed_interval(label, within=COSINES), ">=",
                     LABEL_COSINE),
            Check.of("large neurons: cosine of the input part with the mean pattern",
                     seed_interval(pattern, within=COSINES), ">=", PATTERN_COSINE)]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    models = one_layer_models(lab, 0.6)
    history = {name: along(models, name) for name in ("norm x", "norm y", "cosine x", "cosine y")}
    before, after = ({name: values[:, i] for name, values in history.items()} for i in (0, -1))
    judged = checks(after)
    claim = Claim(id="icl.neurons", statement=STATEMENT, place="li2024icl, proposition 4.5, figure 2 (C, D)",
                  checks=judged, conditions=[],
                  settings={"training": to_json(one_layer_run(0.6, SIZES[lab.scale].steps))},
                  seeds=lab.seeds(len(models)), runs=[str(run_id(m.run)) for m in models], scale=lab.scale)
    label, pattern = angles(before)
    return Outcome(
        shown="Each check with a 95 % interval over seeds; figure 2 shows the neurons.",
        paper="Except for some neurons, the input part of a neuron grows towards the mean pattern and its label part "
              "towards q or -q.",
        measured=f"Verdict: {claim.verdict}. In the larger half of the neurons the label part has a cosine of "
                 f"{judged[0].measured:.3f} with +-q (before training {label.mean():.2f}), the input part a cosine of "
                 f"{judged[1].measured:.2f} with the mean pattern (before {pattern.mean():.2f}).",
        claim=claim, seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("icl.neurons", "claim", "What the large neurons read", "li2024icl, proposition 4.5, figure 2 (C, D)", run)
