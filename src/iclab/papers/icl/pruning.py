"""Claim `icl.pruning`: small neurons are free to prune, large ones are not (figure 5).

Rules, written before the run, out of domain at decisive fraction 0.6. Theorem 3.7: pruning 15 % of the neurons,
smallest first, adds at most 0.05 to the hinge loss, largest first at least 0.1. Figure 5 (B): with 70 % pruned, largest
first, the error at test fraction 0.8 is below that at 0.6. Ours: pruning half of them, largest first, adds at least
0.05 to the error. Neurons are ranked by the norm of their row of W_O W_V. Cost: no extra training, about 1 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part, Size
from iclab.lab.estimates import Difference
from iclab.lab.laboratory import Lab
from iclab.papers.icl import settings
from iclab.papers.icl.settings import OUT_OF_DOMAIN_CONSTANT, out_of_domain
from iclab.papers.icl.trained import one_layer_models
from iclab.probes.error_rate import averages, errors_of
from iclab.probes.pruning import ORDERS, neuron_norms, prune
from iclab.prompts import SIGN
from iclab.training import Trained

RATES = (0.0, 0.15, 0.3, 0.5, 0.7, 0.9)
TESTED = (0.6, 0.8)
"""Fractions of decisive examples at test."""
SIZES = {scale: Size(**(vars(size) | {"prompts": {"full": 4_000}.get(scale, 1_000)}))
         for scale, size in settings.SIZES.items()}


class Values(NamedTuple):
    """A number by order and rate of pruning."""

    values: Float[np.ndarray, "orders rates seeds tests"]
    prompts: int | None = None

    def at(self, order: str, rate: float, test: int = 0) -> Float[np.ndarray, " seeds"]:
        """By seed."""
        return self.values[ORDERS.index(order), RATES.index(rate), :, test]

    def added(self, order: str, rate: float) -> Difference:
        """What pruning adds, at the first test fraction."""
        return Difference(self.at(order, rate), self.at(order, 0.0), self.prompts)


class Pruned(NamedTuple):
    """Error and hinge loss of pruned models."""

    error: Values
    hinge: Values


def pruned_values(models: Sequence[Trained], seeds: Sequence[int], prompts: int
                  ) -> Float[np.ndarray, "measures orders rates seeds tests"]:
    """Errors and hinge losses, pruned in every order at every rate."""
    tests = [out_of_domain(decisive) for decisive in TESTED]
    pruned = [prune(model, rate, order, seed=seed) for order in ORDERS for rate in RATES
              for model, seed in zip(models, seeds, strict=True)]
    means = averages(errors_of(SIGN), pruned, tests, prompts, list(seeds) * (len(ORDERS) * len(RATES)))
    return np.moveaxis(means.reshape(len(ORDERS), len(RATES), len(seeds), len(tests), 2), -1, 0)


def measure(lab: Lab) -> Pruned:
    """All errors and losses of this scale."""
    models, prompts = one_layer_models(lab, TESTED[0]), SIZES[lab.scale].prompts
    error, hinge = lab.remember(pruned_values, models, lab.seeds(len(models)), prompts)
    return Pruned(Values(error, prompts), Values(hinge))


def sorted_norms(lab: Lab) -> Float[np.ndarray, "seeds neurons"]:
    """Norms of the neurons' rows, smallest first."""
    return np.sort([neuron_norms(model) for model in one_layer_models(lab, TESTED[0])], axis=1)


def hinge_loss(pruned: Pruned) -> list[Check]:
    """Small neurons are free, large ones are not."""
    return [Check("hinge added by pruning 15 %, smallest first", pruned.hinge.added("small", 0.15), "<=", 0.05),
            Check("hinge added by pruning 15 %, largest first", pruned.hinge.added("large", 0.15), ">=", 0.1)]


def more_decisive(pruned: Pruned) -> list[Check]:
    """More decisive examples help a pruned model."""
    few, many = (pruned.error.at("large", 0.7, test) for test in range(2))
    return [Check("70 % pruned, largest first: error at fraction 0.8 less that at 0.6",
                  Difference(many, few, pruned.error.prompts), "<", 0.0)]


def wrong_answers(pruned: Pruned) -> list[Check]:
    """Pruning large neurons changes answers."""
    return [Check("error added by pruning 50 %, largest first", pruned.error.added("large", 0.5), ">=", 0.05)]


def run(lab: Lab) -> Findings:
    """Prune in every order at every rate."""
    pruned, norms = measure(lab), sorted_norms(lab)
    small = float((norms < 0.25 * norms.max(axis=1, keepdims=True)).mean())
    hinge = ", ".join(f"{pruned.hinge.at(order, 0.3).mean():.2f} ({order})" for order in ORDERS)
    errors = " and ".join(f"{pruned.error.at('large', rate).mean():.4f} at {rate:.0%}" for rate in (0.5, 0.7))
    return Findings(
        shown="What pruning the MLP costs, by the order in which neurons are removed; figure 5 shows the curves.",
        measured=pruned, specs=[(one_layer_models(lab, TESTED[0])[0].run, out_of_domain(TESTED[0]))],
        numbers=f"{100 * small:.0f} % of the rows are below a quarter of the largest. At 30 % pruned the hinge loss, "
                f"by which neurons go first, is {hinge}, against {pruned.hinge.at('small', 0.0).mean():.2f} unpruned. "
                f"The error, largest first, is {errors}.")


ENTRY = Entry(
    "icl.pruning", "Pruning the MLP by the norm of its neurons", "li2024icl, theorem 3.7, figure 5", run,
    says="Pruning neurons with small rows does not hurt, pruning those with large rows does; more decisive examples "
         "help.",
    sizes=SIZES, parts=(
        Part("theorem", "theorem 3.7", "Pruning the small neurons leaves the loss small; pruning a share R of the "
             "large ones costs a loss of at least order R.", hinge_loss, theory=("Theorem 3.7",),
             constant=OUT_OF_DOMAIN_CONSTANT),
        Part("figure", "figure 5 (B)", "More decisive examples at test improve the pruned model.", more_decisive),
        Part("ours", "the error of the pruned model", "Pruning half of the neurons, largest first, makes answers "
             "wrong.", wrong_answers)))
