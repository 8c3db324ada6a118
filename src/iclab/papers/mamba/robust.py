"""Claim `mamba.robust`: Mamba stays at the floor up to outlier fraction 0.8, the linear Transformer fails past 1/2.

Rule, written before the run. Mamba's largest excess over the floor at fractions up to 0.8 is at most 0.01 for each
label rule; the linear Transformer's error at 0.6 under flip is above 0.4. Fraction 0.8 lies outside theorem 2 (c); the
conditions say so. Same runs as figure 2.
"""

from __future__ import annotations

import numpy as np

from iclab.core.identity import to_json
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.mamba.robustness import SIZES, Robustness, measure
from iclab.papers.mamba.settings import FRACTIONS, RULES, attacked_prompts, one_layer_run, training_prompts
from iclab.probes import UNIT, seed_interval
from iclab.theory.mamba import theorem2_conditions

EXCESS_ALLOWED = 0.01
LINEAR_BROKEN = 0.4
STATEMENT = ("With large enough test outliers one-layer Mamba's error stays at the information floor as the outlier "
             "fraction nears 0.8, whatever the poisoned labels; the linear Transformer fails past 1/2 under flip.")


def checks(result: Robustness) -> list[Check]:
    """The rule above, on measured errors."""
    upto = FRACTIONS.index(0.8) + 1
    judged = []
    for index, rule in enumerate(RULES):
        excess = result.errors["paper"]["mamba"][:, index, :upto] - result.floor[:upto]
        worst = int(np.argmax(excess.mean(axis=0)))
        judged.append(Check.of(f"Mamba, {rule}: largest excess over the floor up to 0.8 (at {FRACTIONS[worst]:g})",
                               seed_interval(excess[:, worst]), "<=", EXCESS_ALLOWED))
    linear = seed_interval(result.at("paper", "linear", "flip", 0.6), within=UNIT)
    return [*judged, Check.of("linear Transformer, flip: error at 0.6", linear, ">", LINEAR_BROKEN)]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    result = measure(lab)
    size = SIZES[lab.scale]
    test = attacked_prompts("flip", 0.8)
    same_scale = seed_interval(result.at("same_scale", "mamba", "flip", 0.8), within=UNIT)
    claim = Claim(
        id="mamba.robust", statement=STATEMENT, place="li2025mamba, figure 2, theorems 1-4",
        checks=checks(result), conditions=theorem2_conditions(training_prompts(), test),
        settings={"training": to_json(one_layer_run("mamba", size.steps)), "test": to_json(test),
                  "prompts": size.prompts},
        seeds=result.seeds, runs=result.runs, scale=lab.scale,
        notes=[f"Not judged: with kappa_a' = kappa_a Mamba's error at 0.8 under flip is {same_scale.mean:.3f} "
               f"[{same_scale.low:.3f}, {same_scale.high:.3f}]; the claim needs larger test outliers.",
               "A perfect filter that broke ties by whatever flipped labels get through would err at twice the floor "
               "(an excess of 0.0058) at 0.8 under flip."])
    worst = max(claim.checks[:-1], key=lambda check: check.measured)
    return Outcome(
        shown="Each check, its measured value with a 95 % interval over seeds, and the threshold it had to meet.",
        paper="Mamba tolerates outlier fractions close to 1, the linear Transformer only those below 1/2.",
        measured=f"Verdict: {claim.verdict}. Mamba's largest excess over the floor is {worst.measured:.4f} "
                 f"(allowed {EXCESS_ALLOWED}); the linear Transformer's error at 0.6 under flip is "
                 f"{claim.checks[-1].measured:.3f} (needs > {LINEAR_BROKEN}).",
        claim=claim, seeds=result.seeds, settings=claim.settings)


ENTRY = Entry("mamba.robust", "claim", "Mamba stays at the floor up to 0.8, the linear Transformer breaks at 1/2",
              "li2025mamba, figure 2, theorems 1-4", run)
