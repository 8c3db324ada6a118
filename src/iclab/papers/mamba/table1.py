"""Table 1: accuracy of the three-layer models by the position of the outlier examples, at outlier fraction 0.5.

The paper gives neither the label rule nor kappa_a'; this table tries several and reports which row is nearest.
Cost: 0.6 million test prompts, about 2 s.
Expect (full scale, far / random / close): Mamba 98 / 93 / 74 % under flip and 99.5 / 98 / 91 % under target at three
times the training scale; the linear Transformer 55 / 65 / 73 % under flip, and flat under target: 99 % at three times,
about 75 % at 4.5 times the training scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.lab.entries import Entry, Findings, Note, Size, Table
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.deep import DEEP, MODELS, deep_models
from iclab.papers.mamba.settings import attacked_prompts
from iclab.probes import seed_interval
from iclab.training import Run

FRACTION = 0.5
PLACEMENTS = ("far", "random", "close")
PAPER = {"mamba": (0.9984, 0.9904, 0.7328), "linear": (0.7852, 0.7828, 0.7860)}
NAMES = {"mamba": "Mamba", "linear": "linear Transformer"}
ROWS = {"tiny": (("flip", 3.0), ("target", 3.0)), "quick": (("flip", 3.0), ("target", 3.0)),
        "full": (("flip", 1.0), ("flip", 3.0), ("target", 1.0), ("target", 3.0), ("target", 4.5), ("random", 3.0))}
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

    def nearest(self, model: str) -> str:
        """The label rule and scale whose accuracies are nearest to the paper's, in words."""
        means = self.values[model].mean(axis=0)
        best = int(np.argmin(np.abs(means - np.array(PAPER[model])).max(axis=1)))
        rule, factor = self.rows[best]
        return (f"{NAMES[model][0].upper()}{NAMES[model][1:]}: nearest to the paper's row is {rule} with kappa_a' = "
                f"{factor:g} kappa_a, {' / '.join(f'{100 * value:.1f}' for value in means[best])} %, where the paper "
                f"has {' / '.join(f'{100 * value:.2f}' for value in PAPER[model])} %.")


def measure(lab: Lab) -> Accuracies:
    """Accuracies under every rule, scale and placement."""
    size, models = lab.size, deep_models(lab)
    tests = [attacked_prompts(rule, FRACTION, factor, placement=placement) for rule, factor in size.rows
             for placement in PLACEMENTS]
    errors = lab.errors([trained for name in MODELS for trained in models[name]], tests)
    values = 1 - errors.reshape(len(MODELS), -1, len(size.rows), len(PLACEMENTS))
    return Accuracies(dict(zip(MODELS, values, strict=True)), size.rows, models["mamba"][0].run)


def percent(values: Float[np.ndarray, " seeds"]) -> str:
    """Mean over seeds with its 95 % interval."""
    return "{:.1f} [{:.1f}, {:.1f}]".format(*seed_interval(100 * values, within=(0.0, 100.0)))


def run(lab: Lab) -> Findings:
    """Build the table."""
    accuracies = measure(lab)
    rows = [(NAMES[model], "the paper", "", *(f"{100 * value:.2f}" for value in PAPER[model])) for model in MODELS]
    rows += [(NAMES[model], rule, f"{factor:g}", *map(percent, accuracies.at(model, rule, factor).T))
             for model in MODELS for rule, factor in accuracies.rows]
    return Findings(
        shown="Accuracy in percent with the poisoned examples farthest from the query, at random positions, or closest "
              "to it; mean over seeds with its 95 % interval.",
        numbers=" ".join(accuracies.nearest(model) for model in MODELS),
        tables=[Table("mamba.table1", "Accuracy (%) by the position of outliers, outlier fraction 0.5",
                      ("model", "label rule", "kappa_a' / kappa_a", *PLACEMENTS), rows)],
        specs=[(accuracies.run, attacked_prompts("target", FRACTION))])


ENTRY = Entry(
    "mamba.table1", "Accuracy by the position of the outlier examples, three layers", "li2025mamba, table 1", run,
    says="Mamba suffers when outliers are next to the query; for the linear Transformer their position makes no "
         "difference. The paper gives neither the label rule nor the test scale.", sizes=SIZES, kind="table",
    aliases=("workshop.table2",), notes=(
        Note("2026-11-18", "No single setting tried gives both rows: targeted labels give the linear Transformer its "
             "flat row but hurt Mamba less than in the paper's last column; flipped labels give Mamba that number, but "
             "then the linear Transformer is not flat. In a stack even causal linear attention depends on the order of "
             "examples: an early one is read by all later ones."),))
