"""Claim `icl.pruning`: small neurons are free to prune, large ones are not (figure 5).

Rules, written before the run, out of domain at decisive fraction 0.6. Theorem 3.7: pruning 15 % of the neurons,
smallest first, adds at most 0.05 to the hinge loss, largest first at least 0.1. Figure 5 (B): with 70 % pruned, largest
first, the error at test fraction 0.8 is below that at 0.6. Ours: pruning half of them, largest first, adds at least
0.05 to the error. Neurons are ranked by the norm of their row of W_O W_V. Cost: no extra training, about 1 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part, Size
from iclab.lab.estimates import Difference
from iclab.lab.laboratory import Lab
from iclab.papers.icl import settings
from iclab.papers.icl.settings import out_of_domain
from iclab.papers.icl.trained import one_layer_models
from iclab.probes.error_rate import averages, errors_of
from iclab.probes.pruning import ORDERS, neuron_norms, prune
from iclab.prompts import SIGN
from iclab.training import Trained

RATES = (0.0, 0.15, 0.3, 0.5, 0.7, 0.9)
TESTED = (0.6, 0.8)
"""Fractions of decisive examples at test."""
FREE, COSTLY, WRONG = 0.05, 0.1, 0.05
SIZES = {scale: Size(**(vars(size) | {"prompts": prompts})) for (scale, size), prompts
         in zip(settings.SIZES.items(), (1_000, 1_000, 4_000), strict=True)}

Values = Float[np.ndarray, "orders rates seeds tests"]


@dataclass(frozen=True)
class Pruned:
    """Error and hinge loss."""

    error: Values
    hinge: Values
    prompts: int

    def added(self, values: Values, order: str, rate: float) -> Difference:
        """What pruning adds, at the first test fraction."""
        by_rate = values[ORDERS.index(order), :, :, 0]
        return Difference(by_rate[RATES.index(rate)], by_rate[0], self.prompts if values is self.error else None)


def pruned_errors(models: Sequence[Trained], seeds: Sequence[int], prompts: int) -> tuple[Values, Values]:
    """Errors and hinge losses, pruned in every order at every rate."""
    tests = [out_of_domain(decisive) for decisive in TESTED]
    pruned = [prune(model, rate, order, seed=seed) for order in ORDERS for rate in RATES
              for model, seed in zip(models, seeds, strict=True)]
    means = averages(errors_of(SIGN), pruned, tests, prompts, list(seeds) * (len(ORDERS) * len(RATES)))
    error, hinge = np.moveaxis(means.reshape(len(ORDERS), len(RATES), len(seeds), len(tests), 2), -1, 0)
    return error, hinge


def measure(lab: Lab) -> Pruned:
    """All errors and losses of this scale."""
    models, prompts = one_layer_models(lab, TESTED[0]), SIZES[lab.scale].prompts
    return Pruned(*lab.remember(pruned_errors, models, lab.seeds(len(models)), prompts), prompts)


def sorted_norms(lab: Lab) -> Float[np.ndarray, "seeds neurons"]:
    """Norms of the neurons' rows, smallest first."""
    return np.sort([neuron_norms(model) for model in one_layer_models(lab, TESTED[0])], axis=1)


def hinge_loss(results: Pruned) -> list[Check]:
    """Small neurons are free, large ones are not."""
    return [Check("hinge added by pruning 15 %, smallest first", results.added(results.hinge, "small", 0.15), "<=",
                  FREE),
            Check("hinge added by pruning 15 %, largest first", results.added(results.hinge, "large", 0.15), ">=",
                  COSTLY)]


def more_decisive(results: Pruned) -> list[Check]:
    """More decisive examples help a pruned model."""
    few, many = results.error[ORDERS.index("large"), RATES.index(0.7)].T
    return [Check("70 % pruned, largest first: error at fraction 0.8 less that at 0.6",
                  Difference(many, few, results.prompts), "<", 0.0)]


def wrong_answers(results: Pruned) -> list[Check]:
    """Pruning large neurons changes answers."""
    return [Check("error added by pruning 50 %, largest first", results.added(results.error, "large", 0.5), ">=",
                  WRONG)]


def run(lab: Lab) -> Findings:
    """Prune in every order at every rate."""
    results, norms = measure(lab), sorted_norms(lab)
    small = float((norms < 0.25 * norms.max(axis=1, keepdims=True)).mean())

    def at(values: Values, order: str, rate: float) -> float:
        return float(values[ORDERS.index(order), RATES.index(rate), :, 0].mean())

    return Findings(
        shown="What pruning the MLP costs, by the order in which neurons are removed; figure 5 shows the curves.",
        measured=results,
        numbers=f"{100 * small:.0f} % of the rows are below a quarter of the largest. At 30 % pruned the hinge loss is "
                f"{at(results.hinge, 'small', 0.3):.2f} (smallest first), {at(results.hinge, 'random', 0.3):.2f} "
                f"(random), {at(results.hinge, 'large', 0.3):.2f} (largest first), against "
                f"{at(results.hinge, 'small', 0.0):.2f} unpruned. The error, largest first, is "
                f"{at(results.error, 'large', 0.5):.4f} at 50 % and {at(results.error, 'large', 0.7):.3f} at 70 %.",
        specs=[(one_layer_models(lab, TESTED[0])[0].run, out_of_domain(TESTED[0]))])


ENTRY = Entry(
    "icl.pruning", "Pruning the MLP by the norm of its neurons", "li2024icl, theorem 3.7, figure 5", run,
    says="Pruning neurons with small rows does not hurt, pruning those with large rows does; more decisive examples "
         "help.",
    sizes=SIZES, parts=(
        Part("theorem", "theorem 3.7", "Pruning the small neurons leaves the loss small; pruning a share R of the "
             "large ones costs a loss of at least order R.", hinge_loss, theory=("Theorem 3.7",)),
        Part("figure", "figure 5 (B)", "More decisive examples at test improve the pruned model.", more_decisive),
        Part("ours", "the error of the pruned model", "Pruning half of the neurons, largest first, makes answers "
             "wrong.", wrong_answers)))
