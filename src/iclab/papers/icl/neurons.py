"""Claim `icl.neurons`: large neurons read the mean relevant pattern, and the label with their output weight's sign.

Rule, written before the run, for proposition 4.5 and figure 2 (C, D): after training, over the half of the neurons with
the largest rows of W_O W_V, the mean cosine of the label part with +-q (the sign of the neuron's output weight) is at
least 0.95, and the median cosine of the input part with the mean pattern is at least 0.8. Cost: no extra training.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab
from iclab.papers.icl.mechanism import NEURONS, along, signs, watched_specs
from iclab.papers.icl.settings import OUT_OF_DOMAIN_CONSTANT, SIZES
from iclab.papers.icl.trained import one_layer_models

LABEL_COSINE, PATTERN_COSINE = 0.95, 0.8
COSINES = (-1.0, 1.0)
Neurons = dict[str, Float[np.ndarray, "seeds neurons"]]


def angles(neurons: Neurons) -> tuple[Mean, Mean]:
    """Mean cosine with +-q and median cosine with the mean pattern, over the larger half of the neurons, by seed."""
    size = np.hypot(neurons["norm x"], neurons["norm y"])
    large = size >= np.median(size, axis=1, keepdims=True)
    label = [(cosines * signs(neurons))[mask].mean() for cosines, mask in zip(neurons["cosine y"], large, strict=True)]
    pattern = [np.median(cosines[mask]) for cosines, mask in zip(neurons["cosine x"], large, strict=True)]
    return Mean(np.array(label), COSINES), Mean(np.array(pattern), COSINES)


def checks(neurons: Neurons) -> list[Check]:
    """The rule above."""
    label, pattern = angles(neurons)
    return [Check("large neurons: cosine of the label part with +-q", label, ">=", LABEL_COSINE),
            Check("large neurons: cosine of the input part with the mean pattern", pattern, ">=", PATTERN_COSINE)]


def run(lab: Lab) -> Findings:
    """Look at the neurons before and after training."""
    models = one_layer_models(lab, 0.6)
    history = {name: along(models, name) for name in NEURONS}
    before, after = ({name: values[:, i] for name, values in history.items()} for i in (0, -1))
    cosines = [f"{then.value:.2f} before training, {now.value:.3f} after"
               for then, now in zip(angles(before), angles(after), strict=True)]
    return Findings(
        shown="Each check with its interval over seeds; figure 2 shows the neurons.", measured=after,
        numbers=f"In the larger half of the neurons, cosine of the label part with +-q: {cosines[0]}; of the input "
                f"part with the mean pattern: {cosines[1]}.", specs=watched_specs(models))


ENTRY = Entry(
    "icl.neurons", "What the large neurons read", "li2024icl, proposition 4.5, figure 2 (C, D)", run,
    says="After training the large neurons point along the mean relevant pattern, and along +q or -q according to the "
         "sign of their output weight.",
    sizes=SIZES, parts=(
        Part("theorem", "proposition 4.5", "The input part of every large neuron points along the mean pattern, its "
             "label part along q or -q.", checks, theory=("Proposition 4.5",), constant=OUT_OF_DOMAIN_CONSTANT),
        Part("figure", "figure 2 (C), (D)", "Except for some neurons, the input part grows towards the mean pattern "
             "and the label part towards q or -q.", checks)))
