"""Claim `mamba.position`: outliers next to the query hurt Mamba most; the linear Transformer ignores their position.

The paper does not give its label rule; each model is judged under the one that comes nearest to its paper row: flip for
Mamba, target for the linear Transformer. Rule, at three times the training scale: Mamba's accuracy with outliers far
from the query is at least that with outliers anywhere (less 0.005), which is above that with outliers close; the linear
Transformer's three accuracies differ by at most 0.02. An earlier rule had target for both. Cost: no extra training.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from iclab.lab.claims import Check
from iclab.lab.entries import Checks, Entry, Findings, Part, Rule
from iclab.lab.estimates import Difference, Mean
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.settings import attacked_prompts
from iclab.papers.mamba.table1 import FRACTION, NAMES, SIZES, Accuracies, measure, percent
from iclab.probes import UNIT

FACTOR = 3.0
SLACK, FLAT = 0.005, 0.02


def checks(mamba: Float[np.ndarray, "seeds 3"], linear: Float[np.ndarray, "seeds 3"]) -> list[Check]:
    """The rule above, on accuracies far, random, close."""
    far, anywhere, close = mamba.T
    return [Check("Mamba: far less random", Difference(far, anywhere), ">=", -SLACK),
            Check("Mamba: random less close", Difference(anywhere, close), ">", 0.0),
            Check("linear Transformer: largest less least of the three",
                  Mean(linear.max(axis=1) - linear.min(axis=1), UNIT), "<=", FLAT)]


def under(mamba: str, linear: str) -> Checks:
    """The rule with these label rules."""
    return lambda accuracies: checks(accuracies.at("mamba", mamba, FACTOR), accuracies.at("linear", linear, FACTOR))


def words(accuracies: Accuracies, model: str, rule: str) -> str:
    """A row of the table."""
    return f"{NAMES[model]} under {rule} {' / '.join(map(percent, accuracies.at(model, rule, FACTOR).T))} %"


def run(lab: Lab) -> Findings:
    """Measure table 1."""
    accuracies = measure(lab)
    rows = [words(accuracies, model, rule) for model, rule in
            (("mamba", "flip"), ("linear", "target"), ("mamba", "target"), ("linear", "flip"))]
    return Findings(shown="Each check with its interval over seeds; the accuracies are table 1.", measured=accuracies,
                    numbers=f"Far / random / close: {', '.join(rows[:2])}. Under the other model's rule: "
                            f"{', '.join(rows[2:])}.",
                    specs=[(accuracies.run, attacked_prompts("flip", FRACTION, FACTOR))])


ENTRY = Entry(
    "mamba.position", "The position of outliers matters to Mamba, not to the linear Transformer",
    "li2025mamba, table 1", run,
    says="Mamba is most accurate with outliers far from the query and least with outliers close to it; the linear "
         "Transformer ignores their position.", sizes=SIZES, parts=(
        Part("figure", "table 1", "Mamba suffers most from outliers next to the query; the linear Transformer is much "
             "less affected by their position.", under("flip", "target"), earlier=(
                 Rule(under("target", "target"), "The paper gives no label rule; each model is now judged under the "
                      "one that comes nearest to its row."),)),))
