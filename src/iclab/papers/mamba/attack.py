"""Figure `mamba.attack`, ours: the worst attack within a budget, found by search, on the models of figure 2.

Beyond the paper, which attacks with three fixed directions. The attacker poisons 30 % of the examples with one vector u
and chooses it, the label rule and the placement: (a) inside theorem 2 (combinations of the training outliers with a
coefficient sum of at least 0.3, norm between one and three times the training scale); (b) any combination of them, norm
up to three times the training scale; (c) any direction, same norm limit. The attacks found at 30 % are then tried at
other fractions. Cost: 24 searches over 9 pairs of rule and placement, about 12 s.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from iclab.core.identity import to_json
from iclab.core.parallel import each
from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.entries import Entry, Lab, Outcome, Table
from iclab.papers.mamba.settings import RULES, SIZES, attacked_prompts, one_layer_run, training_prompts
from iclab.papers.mamba.trained import one_layer_models
from iclab.probes import UNIT, information_floor, model_errors, seed_interval
from iclab.probes.attack_search import Budget, attack_error, worst_attack

SEARCHED_AT = 0.3
FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.5)
SCALE = float(training_prompts().outlier_scale)
BUDGETS = {
    "inside theorem 2": Budget(3 * SCALE, SCALE, least_sum=0.3),
    "span of the training outliers": Budget(3 * SCALE),
    "any direction": Budget(3 * SCALE, free=True),
}
MODELS = ("mamba", "linear")
NAMES = {"mamba": "Mamba", "linear": "linear Transformer"}
SEEDS = {"quick": 2, "full": 4}
EFFORT: dict[str, dict[str, int]] = {"quick": {"steps": 10, "starts": 2, "searched": 128, "count": 2_000},
                                     "full": {"steps": 20, "starts": 3, "searched": 256, "count": 2_000}}


def found(lab: Lab) -> dict[str, Any]:
    """The worst attack per budget and model with its errors at every fraction; the errors of the paper's attacks."""
    seeds, effort = lab.seeds(SEEDS[lab.scale]), EFFORT[lab.scale]
    models = {name: one_layer_models(lab, name, len(seeds)) for name in MODELS}

    def compute() -> dict[str, Any]:
        jobs = [(budget, name, i) for budget in BUDGETS for name in MODELS for i in range(len(seeds))]

        def job(item: tuple[str, str, int]) -> dict[str, Any]:
            budget, name, i = item
            model, seed = models[name][i], seeds[i]
            attack = worst_attack(model, attacked_prompts("flip", SEARCHED_AT), BUDGETS[budget], seed=seed, **effort)
            errors = [attack_error(model, attacked_prompts("flip", fraction), attack, count=effort["count"], seed=seed)
                      for fraction in FRACTIONS]
            return {"rule": attack.rule, "placement": attack.placement, "norm": attack.norm,
                    "sum": attack.coefficient_sum, "error": attack.error, "errors": errors}

        searched = {"/".join(map(str, jobs[i])): result for i, result in each(job, jobs)}
        tests = [attacked_prompts(rule, fraction) for rule in RULES for fraction in FRACTIONS]
        paper = {name: model_errors(models[name], tests, count=effort["count"], seeds=seeds).tolist()
                 for name in MODELS}
        return {"searched": searched, "paper": paper}

    return lab.store.recall("mamba-attack", [[m.run for trained in models.values() for m in trained], effort, FRACTIONS,
                                             [repr(budget) for budget in BUDGETS.values()]], compute)


def run(lab: Lab) -> Outcome:
    """Search, tabulate and draw."""
    seeds, results = lab.seeds(SEEDS[lab.scale]), found(lab)

    def attacks(budget: str, name: str) -> list[dict[str, Any]]:
        return [results["searched"][f"{budget}/{name}/{i}"] for i in range(len(seeds))]

    paper = {name: np.array(results["paper"][name]).reshape(len(seeds), len(RULES), len(FRACTIONS)) for name in MODELS}
    floor = [information_floor(attacked_prompts("flip", fraction)) for fraction in FRACTIONS]
    panels = [Panel("the paper's flip", FRACTIONS, [Curve(name, paper[name][:, 0]) for name in MODELS], floor=floor)]
    panels += [Panel(f"worst: {budget}", FRACTIONS,
                     [Curve(name, np.array([attack["errors"] for attack in attacks(budget, name)])) for name in MODELS],
                     floor=floor) for budget in BUDGETS]
    plot = error_figure("mamba.attack", "The paper's attack and the worst attack found by search",
                        "Error against the outlier fraction. The worst attack is searched at fraction "
                        f"{SEARCHED_AT:g} for each seed's model and measured on fresh prompts.", panels,
                        "outlier fraction at test")
    rows: list[tuple[Any, ...]] = []
    at = FRACTIONS.index(SEARCHED_AT)

    def interval(values: Any) -> str:
        mean = seed_interval(values, within=UNIT)
        return f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]"

    for name in MODELS:
        rows += [(NAMES[name], f"the paper's v', {rule}", interval(paper[name][:, i, at]), rule, "random",
                  f"{3 * SCALE:.1f}", "0.3 to 0.9") for i, rule in enumerate(RULES)]
        for budget in BUDGETS:
            worst = attacks(budget, name)
            rule, placement = (Counter(attack[key] for attack in worst).most_common(1)[0][0]
                               for key in ("rule", "placement"))
            norm, total = (np.mean([attack[key] for attack in worst]) for key in ("norm", "sum"))
            rows.append((NAMES[name], f"worst: {budget}", interval([attack["error"] for attack in worst]), rule,
                         placement, f"{norm:.1f}", f"{total:.2f}"))
    table = Table("mamba.attack", f"Errors at outlier fraction {SEARCHED_AT:g}; rule and placement chosen most often, "
                  "mean norm and coefficient sum of u",
                  ("model", "attack", "error", "rule", "placement", "norm", "sum"), rows)

    def mean(budget: str, name: str) -> float:
        return float(np.mean([attack["error"] for attack in attacks(budget, name)]))

    inside, span, free = BUDGETS
    return Outcome(
        shown="Error of both one-layer models under the paper's attack and under the worst attack found by gradient "
              "ascent on the poisoning vector for every label rule and placement.",
        paper="Three unseen directions with coefficient sums 0.3 to 0.9 are tried; theorem 2 promises a small error "
              "for all directions with a positive sum and at least the training scale.",
        measured=f"At outlier fraction {SEARCHED_AT:g} the worst attack inside theorem 2 (sum at least 0.3) raises "
                 f"Mamba's error to {mean(inside, 'mamba'):.2f} and the worst combination of the training outliers to "
                 f"{mean(span, 'mamba'):.2f}, while the paper's flip gives {paper['mamba'][:, 0, at].mean():.3f}; for "
                 f"the linear Transformer the two give {mean(inside, 'linear'):.2f} and {mean(span, 'linear'):.2f}, "
                 f"and the worst of all directions {mean(free, 'linear'):.2f}. Mamba's gate can be opened as well as "
                 "shut: an outlier with a negative coefficient sum pushes it the other way, so that a poisoned example "
                 "next to the query is let in fully and shuts out all clean ones behind it. Without a gate there is "
                 "nothing to open.",
        plots=[plot], tables=[table], seeds=seeds,
        settings={"training": to_json(one_layer_run("mamba", SIZES[lab.scale].steps)),
                  "budgets": {name: repr(budget) for name, budget in BUDGETS.items()}, "effort": EFFORT[lab.scale]})


ENTRY = Entry("mamba.attack", "figure", "The worst attack within a budget, by search", "ours, after theorem 2", run)
