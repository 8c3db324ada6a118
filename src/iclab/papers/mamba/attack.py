"""Figure `mamba.attack`, ours: the worst attack within a budget, found by search, on the models of figure 2.

Beyond the paper, which attacks with three fixed directions. The attacker poisons 30 % of the examples with one vector u
and chooses it, the label rule and the placement: (a) inside theorem 2 (combinations of the training outliers with a
coefficient sum of at least 0.3, norm between one and three times the training scale); (b) any combination of them, norm
up to three times the training scale; (c) any direction, same norm limit. The attacks found at 30 % are then tried at
other fractions. Cost: 24 searches over 9 pairs of rule and placement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from iclab.core.parallel import each
from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.entries import Entry, Findings, Note, Table
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.settings import RULES, attacked_prompts, sizes, training_prompts
from iclab.papers.mamba.trained import one_layer_models
from iclab.probes import UNIT, information_floor, seed_interval
from iclab.probes.attack_search import Budget, attack_error, worst_attack
from iclab.training import Trained

SEARCHED_AT = 0.3
FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.5)
SCALE = float(training_prompts().outlier_scale)
BUDGETS = {
    "inside theorem 2": Budget(3 * SCALE, SCALE, least_sum=0.3),
    "span of the training outliers": Budget(3 * SCALE),
    "any direction": Budget(3 * SCALE, free=True),
}
NAMES = {"mamba": "Mamba", "linear": "linear Transformer"}


def worst_attacks(models: Sequence[Trained], budget: str, effort: Mapping[str, int]) -> list[dict[str, Any]]:
    """The worst attack on each model within a budget, with its errors at every fraction."""
    def job(model: Trained) -> dict[str, Any]:
        seed = model.run.init_seed
        attack = worst_attack(model, attacked_prompts("flip", SEARCHED_AT), BUDGETS[budget], seed=seed, **effort)
        errors = [attack_error(model, attacked_prompts("flip", fraction), attack, count=effort["count"], seed=seed)
                  for fraction in FRACTIONS]
        return {"rule": attack.rule, "placement": attack.placement, "norm": attack.norm,
                "sum": attack.coefficient_sum, "error": attack.error, "errors": errors}

    return [attack for _, attack in sorted(each(job, models), key=lambda item: item[0])]


def run(lab: Lab) -> Findings:
    """Search, tabulate and draw."""
    models = {name: one_layer_models(lab, name, lab.size.seeds) for name in NAMES}
    attacks: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for budget in BUDGETS:
        both = lab.remember(worst_attacks, [*models["mamba"], *models["linear"]], budget, lab.size.effort)
        attacks[budget] = {"mamba": both[:lab.size.seeds], "linear": both[lab.size.seeds:]}
    tests = [attacked_prompts(rule, fraction) for rule in RULES for fraction in FRACTIONS]
    paper = {name: lab.errors(of, tests, lab.size.effort["count"]).reshape(len(of), len(RULES), len(FRACTIONS))
             for name, of in models.items()}
    floor = [information_floor(attacked_prompts("flip", fraction)) for fraction in FRACTIONS]
    panels = [Panel("the paper's flip", FRACTIONS, [Curve(name, paper[name][:, 0]) for name in NAMES], floor=floor)]
    panels += [Panel(f"worst: {budget}", FRACTIONS, [Curve(name, np.array([attack["errors"] for attack in of]))
                                                     for name, of in attacks[budget].items()], floor=floor)
               for budget in BUDGETS]
    plot = error_figure("mamba.attack", "The paper's attack and the worst attack found by search",
                        "Error against the outlier fraction. The worst attack is searched at fraction "
                        f"{SEARCHED_AT:g} for each seed's model and measured on fresh prompts.", panels,
                        "outlier fraction at test")
    at = FRACTIONS.index(SEARCHED_AT)

    def interval(values: Any) -> str:
        mean = seed_interval(values, within=UNIT)
        return f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]"

    def row(name: str, budget: str) -> tuple[Any, ...]:
        columns = {key: [attack[key] for attack in attacks[budget][name]] for key in attacks[budget][name][0]}
        rule, placement = (Counter(columns[key]).most_common(1)[0][0] for key in ("rule", "placement"))
        return (NAMES[name], f"worst: {budget}", interval(columns["error"]), rule, placement,
                f"{np.mean(columns['norm']):.1f}", f"{np.mean(columns['sum']):.2f}")

    def mean(budget: str, name: str) -> str:
        return interval([attack["error"] for attack in attacks[budget][name]])

    rows = [item for name in NAMES for item in (
        *((NAMES[name], f"the paper's v', {rule}", interval(paper[name][:, i, at]), rule, "random",
           f"{3 * SCALE:.1f}", "0.3 to 0.9") for i, rule in enumerate(RULES)), *(row(name, b) for b in BUDGETS))]
    inside, span, free = BUDGETS
    return Findings(
        shown="Error of both one-layer models under the paper's attack and under the worst attack found by gradient "
              "ascent on the poisoning vector for every label rule and placement.",
        numbers=f"At outlier fraction {SEARCHED_AT:g} the worst attack inside theorem 2 (sum at least 0.3) raises "
                f"Mamba's error to {mean(inside, 'mamba')} and the worst combination of the training outliers to "
                f"{mean(span, 'mamba')}, while the paper's flip gives {paper['mamba'][:, 0, at].mean():.3f}; for the "
                f"linear Transformer the two give {mean(inside, 'linear')} and {mean(span, 'linear')}, and the worst "
                f"of all directions {mean(free, 'linear')}.",
        plots=[plot], tables=[Table(
            "mamba.attack", f"Errors at outlier fraction {SEARCHED_AT:g}; rule and placement chosen most often, mean "
            "norm and coefficient sum of u", ("model", "attack", "error", "rule", "placement", "norm", "sum"), rows)],
        specs=[(of[0].run, tests[at]) for of in models.values()],
        settings={"budgets": {name: repr(budget) for name, budget in BUDGETS.items()}})


ENTRY = Entry(
    "mamba.attack", "The worst attack within a budget, by search", "ours, after theorem 2", run,
    says="Three unseen directions with coefficient sums 0.3 to 0.9 are tried; theorem 2 promises a small error for all "
         "directions with a positive sum and at least the training scale.",
    sizes=sizes(seeds=(2, 2, 4), effort=({"steps": 3, "starts": 1, "searched": 64, "count": 500},
                                         {"steps": 10, "starts": 2, "searched": 128, "count": 2_000},
                                         {"steps": 20, "starts": 3, "searched": 256, "count": 2_000})),
    kind="figure", notes=(
        Note("2026-11-18", "An outlier with a negative coefficient sum moves Mamba's gate the other way than those of "
             "training; without a gate there is nothing to move. Definition 2 poisons every example by itself: the "
             "placements that gather poisoned examples go beyond it, even within theorem 2's directions and scales."),))
