"""Claim `icl.pruning`: neurons that read little are free to prune, those that read much are not (figure 5).

Rule, written before the run, out of domain at decisive fraction 0.6: pruning 15 % of the neurons, smallest first, adds
at most 0.05 to the hinge loss, largest first at least 0.1; pruning half of them, largest first, adds at least 0.05 to
the error, as the figure has it; and with 70 % pruned, largest first, the error at test fraction 0.8 is below that at
0.6. Neurons go by the norm of their row of W_O W_V. Cost: no training of its own, about 10 s.
Expect: the hinge loss rises long before the error does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.papers.claims import Check, Claim
from iclab.papers.entries import Entry, Lab, Outcome
from iclab.papers.icl.settings import SIZES, one_layer_run, out_of_domain
from iclab.papers.icl.trained import one_layer_models
from iclab.probes import seed_interval
from iclab.probes.errors import averages, wrong_and_hinge
from iclab.probes.pruning import ORDERS, neuron_norms, prune
from iclab.runs.store import run_id
from iclab.specs import to_json
from iclab.training import Trained

RATES = (0.0, 0.15, 0.3, 0.5, 0.7, 0.9)
TESTED = (0.6, 0.8)
"""Fractions of decisive examples at test."""
FREE, COSTLY, WRONG = 0.05, 0.1, 0.05
PROMPTS = {"quick": 1_000, "full": 4_000}
NAMES = {"small": "smallest first", "large": "largest first", "random": "random"}
STATEMENT = ("Pruning neurons with small rows does not hurt, pruning those with large rows does; more decisive "
             "examples help.")


@dataclass(frozen=True)
class Pruned:
    """Error and hinge loss, of shape (orders, rates, seeds, tests)."""

    error: Float[np.ndarray, "orders rates seeds tests"]
    hinge: Float[np.ndarray, "orders rates seeds tests"]

    def added(self, values: np.ndarray, order: str, rate: float) -> Float[np.ndarray, " seeds"]:
        """What pruning adds, at the first test fraction."""
        of = values[ORDERS.index(order), :, :, 0]
        return of[RATES.index(rate)] - of[0]


def measure(models: list[Trained], seeds: list[int], prompts: int) -> Pruned:
    """Prune in every order at every rate."""
    tests = [out_of_domain(decisive) for decisive in TESTED]
    pruned = [prune(model, rate, order, seed=seed) for order in ORDERS for rate in RATES
              for model, seed in zip(models, seeds, strict=True)]
    found = averages(wrong_and_hinge, pruned, tests, prompts, seeds * (len(ORDERS) * len(RATES)))
    return Pruned(*np.moveaxis(found.reshape(len(ORDERS), len(RATES), len(seeds), len(tests), 2), -1, 0))


def checks(found: Pruned) -> list[Check]:
    """The rule above."""
    large = found.error[ORDERS.index("large"), RATES.index(0.7)]
    return [Check.of("hinge added by pruning 15 %, smallest first",
                     seed_interval(found.added(found.hinge, "small", 0.15)), "<=", FREE),
            Check.of("hinge added by pruning 15 %, largest first",
                     seed_interval(found.added(found.hinge, "large", 0.15)), ">=", COSTLY),
            Check.of("error added by pruning 50 %, largest first",
                     seed_interval(found.added(found.error, "large", 0.5)), ">=", WRONG),
            Check.of("70 % pruned, largest first: error at fraction 0.8 less that at 0.6",
                     seed_interval(large[:, 1] - large[:, 0]), "<", 0.0)]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    size, models, prompts = SIZES[lab.scale], one_layer_models(lab, 0.6), PROMPTS[lab.scale]
    seeds = lab.seeds(size.seeds)

    def compute() -> list:
        result = measure(models, seeds, prompts)
        return [result.error.tolist(), result.hinge.tolist()]

    kept = lab.store.recall("icl-pruning", [[m.run for m in models], RATES, prompts], compute)
    found = Pruned(*(np.array(part) for part in kept))
    judged, norms = checks(found), np.sort([neuron_norms(model) for model in models], axis=1)
    small = float((norms < 0.25 * norms.max(axis=1, keepdims=True)).mean())

    def curves(values: np.ndarray, test: int) -> list[Curve]:
        return [Curve(NAMES[order], values[i, :, :, test].T) for i, order in enumerate(ORDERS)]

    plot = curve_figure(
        "icl.pruning", "Pruning the MLP, out of domain",
        "Left and middle: hinge loss and error against the fraction of neurons pruned, decisive fraction 0.6. Right: "
        "norms of the rows of W_O W_V, sorted.",
        [Panel("hinge loss", RATES, curves(found.hinge, 0), x_label="fraction of neurons pruned"),
         Panel("error", RATES, curves(found.error, 0), x_label="fraction of neurons pruned"),
         Panel("norm of a neuron's row", list(range(norms.shape[1])), [Curve("softmax", norms)],
               x_label="neuron, sorted")], "", "", share_y=False)
    claim = Claim(id="icl.pruning", statement=STATEMENT, place="li2024icl, theorem 3.7, figure 5", checks=judged,
                  conditions=[], settings={"training": to_json(one_layer_run(0.6, size.steps)),
                                           "test": to_json(out_of_domain(0.6)), "prompts": prompts},
                  seeds=seeds, runs=[str(run_id(m.run)) for m in models], scale=lab.scale)

    def at(values: np.ndarray, order: str, rate: float) -> float:
        return float(values[ORDERS.index(order), RATES.index(rate), :, 0].mean())

    return Outcome(
        shown="What pruning the MLP costs, by the order in which neurons go, and how large their rows are.",
        paper="About 15 % of the neurons are small and free to prune; the error grows as larger ones are pruned, and "
              "less so when more examples are decisive.",
        measured=f"Verdict: {claim.verdict}. {100 * small:.0f} % of the rows are below a quarter of the largest. At "
                 f"30 % pruned the hinge loss is {at(found.hinge, 'small', 0.3):.2f} (smallest first), "
                 f"{at(found.hinge, 'random', 0.3):.2f} (random), {at(found.hinge, 'large', 0.3):.2f} (largest first), "
                 f"from {at(found.hinge, 'small', 0.0):.2f}; the error hardly moves: at 50 % it is "
                 f"{at(found.error, 'large', 0.5):.4f}, at 70 % {at(found.error, 'large', 0.7):.3f}, largest first. "
                 "Pruning shrinks the margin long before it changes its sign.",
        plots=[plot], claim=claim, seeds=seeds, settings=claim.settings)


ENTRY = Entry("icl.pruning", "claim", "Pruning the MLP by the norm of its neurons", "li2024icl, theorem 3.7, figure 5",
              run)
