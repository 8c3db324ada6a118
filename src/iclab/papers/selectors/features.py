"""Claim `selectors.features`: relevant patterns grow in queries and keys, irrelevant ones do not (figure 1, a).

Rule of both parts, written before the run: at the end of training the mean norms of W_Q mu and of W_K mu are at least 3
times their initial values, those of W_Q nu and W_K nu at most 1.5 times. Figure 1 (a) is judged at the settings of the
figure, proposition 1 inside its premises. Cost: 8 trainings of 600 and 4 of 5,000 steps, about 10 s.
"""

from __future__ import annotations

from iclab.lab.claims import Check
from iclab.lab.entries import Checks, Entry, Findings, Part, Rule
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab
from iclab.papers.selectors.mechanism import Records, pattern_norms
from iclab.papers.selectors.settings import CONSTANT, OUTSIDE, SIZES
from iclab.papers.selectors.trained import theorem_models, trained_models

GROWS, STAYS = 3.0, 1.5


def grow(where: str) -> Checks:
    """The rule, at the settings of the figure or of the theorem."""
    return lambda measured: relevant_grow(measured[where])


def relevant_grow(norms: Records) -> list[Check]:
    """The rule above, on norms during training."""
    return [Check(f"growth of {name} patterns", Mean(values[:, -1] / values[:, 0]),
                  *((">=", GROWS) if name.endswith(" relevant") else ("<=", STAYS))) for name, values in norms.items()]


def run(lab: Lab) -> Findings:
    """Train and compare norms."""
    models = {"figure": trained_models(lab), "theorem": theorem_models(lab)}
    norms = {where: pattern_norms(trained) for where, trained in models.items()}
    run = models["theorem"][0].run
    return Findings(
        shown="The factor by which pattern norms grow in queries and keys; the curves are figure 1.", measured=norms,
        numbers=" ".join(f"Norms at the end, at the settings of the {where}: " + ", ".join(
            f"{name} {values[:, -1].mean():.2f}" for name, values in records.items()) + "."
            for where, records in norms.items()), specs=[(run, run.prompts)])


ENTRY = Entry(
    "selectors.features", "Relevant patterns grow in queries and keys", "li2024selectors, proposition 1, figure 1 (a)",
    run, sizes=SIZES,
    says="Training promotes the relevant patterns in queries and keys and leaves the irrelevant ones as they were.",
    parts=(
        Part("theorem", "proposition 1", "Relevant patterns grow to order sqrt(log M), irrelevant ones stay of order "
             "1.", grow("theorem"), theory=("Proposition 1",), constant=CONSTANT,
             earlier=(Rule(grow("figure"), OUTSIDE),)),
        Part("figure", "figure 1 (a)", "Norms of relevant patterns grow, those of irrelevant ones stay.",
             grow("figure"))))
