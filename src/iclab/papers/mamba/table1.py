"""Table 1: accuracy of the three-layer models by the place of the outlier examples, at outlier fraction 0.5.

The paper gives neither the label rule nor kappa_a'; the table here has them all, and says which row is nearest.
Cost: 0.6 million test prompts, about 7 s.
Expect (full scale, far / random / close): Mamba 98 / 93 / 74 % under flip and 99.5 / 98 / 91 % under target at three
times the training scale; the linear Transformer 55 / 65 / 73 % under flip, and under target flat: 99 % at three times,
about 76 % at 4.5 times the training scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.papers.entries import Entry, Lab, Outcome, Table
from iclab.papers.mamba.deep import DEEP, MODELS, deep_models, deep_run
from iclab.papers.mamba.settings import attacked_prompts
from iclab.probes import model_errors, seed_interval
from iclab.runs.store import run_id
from iclab.specs import to_json

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
        """The row nearest to the paper's."""
        away = np.abs(self.values[model].mean(axis=0) - np.array(PAPER[model])).max(axis=1)
        return self.rows[int(np.argmin(away))]


def measure(lab: Lab) -> Accuracies:
    """Accuracies under every rule, scale and placement."""
    size, rows = DEEP[lab.scale], ROWS[lab.scale]
    seeds, models = lab.seeds(size.seeds), deep_models(lab)
    flat = [model for name in MODELS for model in models[name]]
    tests = [attacked_prompts(rule, FRACTION, factor, placement=placement) for rule, factor in rows
             for placement in PLACEMENTS]

    def compute() -> list:
        return model_errors(flat, tests, count=size.prompts, seeds=seeds * len(MODELS), progress=lab.progress).tolist()

    errors = np.array(lab.store.recall("mamba-positions", [[m.run for m in flat], tests, size.prompts], compute))
    values = 1 - errors.reshape(len(MODELS), len(seeds), len(rows), len(PLACEMENTS))
    return Accuracies(dict(zip(MODELS, values, strict=True)), rows, [str(run_id(m.run)) for m in flat])


def percent(values: Float[np.ndarray, " seeds"]) -> str:
    """Mean over seeds with its 95 % interval."""
    return "{:.1f} [{:.1f}, {:.1f}]".format(*seed_interval(100 * values, within=(0.0, 100.0)))


def run(lab: Lab) -> Outcome:
    """Draw up the table."""
    found, size = measure(lab), DEEP[lab.scale]
    rows = [(NAMES[model], "the paper", "", *(f"{100 * value:.2f}" for value in PAPER[model])) for model in MODELS]
    rows += [(NAMES[model], rule, f"{factor:g}", *(percent(found.at(model, rule, factor)[:, i]) for i in range(3)))
             for model in MODELS for rule, factor in found.rows]

    def said(model: str) -> str:
        rule, factor = found.nearest(model)
        mean = found.at(model, rule, factor).mean(axis=0)
        return (f"{NAMES[model]}'s row comes nearest under {rule} with kappa_a' = {factor:g} kappa_a, "
                f"{' / '.join(f'{100 * value:.1f}' for value in mean)} %, where the paper has "
                f"{' / '.join(f'{100 * value:.2f}' for value in PAPER[model])} %")

    flip = " / ".join(f"{100 * value:.0f}" for value in found.at("linear", "flip", 3.0).mean(axis=0))
    return Outcome(
        shown="Accuracy in percent when all poisoned examples stand farthest from the query, anywhere, or closest to "
              "it; mean over seeds with half the 95 % interval.",
        paper="Mamba suffers when outliers stand next to the query, the linear Transformer does not care where they "
              "are. The paper gives neither the label rule nor the test scale.",
        measured=f"{said('mamba')}. {said('linear')}. No one setting gives both rows: targeted labels give the linear "
                 "Transformer its flat row, but hurt Mamba less than the paper's last number; flipped labels give "
                 f"Mamba that number, but then the linear Transformer is not flat ({flip} %): in a stack even linear "
                 "attention knows the order, because an early example is read by all that follow.",
        tables=[Table("mamba.table1", "Accuracy (%) by the place of outliers, outlier fraction 0.5",
                      ("model", "label rule", "kappa_a' / kappa_a", "far", "random", "close"), rows)],
        seeds=lab.seeds(size.seeds), settings={"training": to_json(deep_run("mamba", size.steps)),
                                               "test": to_json(attacked_prompts("target", FRACTION)),
                                               "test prompts a point and seed": size.prompts})


ENTRY = Entry("mamba.table1", "table", "Accuracy by the place of the outlier examples, three layers",
              "li2025mamba, table 1", run, aliases=("workshop.table2",))
