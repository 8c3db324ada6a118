"""Claim `mamba.context`: how many context examples are needed as the outlier fraction f grows.

Rule, written before the run, for the models of figure 2 under flip. n is the number of examples at which the error
falls to 0.05. For the linear Transformer log(n / f) is regressed on log(1/2 - f), for Mamba log n on log(1 - f); the
theorems' exponents are -2 and -1, and each measured exponent must lie within 0.5 of its theorem's.
Cost: no extra training, 80,000 test prompts of 320 examples and as many of 64, about 6 s.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.figures.plots import curve_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.lab.powers import fit_law, law_panel, power_checks
from iclab.papers.mamba.settings import SIZES, attacked_prompts
from iclab.papers.mamba.trained import one_layer_models
from iclab.probes import UNIT, seed_interval
from iclab.probes.by_length import context_errors, needed_examples
from iclab.sweeps.store import run_id
from iclab.theory.mamba import EXAMPLES
from iclab.training import Trained

LENGTHS = {"linear": (10, 13, 16, 20, 26, 32, 40, 52, 64, 80, 100, 128, 160, 200, 256, 320),
           "mamba": (2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 26, 32, 40, 64)}
FRACTIONS = {"linear": (0.3, 0.34, 0.37, 0.4, 0.42), "mamba": (0.5, 0.6, 0.7, 0.8, 0.85)}
"""Close to where each theorem's number grows without bound."""
EXPONENTS = {"linear": -2.0, "mamba": -1.0}
TOLERANCE = 0.5
NEEDED = 0.05
SEEDS = {"quick": 4, "full": 4}
PROMPTS = {"quick": 1_000, "full": 4_000}
STATEMENT = ("As the outlier fraction f grows the linear Transformer needs about (1/2 - f)^-2 f context examples, "
             "Mamba only (1 - f)^-1.")


def measure(models: Sequence[Trained], seeds: Sequence[int], member: str, prompts: int
            ) -> Float[np.ndarray, "seeds fractions lengths"]:
    """Errors for every number of context examples."""
    lengths = LENGTHS[member]
    tests = [attacked_prompts("flip", fraction, prompt_length=max(lengths)) for fraction in FRACTIONS[member]]
    return context_errors(models, tests, lengths, count=prompts, seeds=seeds)


def exponents(member: str, counts: Float[np.ndarray, "seeds fractions"]) -> Float[np.ndarray, " seeds"]:
    """Each seed's exponent, from a regression of logarithms."""
    f = np.array(FRACTIONS[member])
    x = np.log(0.5 - f) if member == "linear" else np.log(1 - f)
    y = np.log(counts / f) if member == "linear" else np.log(counts)
    return np.array([np.polyfit(x[np.isfinite(row)], row[np.isfinite(row)], 1)[0] if np.isfinite(row).sum() > 2
                     else np.nan for row in y])


def checks(counts: dict[str, Float[np.ndarray, "seeds fractions"]]) -> list[Check]:
    """The rule above, and that the error falls to 0.05."""
    judged = []
    for member, theory in EXPONENTS.items():
        reached = np.isfinite(counts[member]).mean(axis=1)
        judged.append(Check.of(f"{member}: share of settings in which the error falls to {NEEDED}",
                               seed_interval(reached, within=UNIT), ">=", 1.0))
        interval = seed_interval(exponents(member, counts[member]))
        name = {"linear": "linear Transformer: exponent of (1/2 - f)", "mamba": "Mamba: exponent of (1 - f)"}[member]
        judged += power_checks(name, interval, theory, TOLERANCE)
    return judged


def run(lab: Lab) -> Outcome:
    """Judge the claim and draw both laws."""
    seeds, prompts = lab.seeds(SEEDS[lab.scale]), PROMPTS[lab.scale]
    counts, runs = {}, []
    for member in FRACTIONS:
        models = one_layer_models(lab, member, len(seeds))
        runs += [str(run_id(m.run)) for m in models]

        def compute(models: list[Trained] = models, member: str = member) -> list:
            return measure(models, seeds, member, prompts).tolist()

        errors = lab.store.recall("mamba-context", [[m.run for m in models], prompts], compute)
        counts[member] = needed_examples(LENGTHS[member], np.array(errors), NEEDED)
    panels, laws = [], []
    for member, fractions in FRACTIONS.items():
        order = EXAMPLES[member].order
        law = fit_law(EXAMPLES[member], {"f": [order(None, attacked_prompts("flip", f)) for f in fractions]},
                      {"f": counts[member]}, lab)
        laws.append(law)
        panels.append(law_panel("linear Transformer" if member == "linear" else "Mamba", fractions,
                                {member: counts[member]}, law.line("f"), "outlier fraction f"))
    plot = curve_figure("mamba.context", "Context examples needed for an error of 0.05",
                        "Under flip; dashed: " + " ".join(law.words for law in laws), panels, "", "context examples",
                        log_y=True, share_y=False)
    judged = checks(counts)
    size = SIZES[lab.scale]
    claim = Claim(id="mamba.context", statement=STATEMENT, place="li2025mamba, theorems 2 (d), 4 (d)", checks=judged,
                  conditions=[], settings={"test": to_json(attacked_prompts("flip", 0.3)), "prompts": prompts,
                                           "steps": size.steps}, seeds=seeds, runs=runs, scale=lab.scale)
    return Outcome(
        shown="How many context examples bring the error down to 0.05, against the fraction of flipped outliers.",
        paper="The number that the linear Transformer needs grows without bound as the fraction nears 1/2, Mamba's "
              "only as it nears 1.",
        measured=f"Verdict: {claim.verdict}. Exponents: linear Transformer {judged[1].measured:.2f} "
                 f"[{judged[1].low:.2f}, {judged[1].high:.2f}] (theorem -2), Mamba {judged[4].measured:.2f} "
                 f"[{judged[4].low:.2f}, {judged[4].high:.2f}] (theorem -1). At f = 0.42 the linear Transformer needs "
                 f"{np.nanmean(counts['linear'][:, -1]):.0f} examples, at f = 0.5 Mamba "
                 f"{np.nanmean(counts['mamba'][:, 0]):.1f} and at 0.85 {np.nanmean(counts['mamba'][:, -1]):.0f}.",
        plots=[plot], claim=claim, seeds=seeds, settings=claim.settings,
        constants=[constant for law in laws for constant in law.constants])


ENTRY = Entry("mamba.context", "claim", "Context examples needed as the outlier fraction grows",
              "li2025mamba, theorems 2 (d), 4 (d)", run)
