"""Claim `icl.pruning`: small neurons are free to prune, large ones are not (figure 5).

Rule, written before the run, out of domain at decisive fraction 0.6: pruning 15 % of the neurons, smallest first, adds
at most 0.05 to the hinge loss, largest first at least 0.1; pruning half of them, largest first, adds at least 0.05 to
the error, as in the figure; and with 70 % pruned, largest first, the error at test fraction 0.8 is below that at 0.6.
Neurons are ranked by the norm of their row of W_O W_V. Cost: no extra training, about 10 s.
Expect: the hinge loss rises long before the error does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.icl.settings import SIZES, one_layer_run, out_of_domain
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import seed_interval
from iclab.probes.error_rate import averages, errors_of
from iclab.probes.pruning import ORDERS, neuron_norms, prune
from iclab.prompts import SIGN
from iclab.sweeps.store import run_id
from iclab.training import Trained

RATES = (0.0, 0.15, 0.3, 0.5, 0.7, 0.9)
TESTED = (0.6, 0.8)
"""Fractions of decisive examples at test."""
FREE, COSTLY, WRONG = 0.05, 0.1, 0.05
PROMPTS = {"quick": 1_000, "full": 4_000}
STATEMENT = ("Pruning neurons with small rows does not hurt, pruning those with large rows does; more decisive "
             "examples help.")


@dataclass(frozen=True)
class Pruned:
    """Error and hinge loss, of shape (orders, rates, seeds, tests)."""

    error: Float[np.ndarray, "orders rates seeds tests"]
    hinge: Float[np.ndarray, "orders rates seeds tests"]

    def added(self, values: np.ndarray, order: str, rate: float) -> Float[np.ndarray, " seeds"]:
        """What pruning adds, at the first test fraction."""
        by_rate = values[ORDERS.index(order), :, :, 0]
        return by_rate[RATES.index(rate)] - by_rate[0]


def pruned_errors(models: list[Trained], seeds: list[int], prompts: int) -> Pruned:
    """Prune in every order at every rate."""
    tests = [out_of_domain(decisive) for decisive in TESTED]
    pruned = [prune(model, rate, order, seed=seed) for order in ORDERS for rate in RATES
              for model, seed in zip(models, seeds, strict=True)]
    means = averages(errors_of(SIGN), pruned, tests, prompts, seeds * (len(ORDERS) * len(RATES)))
    return Pruned(*np.moveaxis(means.reshape(len(ORDERS), len(RATES), len(seeds), len(tests), 2), -1, 0))


def measure(lab: Lab) -> Pruned:
    """All errors and losses of this scale."""
    models, prompts = one_layer_models(lab, TESTED[0]), PROMPTS[lab.scale]

    def compute() -> list:
        result = pruned_errors(models, lab.seeds(len(models)), prompts)
        return [result.error.tolist(), result.hinge.tolist()]

    stored = lab.store.recall("icl-pruning", [[m.run for m in models], RATES, prompts], compute)
    return Pruned(*(np.array(part) for part in stored))


def sorted_norms(lab: Lab) -> Float[np.ndarray, "seeds neurons"]:
    """Norms of the neurons' rows, smallest first."""
    return np.sort([neuron_norms(model) for model in one_layer_models(lab, TESTED[0])], axis=1)


def checks(results: Pruned) -> list[Check]:
    """The rule above."""
    large = results.error[ORDERS.index("large"), RATES.index(0.7)]
    return [Check.of("hinge added by pruning 15 %, smallest first",
                     seed_interval(results.added(results.hinge, "small", 0.15)), "<=", FREE),
            Check.of("hinge added by pruning 15 %, largest first",
                     seed_interval(results.added(results.hinge, "large", 0.15)), ">=", COSTLY),
            Check.of("error added by pruning 50 %, largest first",
                     seed_interval(results.added(results.error, "large", 0.5)), ">=", WRONG),
            Check.of("70 % pruned, largest first: error at fraction 0.8 less that at 0.6",
                     seed_interval(large[:, 1] - large[:, 0]), "<", 0.0)]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    size, models, prompts = SIZES[lab.scale], one_layer_models(lab, TESTED[0]), PROMPTS[lab.scale]
    results, norms, seeds = measure(lab), sorted_norms(lab), lab.seeds(len(models))
    judged = checks(results)
    small = float((norms < 0.25 * norms.max(axis=1, keepdims=True)).mean())
    claim = Claim(id="icl.pruning", statement=STATEMENT, place="li2024icl, theorem 3.7, figure 5", checks=judged,
                  conditions=[], settings={"training": to_json(one_layer_run(0.6, size.steps)),
                                           "test": to_json(out_of_domain(0.6)), "prompts": prompts},
                  seeds=seeds, runs=[str(run_id(m.run)) for m in models], scale=lab.scale)

    def at(values: np.ndarray, order: str, rate: float) -> float:
        return float(values[ORDERS.index(order), RATES.index(rate), :, 0].mean())

    return Outcome(
        shown="What pruning the MLP costs, by the order in which neurons are removed; figure 5 shows the curves.",
        paper="About 15 % of the neurons are small and free to prune; the error grows as larger ones are pruned, and "
              "less so when more examples are decisive.",
        measured=f"Verdict: {claim.verdict}. {100 * small:.0f} % of the rows are below a quarter of the largest. At "
                 f"30 % pruned the hinge loss is {at(results.hinge, 'small', 0.3):.2f} (smallest first), "
                 f"{at(results.hinge, 'random', 0.3):.2f} (random), {at(results.hinge, 'large', 0.3):.2f} (largest "
                 f"first), against {at(results.hinge, 'small', 0.0):.2f} unpruned. The error hardly changes: largest "
                 f"first, it is {at(results.error, 'large', 0.5):.4f} at 50 % and "
                 f"{at(results.error, 'large', 0.7):.3f} at 70 %. Pruning shrinks the margin long before it "
                 "changes its sign.",
        claim=claim, seeds=seeds, settings=claim.settings)


ENTRY = Entry("icl.pruning", "claim", "Pruning the MLP by the norm of its neurons", "li2024icl, theorem 3.7, figure 5",
              run)
