"""Pruned one-layer Transformers: errors and losses by order and rate, without large neurons, and norms of rows.

Out of domain, from the models trained at decisive fraction 0.6. Judged by `icl.pruning`, drawn by `icl.fig5`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from iclab.lab.entries import Size
from iclab.lab.estimates import Difference, Mean
from iclab.lab.laboratory import Lab
from iclab.papers.icl import settings
from iclab.papers.icl.growing import GROWING, Numbers, grown_models
from iclab.papers.icl.mechanism import PLACES
from iclab.papers.icl.settings import out_of_domain
from iclab.papers.icl.trained import one_layer_models
from iclab.probes.error_rate import averages, errors_of
from iclab.probes.pruning import ORDERS, neuron_norms, prune
from iclab.prompts import SIGN
from iclab.training import Trained

RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FEW_RATES = (0.0, 0.15, 0.3, 0.5, 0.7, 0.9)
SMALL = 0.15
"""The paper's share of small neurons."""
QUARTER = 0.25
"""Rows below this fraction of the largest are small: norms are bimodal."""
SMALL_ROW, LARGEST_SMALL, MEDIAN_ROW = "mean row of the smallest 15 %", "row at 15 %", "median row"
BETWEEN = "share of rows between M2^(-1/2) and 1"
TESTED = (0.6, 0.8, 1.0)
"""Fractions of decisive examples at test."""
SHARES, DECISIVE, JUDGED_SHARE = (0.1, 0.2, 0.3, 0.4, 0.5), (0.4, 0.6, 0.8, 1.0), 0.3
"""R and alpha' of equation 16, and the R at which alpha' is judged."""
SIZES = {scale: Size(**(vars(settings.SIZES[scale]) | {"seeds": seeds, "prompts": prompts, "rates": rates,
                                                       "growing": vars(GROWING[scale])}))
         for scale, seeds, prompts, rates in (("tiny", 2, 500, FEW_RATES), ("quick", 4, 500, FEW_RATES),
                                              ("full", 16, 3_000, RATES))}


class Values(NamedTuple):
    """A number by order and rate of pruning."""

    rates: Sequence[float]
    values: Float[np.ndarray, "orders rates seeds tests"]
    prompts: int | None = None

    def at(self, order: str, rate: float, test: int = 0) -> Float[np.ndarray, " seeds"]:
        """By seed."""
        return self.values[ORDERS.index(order), self.rates.index(rate), :, test]

    def added(self, order: str, rate: float, since: float = 0.0) -> Difference:
        """What pruning adds, beyond what it has added at the rate `since`, at the first test fraction."""
        return Difference(self.at(order, rate), self.at(order, since), self.prompts)

    def spared(self, rate: float) -> Difference:
        """By how much random pruning is worse than smallest first."""
        return Difference(self.at("random", rate), self.at("small", rate), self.prompts)

    def overall(self, test: int) -> Float[np.ndarray, " seeds"]:
        """Smallest first, the mean over all rates."""
        return self.values[ORDERS.index("small"), 1:, :, test].mean(axis=0)


class Large(NamedTuple):
    """Hinge loss without a random subset of the larger half of the neurons."""

    loss: Float[np.ndarray, "shares seeds tests"]

    @property
    def order(self) -> Float[np.ndarray, "shares 1 tests"]:
        """R + 1 / (alpha' M1)."""
        return np.array(SHARES)[:, None, None] + _context(DECISIVE)[None, None]

    @property
    def lines(self) -> tuple[Mean, Mean]:
        """Slope of the loss in R at the training fraction, and the share of its variance that the line explains."""
        loss = self.loss[:, :, DECISIVE.index(TESTED[0])]
        slopes, starts = np.polyfit(SHARES, loss, 1)
        rest = loss - (np.array(SHARES)[:, None] * slopes + starts)
        return Mean(slopes), Mean(1 - rest.var(axis=0) / np.maximum(loss.var(axis=0), 1e-12), (0.0, 1.0))

    @property
    def context_slope(self) -> Mean:
        """Slope of the loss in 1 / (alpha' M1) at the judged share."""
        return Mean(np.polyfit(_context(DECISIVE), self.loss[SHARES.index(JUDGED_SHARE)].T, 1)[0])


class Pruned(NamedTuple):
    """Error and hinge loss of pruned models, the loss without large and without all small neurons, and rows of neurons
    against M1."""

    error: Values
    hinge: Values
    large: Large
    without_small: dict[str, Mean]
    rows: dict[str, Numbers]


def models_of(lab: Lab) -> list[Trained]:
    """The models that are pruned; more than other entries use."""
    shared, seeds = one_layer_models(lab, TESTED[0]), lab.seeds(SIZES[lab.scale].seeds)
    more = seeds[len(shared):]
    return shared + (lab.train_seeds(shared[0].run, more) if more else [])


