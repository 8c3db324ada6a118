"""Table 1: accuracy of the three-layer models by the position of the outlier examples, at outlier fraction 0.5.

The paper gives neither the label rule nor kappa_a'; this table tries several and reports which row is nearest.
Cost: 0.6 million test prompts, about 7 s.
Expect (full scale, far / random / close): Mamba 98 / 93 / 74 % under flip and 99.5 / 98 / 91 % under target at three
times the training scale; the linear Transformer 55 / 65 / 73 % under flip, and flat under target: 99 % at three times,
about 76 % at 4.5 times the training scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.lab.entries import Entry, Lab, Outcome, Table
from iclab.papers.mamba.deep import DEEP, MODELS, deep_models, deep_run
from iclab.papers.mamba.settings import attacked_prompts
from iclab.probes import model_errors, seed_interval
from iclab.sweeps.store import run_id

FRACTION = 0.5
PLACEMENTS = ("far", "random", "close")
PAPER = {"mamba": (0.9984, 0.9904, 0.7328), "linear": (0.7852, 0.7828, 0.7860)}
ROWS = {"quick": (("flip", 3.0), ("target", 3.0)),
        "full": (("flip", 1.0), ("flip", 3.0), ("target", 1.0), ("target", 3.0), ("target", 4.5), ("random", 3.0))}
"""Label rules, and test scales in units of the training scale."""
NAMES = {"mamba": "Mamba", "linear": "linear Transformer"}


@dataclass(frozen=True)
class Accuracies:
    """Accuracy of each model, of shape (seeds, rows, placements)."""

    values: dict[str, Float[np.ndarray, "seeds rows placements"]]
    rows: tuple[tuple[str, float], ...]
    runs: list[str]

    def at(self, model: str, rule: str, factor: float) -> Float[np.ndarray, "seeds placements"]:
        """One row of the table."""
        return self.values[model][:, self.rows.index((rule, factor))]

    def nearest(self, model: str) -> tuple[str, float]:
        """The label rule and scale whose accuracies are nearest to the paper's."""
        distances = np.abs(self.values[model].mean(axis=0) - np.array(PAPER[model])).max(axis=1)
        return self.rows[int(np.argmin(distances))]


def measure(lab: Lab) -> Accuracies:
    """Accuracies under every rule, scale and placement."""
    size, rows = DEEP[lab.scale], ROWS[lab.scale]
    seeds, models = lab.seeds(size.seeds), deep_models(lab)
    all_models = [model for name in MODELS for model in models[name]]
    tests = [attacked_prompts(rule, FRACTION, factor, placement=placement) for rule, factor in rows
             for placement in PLACEMENTS]

    def compute() -> list:
        return model_errors(all_models, tests, count=size.prompts, seeds=seeds * len(MODELS),
                            progress=lab.progress).tolist()

    errors = np.array(lab.store.recall("mamba-positions", [[m.run for m in all_models], tests, size.prompts], compute))
    values = 1 - errors.reshape(len(MODELS), len(seeds), len(rows), len(PLACEMENTS))
    return Accuracies(dict(zip(MODELS, values, strict=True)), rows, [str(run_id(m.run)) for m in all_models])


def percent(values: Float[np.ndarray, " seeds"]) -> str:
    """Mean over seeds with its 95 % interval."""
    return "{:.1f} [{:.1f}, {:.1f}]".format(*seed_interval(100 * values, within=(0.0, 100.0)))


def run(lab: Lab) -> Outcome:
    """Build the table."""
    accuracies, size = measure(lab), DEEP[lab.scale]
    rows = [(NAMES[model], "the paper", "", *(f"{100 * value:.2f}" for value in PAPER[model])) for model in MODELS]
    rows += [(NAMES[model], rule, f"{factor:g}", *(percent(accuracies.at(model, rule, factor)[:, i]) for i in range(3)))
             for model in MODELS for rule, factor in accuracies.rows]

    def nearest_row(model: str) -> str:
        rule, factor = accuracies.nearest(model)
        mean = accuracies.at(model, rule, factor).mean(axis=0)
        return (f"{NAMES[model]}'s row comes nearest under {rule} with kappa_a' = {factor:g} kappa_a, "
                f"{' / '.join(f'{100 * value:.1f}' for value in mean)} %, where the paper has "
                f"{' / '.join(f'{100 * value:.2f}' for value in PAPER[model])} %")

    flip = " / ".join(f"{100 * value:.0f}" for value in accuracies.at("linear", "flip", 3.0).mean(axis=0))
    return Outcome(
        shown="Accuracy in percent with the poisoned examples farthest from the query, at random positions, or closest "
              "to it; mean over seeds with its 95 % interval.",
        paper="Mamba suffers when outliers are next to the query; for the linear Transformer their position makes no "
              "difference. The paper gives neither the label rule nor the test scale.",
        measured=f"{nearest_row('mamba')}. {nearest_row('linear')}. No single setting gives both rows: targeted labels "
                 "give the linear Transformer its flat row but hurt Mamba less than in the paper's last column; "
                 f"flipped labels give Mamba that number, but then the linear Transformer is not flat ({flip} %): in a "
                 "stack even linear attention depends on the order, because an early example is read by all later "
                 "ones.",
        tables=[Table("mamba.table1", "Accuracy (%) by the position of outliers, outlier fraction 0.5",
                      ("model", "label rule", "kappa_a' / kappa_a", "far", "random", "close"), rows)],
        seeds=lab.seeds(size.seeds), settings={"training": to_json(deep_run("mamba", size.steps)),
                                               "test": to_json(attacked_prompts("target", FRACTION)),
                                               "test prompts a point and seed": size.prompts})


ENTRY = Entry("mamba.table1", "table", "Accuracy by the position of the outlier examples, three layers",
              "li2025mamba, table 1", run, aliases=("workshop.table2",))
