"""Claim `icl.context`: how many test examples are needed as fewer of them are decisive (figure 3, B).

Rule, written before the run, in and out of domain. One layer, K' = 5: n is the number of examples at which the error
falls to 0.05; every setting must reach it, log n is regressed on log alpha' for each seed, and the exponent must lie
within 0.5 of the theorem's -1. GPT-2, for which the figure shows only that fewer decisive examples require more
examples: with six examples its error at alpha' = 0.4 exceeds that at 1 by at least 0.05, at K' = K = 0.5 (at K' = 5 its
error never falls to 0.05, so n does not exist). Cost: no extra training, about 20 s.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.figures.plots import curve_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.lab.powers import fit_law, law_panel, power_checks, said
from iclab.papers.icl.settings import GPT2_TASKS, TRAINING_SCALE, in_domain, out_of_domain
from iclab.papers.icl.trained import gpt2_models, one_layer_models
from iclab.probes import UNIT, seed_interval
from iclab.probes.by_length import context_errors, needed_examples
from iclab.probes.scaling import exponent
from iclab.sweeps.store import run_id
from iclab.theory.icl import EXAMPLES, LENGTH_EXPONENT

WHERE = ("in domain", "out of domain")
FRACTIONS = {"softmax": (0.2, 0.3, 0.4, 0.6, 0.8, 1.0), "gpt2": (0.4, 0.6, 0.8, 1.0)}
LENGTHS = {"softmax": (2, 3, 5, 8, 12, 20, 32, 64), "gpt2": (3, 6, 10, 20)}
"""GPT-2 has no trained positions beyond 20 examples."""
PROMPTS = {"quick": {"softmax": 1_000, "gpt2": 500}, "full": {"softmax": 2_000, "gpt2": 1_000}}
SEEDS = {"quick": {"softmax": 4, "gpt2": 2}, "full": {"softmax": 4, "gpt2": 4}}
NEEDED, THEORY, TOLERANCE = 0.05, LENGTH_EXPONENT, 0.5
FEW, MORE = 6, 0.05
STATEMENT = "The number of test examples needed grows like 1 / alpha', in and out of domain."

Errors = dict[str, Float[np.ndarray, "seeds fractions lengths"]]


def test_of(model: str, where: str, fraction: float, scale: float) -> Any:
    """Test prompts of the longest length measured for this model."""
    changes = {"prompt_length": max(LENGTHS[model]), "irrelevant_scale": scale}
    if where == "out of domain":
        return out_of_domain(fraction, **changes)
    return in_domain(fraction, **changes, tasks=f"unseen:{GPT2_TASKS if model == 'gpt2' else 1}")


def measure(lab: Lab, model: str, scale: float) -> Errors:
    """Errors of a model for every domain, decisive fraction and number of examples."""
    count, prompts = SEEDS[lab.scale][model], PROMPTS[lab.scale][model]
    models = (one_layer_models(lab, 0.8) if model == "softmax" else gpt2_models(lab))[:count]
    tests = [test_of(model, where, fraction, scale) for where in WHERE for fraction in FRACTIONS[model]]

    def compute() -> list:
        return context_errors(models, tests, LENGTHS[model], count=prompts, seeds=lab.seeds(count)).tolist()

    errors = np.array(lab.store.recall("icl-context", [[m.run for m in models], tests, LENGTHS[model], prompts],
                                       compute))
    return dict(zip(WHERE, np.split(errors, len(WHERE), axis=1), strict=True))


def counts(errors: Errors) -> dict[str, Float[np.ndarray, "seeds fractions"]]:
    """Examples that the one-layer Transformer needs in each domain."""
    return {where: needed_examples(LENGTHS["softmax"], values, NEEDED) for where, values in errors.items()}


def checks(one_layer: Errors, gpt2: Errors) -> list[Check]:
    """The rule above."""
    judged = []
    for where, values in counts(one_layer).items():
        interval = exponent(FRACTIONS["softmax"], values)
        judged += [Check.of(f"one layer, {where}: share of settings in which the error falls to {NEEDED}",
                            seed_interval(np.isfinite(values).mean(axis=1), within=UNIT), ">=", 1.0),
                   *power_checks(f"one layer, {where}: exponent of alpha'", interval, THEORY, TOLERANCE)]
    for where, values in gpt2.items():
        few = values[:, :, LENGTHS["gpt2"].index(FEW)]
        judged.append(Check.of(f"GPT-2, {where}: error with {FEW} examples at alpha' = {FRACTIONS['gpt2'][0]:g} less "
                               "that at 1", seed_interval(few[:, 0] - few[:, -1]), ">=", MORE))
    return judged


def run(lab: Lab) -> Outcome:
    """Judge the claim and draw the law."""
    one_layer, gpt2 = measure(lab, "softmax", 5.0), measure(lab, "gpt2", TRAINING_SCALE)
    judged, needed = checks(one_layer, gpt2), counts(one_layer)
    models = [model for name, trained in (("softmax", one_layer_models(lab, 0.8)), ("gpt2", gpt2_models(lab)))
              for model in trained[:SEEDS[lab.scale][name]]]
    claim = Claim(id="icl.context", statement=STATEMENT, place="li2024icl, theorems 3.3, 3.4, figure 3 (B)",
                  checks=judged, conditions=[], seeds=lab.seeds(SEEDS[lab.scale]["softmax"]),
                  settings={"test": to_json(test_of("softmax", WHERE[0], 0.8, 5.0)), "prompts": PROMPTS[lab.scale],
                            "seeds": SEEDS[lab.scale]},
                  runs=[str(run_id(m.run)) for m in models], scale=lab.scale)
    x = np.array(FRACTIONS["softmax"])
    law = fit_law(EXAMPLES, {WHERE[0]: (1 / x).tolist()}, needed, lab)
    plot = curve_figure("icl.context", "Test examples needed for an error of 0.05",
                        "One-layer Transformer, K' = 5, against the fraction of decisive examples alpha'; dashed, "
                        f"fitted in domain: {law.words}", [law_panel("one layer", x.tolist(), needed,
                                                                     law.line(WHERE[0]))],
                        "alpha', fraction of decisive test examples", "examples needed", log_x=True, log_y=True)
    laws = {where: exponent(x.tolist(), values) for where, values in needed.items()}
    few = {where: values[:, :, LENGTHS["gpt2"].index(FEW)].mean(axis=0) for where, values in gpt2.items()}
    return Outcome(
        shown="How many examples bring the error down to 0.05, against the fraction of them that are decisive; figure "
              "3 shows GPT-2's curves.",
        paper="The number grows like 1 / alpha', in and out of domain.",
        measured=f"Verdict: {claim.verdict}. One layer, exponent of alpha': "
                 + "; ".join(f"{where} {said(law)}" for where, law in laws.items())
                 + f" (theorem -1). GPT-2 with {FEW} examples at alpha' = 0.4 and 1 (K' = 0.5): "
                 + "; ".join(f"{where} {values[0]:.3f} and {values[-1]:.3f}" for where, values in few.items())
                 + ". At K' = 5 its error is large for any number of examples (figure 3).",
        plots=[plot], claim=claim, seeds=claim.seeds, settings=claim.settings, constants=law.constants)


ENTRY = Entry("icl.context", "claim", "Test examples needed as fewer of them are decisive",
              "li2024icl, theorems 3.3, 3.4, figure 3 (B)", run)