def _context(decisive: Sequence[float]) -> Float[np.ndarray, " tests"]:
    """1 / (alpha' M1)."""
    return 1 / (np.array(decisive) * out_of_domain().relevant_patterns)


def pruned_values(models: Sequence[Trained], seeds: Sequence[int], prompts: int, rates: Sequence[float]
                  ) -> Float[np.ndarray, "measures orders rates seeds tests"]:
    """Errors and hinge losses, pruned in every order at every rate."""
    tests = [out_of_domain(decisive) for decisive in TESTED]
    pruned = [prune(model, rate, order, seed=seed) for order in ORDERS for rate in rates
              for model, seed in zip(models, seeds, strict=True)]
    means = averages(errors_of(SIGN), pruned, tests, prompts, list(seeds) * (len(ORDERS) * len(rates)))
    return np.moveaxis(means.reshape(len(ORDERS), len(rates), len(seeds), len(tests), 2), -1, 0)


def without_large(trained: Trained, share: float, seed: int) -> Trained:
    """The run without a share of all its neurons, taken at random from the larger half."""
    norms = neuron_norms(trained)
    large = np.argsort(-norms)[:len(norms) // 2]
    keep = np.ones(len(norms), bool)
    keep[np.random.default_rng(seed).permutation(large)[:round(share * len(norms))]] = False
    params = trained.run.model.keep_neurons(jax.tree.map(jnp.asarray, trained.params), jnp.asarray(keep))
    return dataclasses.replace(trained, params=jax.tree.map(np.asarray, params))


def without_small(trained: Trained) -> Trained:
    """The run without its small neurons, whose rows are below a quarter of the largest."""
    norms = neuron_norms(trained)
    return prune(trained, float((norms < QUARTER * norms.max()).mean()))


def losses_without_small(models: Sequence[Trained], seeds: Sequence[int], prompts: int
                         ) -> Float[np.ndarray, "seeds places"]:
    """Hinge losses in and out of domain without the small neurons."""
    tests = [make(TESTED[0]) for make in PLACES.values()]
    return averages(errors_of(SIGN), [without_small(model) for model in models], tests, prompts, list(seeds))[..., 1]


def losses_without_large(models: Sequence[Trained], seeds: Sequence[int], prompts: int
                         ) -> Float[np.ndarray, "shares seeds tests"]:
    """Hinge losses for every R and alpha'."""
    pruned = [without_large(model, share, seed) for share in SHARES
              for model, seed in zip(models, seeds, strict=True)]
    tests = [out_of_domain(decisive) for decisive in DECISIVE]
    means = averages(errors_of(SIGN), pruned, tests, prompts, list(seeds) * len(SHARES))
    return means[..., 1].reshape(len(SHARES), len(seeds), len(tests))


def rows_against_patterns(lab: Lab) -> dict[str, Numbers]:
    """The mean row of the paper's 15 % smallest, the largest of these, the median row, and the share of rows between
    small and large, at every M1."""
    grown = grown_models(lab)
    norms = {M1: [neuron_norms(model) for model in models] for M1, models in grown.items()}
    rows: dict[str, Callable[[np.ndarray], float]] = {
        SMALL_ROW: lambda row: float(row[row <= np.quantile(row, SMALL)].mean()),
        LARGEST_SMALL: lambda row: float(np.quantile(row, SMALL)), MEDIAN_ROW: lambda row: float(np.median(row))}
    least = {M1: models[0].run.prompts.irrelevant_patterns ** -0.5 for M1, models in grown.items()}
    between = np.array([[np.mean((row > least[M1]) & (row < 1)) for row in by_seed] for M1, by_seed in norms.items()]).T
    return {name: Numbers(tuple(norms), np.array([[of(row) for row in by_seed] for by_seed in norms.values()]).T)
            for name, of in rows.items()} | {BETWEEN: Numbers(tuple(norms), between)}


def measure(lab: Lab) -> tuple[Values, Values]:
    """Errors and hinge losses of this scale."""
    models, size = models_of(lab), SIZES[lab.scale]
    error, hinge = lab.remember(pruned_values, models, lab.seeds(len(models)), size.prompts, size.rates)
    return Values(size.rates, error, size.prompts), Values(size.rates, hinge)


def sorted_norms(lab: Lab) -> dict[str, Float[np.ndarray, "seeds neurons"]]:
    """Norms of what the neurons read, and of their rows of W_O alone, smallest first."""
    models = models_of(lab)
    return {"W_O W_V": np.sort([neuron_norms(model) for model in models], axis=1),
            "W_O": np.sort([np.linalg.norm(model.params.W_O, axis=1) for model in models], axis=1)}
