"""Table 1: accuracy of the three-layer models by the position of the outlier examples, at outlier fraction 0.5.

The paper gives neither the label rule nor kappa_a'; this table tries several, each for both models, and reports which
is nearest to all six of the paper's numbers. One rule is ours: a poisoned example is mislabelled in four of five cases,
which the paper's definition 2 allows (any function of the input); it was found on other seeds. The linear Transformer
is shown in both readings (`iclab.papers.mamba.deep`). Cost: 8 more trainings and 1 million test prompts, about 8 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.lab.entries import Entry, Findings, Note, Size, Table
from iclab.lab.laboratory import Lab, per_seed
from iclab.papers.mamba.deep import DEEP, MODELS, deep_models, deep_run
from iclab.papers.mamba.settings import attacked_prompts
from iclab.probes import seed_interval
from iclab.prompts import Classification
from iclab.training import Run

FRACTION = 0.5
PLACEMENTS = ("far", "random", "close")
PAPER = {"mamba": (0.9984, 0.9904, 0.7328), "linear": (0.7852, 0.7828, 0.7860)}
NAMES = {"mamba": "Mamba", "linear": "linear Transformer", "causal": "linear Transformer, causal"}
MOSTLY_WRONG = "wrong in four of five"
CORRECT_ABOVE = 0.6
"""In units of K': above it lies a fifth of the coefficients of irrelevant patterns, which are uniform in (-K', K')."""


def mostly_wrong(clean: Any, coin: Any, x: Any) -> Any:
    """The wrong label, except where the coefficient of the irrelevant pattern is among the largest fifth."""
    test = attacked_prompts("flip", FRACTION)
    first, last = test.relevant_patterns, test.relevant_patterns + test.irrelevant_patterns
    kappa = x[..., first:last].sum(-1) / test.pattern_norm
    return clean * (1 - 2.0 * (kappa < CORRECT_ABOVE * test.irrelevant_scale))


RULES: dict[str, Any] = {MOSTLY_WRONG: mostly_wrong}
"""Label rules that are functions."""
ROWS = {"tiny": (("flip", 3.0), ("target", 3.0), (MOSTLY_WRONG, 1.0)), "quick": (("flip", 3.0), ("target", 3.0)),
        "full": (("flip", 1.0), ("flip", 3.0), ("target", 1.0), ("target", 3.0), ("target", 6.0), ("random", 3.0),
                 (MOSTLY_WRONG, 1.0))}
"""Label rules, and test scales in units of the training scale."""
SIZES = {scale: Size(**vars(size), rows=ROWS[scale]) for scale, size in DEEP.items()}


@dataclass(frozen=True)
class Accuracies:
    """Accuracy of each model, of shape (seeds, rows, placements)."""

    values: dict[str, Float[np.ndarray, "seeds rows placements"]]
    rows: tuple[tuple[str, float], ...]
    run: Run
    """How Mamba was trained."""

    def at(self, model: str, rule: str, factor: float) -> Float[np.ndarray, "seeds placements"]:
        """One row of the table."""
        return self.values[model][:, self.rows.index((rule, factor))]

    def distance(self, rule: str, factor: float) -> float:
        """The largest difference between any of the paper's six accuracies and ours, under one setting for both."""
        return max(float(np.abs(self.at(model, rule, factor).mean(axis=0) - PAPER[model]).max()) for model in PAPER)

    @property
    def nearest(self) -> str:
        """The setting, common to both models, whose accuracies are nearest to the paper's, in words."""
        rule, factor = min(self.rows, key=lambda row: self.distance(*row))
        rows = [f"{NAMES[model]} {numbers(self.at(model, rule, factor).mean(axis=0))} % (the paper: "
                f"{numbers(PAPER[model])} %)" for model in PAPER]
        return (f"Of {len(self.rows)} settings common to both models, nearest to the paper's six numbers is "
                f"{rule} with kappa_a' = {factor:g} kappa_a: {', '.join(rows)}; the largest difference is "
                f"{100 * self.distance(rule, factor):.1f} points.")


def judged_prompts(rule: str, factor: float, placement: str = "random") -> Classification:
    """Test prompts under a rule, by its name here."""
    return attacked_prompts(RULES.get(rule, rule), FRACTION, factor, placement=placement)


def measure(lab: Lab) -> Accuracies:
    """Accuracies under every rule, scale and placement."""
    size, models = lab.size, deep_models(lab)
    if lab.scale != "quick":  # where another program would cost too much
        models |= {"causal": lab.train(per_seed(deep_run("linear", size.steps, causal=True), lab.seeds(size.seeds)))}
    tests = [judged_prompts(rule, factor, placement) for rule, factor in size.rows for placement in PLACEMENTS]
    errors = lab.errors([trained for of in models.values() for trained in of], tests)
    values = 1 - errors.reshape(len(models), -1, len(size.rows), len(PLACEMENTS))
    return Accuracies(dict(zip(models, values, strict=True)), size.rows, models["mamba"][0].run)


def numbers(accuracies: Sequence[float] | Float[np.ndarray, " placements"]) -> str:
    """Accuracies in percent, far / random / close."""
    return " / ".join(f"{100 * value:.1f}" for value in accuracies)


def percent(values: Float[np.ndarray, " seeds"]) -> str:
    """Mean over seeds with its 95 % interval."""
    return "{:.1f} [{:.1f}, {:.1f}]".format(*seed_interval(100 * values, within=(0.0, 100.0)))


def run(lab: Lab) -> Findings:
    """Build the table."""
    accuracies = measure(lab)
    rows = [(NAMES[model], "the paper", "", *(f"{100 * value:.2f}" for value in PAPER[model])) for model in MODELS]
    rows += [(NAMES[model], rule, f"{factor:g}", *map(percent, accuracies.at(model, rule, factor).T))
             for model in accuracies.values for rule, factor in accuracies.rows]
    return Findings(
        shown="Accuracy in percent with the poisoned examples farthest from the query, at random positions, or closest "
              "to it; mean over seeds with its 95 % interval.",
        numbers=accuracies.nearest,
        tables=[Table("mamba.table1", "Accuracy (%) by the position of outliers, outlier fraction 0.5",
                      ("model", "label rule", "kappa_a' / kappa_a", *PLACEMENTS), rows)],
        specs=[(accuracies.run, judged_prompts(*accuracies.rows[-1]))])


ENTRY = Entry(
    "mamba.table1", "Accuracy by the position of the outlier examples, three layers", "li2025mamba, table 1", run,
    says="Mamba suffers when outliers are next to the query; for the linear Transformer their position makes no "
         "difference. The paper gives neither the label rule nor the test scale.", sizes=SIZES, kind="table",
    aliases=("workshop.table2",), notes=(
        Note("2026-11-18", "How the common setting was found, on search seeds: label rules flip, target, random and "
             "wrong with probability 0.5 to 1, kappa_a' of 1 to 10 kappa_a, U 1 to 5, both readings of the linear "
             "Transformer. With wrong labels in four of five cases, kappa_a' = kappa_a and U 5 all six numbers were "
             "within 5 points of the paper's; the paper's own three rules came no nearer than 11 (target, kappa_a' = "
             "kappa_a, U 2). Under flip the linear Transformer answers at random, under target and random it errs in 1 "
             "or 2 % until the outliers are so large that seeds differ by tens of points."),))
