"""Claim `mamba.cause`: the gates are what makes Mamba filter, those of poisoned examples, and they can be transplanted.

The papers observe gates of poisoned examples near 0 and small errors; that one causes the other is shown by setting
them. Rules, under flip with the outliers of figure 2. Exactly linear: with all gates at 1 Mamba's output is the sum
`sum_i y_i p_i^T W_B^T W_C p_query` of its own weights, to a relative difference of 1e-4. Near a trained one: its error
is then within 0.05 of that of the linear Transformer of figure 2, at outlier fractions 0.4 and 0.6. The other rules are
about fraction 0.6. Transplanted: the linear Transformer with Mamba's gates is within 0.02 of the floor and of Mamba.
Learned: with the gates of an untrained Mamba its error is above 0.4. Poisoned examples: with only their gates at 1
Mamba's error is above 0.4. Clean examples: with only theirs at 1 it stays within 0.02 of the floor. A look at one seed
after 2,000 steps came before these rules. Added after their first run, before its own: a gate lets a token in and
forgets those before it; without forgetting (every decay at 1) the error stays within 0.02 of the floor, and with
forgetting alone (every intake at 1) it is above 0.4.
Cost: figure 2's models, 1.4 million test prompts, about 20 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.claims import Check, between
from iclab.lab.entries import Entry, Findings, Part, Table
from iclab.lab.estimates import Difference, Mean, Rate, shown
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.settings import attacked_prompts, sizes
from iclab.papers.mamba.trained import one_layer_models, untrained
from iclab.probes import information_floor
from iclab.probes.interventions import clamp, graft, intervene
from iclab.training import Trained

FRACTIONS = (0.2, 0.4, 0.6, 0.8)
COMPARED, JUDGED = (0.4, 0.6), 0.6
EXACT, NEAR_LINEAR, EXCESS_ALLOWED, BROKEN = 1e-4, 0.05, 0.02, 0.4
FLOOR = information_floor(attacked_prompts("flip", JUDGED))
FORMULA_PROMPTS = 200
MAMBA, LINEAR = "Mamba", "linear Transformer"
OPEN, GRAFTED, UNLEARNED = "Mamba, all gates 1", "linear, Mamba's gates", "linear, untrained gates"
POISONED, CLEAN = "Mamba, poisoned gates 1", "Mamba, clean gates 1"
REMEMBERS, FORGETS = "Mamba, no forgetting", "Mamba, forgetting alone"


class Cause(NamedTuple):
    """Errors at every fraction, by model, and how far Mamba with open gates is from the linear formula."""

    errors: Mapping[str, Float[np.ndarray, "seeds fractions"]]
    prompts: int
    differences: Float[np.ndarray, " seeds"]

    def at(self, name: str, fraction: float = JUDGED) -> Float[np.ndarray, " seeds"]:
        """Errors of a model at one fraction."""
        return self.errors[name][:, FRACTIONS.index(fraction)]

    def excess(self, name: str) -> Rate:
        """A model's error over the floor at the judged fraction."""
        return Rate(self.at(name), self.prompts, FLOOR)


def changed(mamba: Sequence[Trained], linear: Sequence[Trained]) -> dict[str, list[Trained]]:
    """Both models and what interventions make of them, seed by seed."""
    opened = {OPEN: clamp("gates", 1.0), POISONED: clamp("gates", 1.0, where="poisoned"),
              CLEAN: clamp("gates", 1.0, where="clean"), REMEMBERS: clamp("log_decay", 0.0),
              FORGETS: clamp("intake", 1.0)}
    return {MAMBA: list(mamba), LINEAR: list(linear),
            **{name: [intervene(model, change) for model in mamba] for name, change in opened.items()},
            GRAFTED: [graft(one, other, "gates") for one, other in zip(linear, mamba, strict=True)],
            UNLEARNED: [graft(one, untrained(other), "gates") for one, other in zip(linear, mamba, strict=True)]}


def from_formula(models: Sequence[Trained]) -> Float[np.ndarray, " seeds"]:
    """The largest difference of a model's output from the sum without gates of its weights, relative to the largest."""
    differences = []
    for model in models:
        batch = attacked_prompts("flip", JUDGED).sample(model.run.init_seed, FORMULA_PROMPTS)
        P = np.asarray(jax.vmap(model.run.model.embedding.columns)(batch), float)[..., :model.params[0].W_B.shape[1]]
        W_B, W_C = (np.asarray(weights, float) for weights in model.params[0][:2])
        linear = np.einsum("bi,bis,bs->b", P[..., -1], P @ W_B.T, P[:, -1] @ W_C.T)
        differences.append(np.abs(model.predict(batch) - linear).max() / np.abs(linear).max())
    return np.array(differences)


def exactly_linear(cause: Cause) -> list[Check]:
    """Without gates the sum is linear attention's."""
    return [Check("largest relative difference from the sum without gates", Mean(cause.differences), "<=", EXACT)]


def near_trained(cause: Cause) -> list[Check]:
    """The error is that of a linear Transformer that was trained as one."""
    return [check for fraction in COMPARED for check in between(
        f"error less the linear Transformer's at {fraction:g}",
        Difference(cause.at(OPEN, fraction), cause.at(LINEAR, fraction), cause.prompts), -NEAR_LINEAR, NEAR_LINEAR)]


def transplanted(cause: Cause) -> list[Check]:
    """Gates filter in another model."""
    return [Check("excess over the floor", cause.excess(GRAFTED), "<=", EXCESS_ALLOWED),
            Check("error less Mamba's", Difference(cause.at(GRAFTED), cause.at(MAMBA), cause.prompts), "<=",
                  EXCESS_ALLOWED)]


def learned(cause: Cause) -> list[Check]:
    """Gates that were not trained do not."""
    return [Check("error with untrained gates", Rate(cause.at(UNLEARNED), cause.prompts), ">", BROKEN)]


def poisoned_gates(cause: Cause) -> list[Check]:
    """Opening the gates of poisoned examples lets the attack in."""
    return [Check("error with open gates of poisoned examples", Rate(cause.at(POISONED), cause.prompts), ">", BROKEN)]


def clean_gates(cause: Cause) -> list[Check]:
    """Opening those of clean examples does not."""
    return [Check("excess over the floor with open gates of clean examples", cause.excess(CLEAN), "<=",
                  EXCESS_ALLOWED)]


def intake(cause: Cause) -> list[Check]:
    """What a token lets in filters, what it forgets does not."""
    return [Check("excess over the floor without forgetting", cause.excess(REMEMBERS), "<=", EXCESS_ALLOWED),
            Check("error with forgetting alone", Rate(cause.at(FORGETS), cause.prompts), ">", BROKEN)]


def measure(lab: Lab, models: Mapping[str, list[Trained]]) -> Cause:
    """Attack all of them."""
    tests = [attacked_prompts("flip", fraction) for fraction in FRACTIONS]
    return Cause({name: lab.errors(of, tests) for name, of in models.items()}, lab.size.prompts,
                 lab.remember(from_formula, models[OPEN]))


def run(lab: Lab) -> Findings:
    """Set the gates, transplant them, attack."""
    mamba, linear = (one_layer_models(lab, member) for member in ("mamba", "linear"))
    models = changed(mamba, linear)
    cause = measure(lab, models)
    floor = [information_floor(attacked_prompts("flip", fraction)) for fraction in FRACTIONS]
    groups = {"gates removed or transplanted": (MAMBA, OPEN, LINEAR, GRAFTED, UNLEARNED),
              "gates of some examples at 1": (MAMBA, POISONED, CLEAN),
              "half of the gate": (MAMBA, REMEMBERS, FORGETS)}
    plot = error_figure("mamba.cause", "Interventions on the gates", "Error against the outlier fraction, flip.",
                        [Panel(title, FRACTIONS, [Curve(name, cause.errors[name]) for name in names], floor=floor)
                         for title, names in groups.items()], "outlier fraction at test")
    rows: list[tuple[Any, ...]] = [
        (name, *(f"{of.mean:.3f} [{of.low:.3f}, {of.high:.3f}]" for fraction in FRACTIONS
                 for of in [shown(Rate(cause.at(name, fraction), cause.prompts))])) for name in cause.errors]
    return Findings(
        shown="Error under flip of Mamba with gates held at 1, for all, for poisoned or for clean examples, and of the "
              "linear Transformer with the gates of Mamba.",
        measured=cause, numbers=f"Errors at {JUDGED:g} (floor {FLOOR:.4f}): " + ", ".join(
            f"{cause.at(name).mean():.3f} ({name})" for name in cause.errors) + ".",
        plots=[plot], tables=[Table("mamba.cause", "Error by outlier fraction",
                                    ("model", *(f"at {fraction:g}" for fraction in FRACTIONS)), rows)],
        specs=[(of[0].run, attacked_prompts("flip", JUDGED)) for of in (mamba, linear)])


NEAR = "The number lies too near to the threshold for this many seeds."
ENTRY = Entry(
    "mamba.cause", "Are the gates the cause?", "ours, after li2025mamba, corollary 2", run,
    says="Corollary 2 describes gates that shut poisoned examples out, next to a small error. If they are its cause, "
         "removing them makes Mamba a linear Transformer, and transplanting them makes a linear Transformer filter.",
    sizes=sizes(prompts=(500, 1_000, 5_000)), parts=(
        Part("ours", "exactly linear", "With all gates at 1 Mamba is linear attention with its weights.",
             exactly_linear, replies={"holds": "Equation 3 without its gates is the linear Transformer's sum."}),
        Part("ours", "near a trained one", "With all gates at 1 Mamba errs as often as a linear Transformer that was "
             "trained as one.", near_trained, replies={
                 "holds": "Training with gates leaves the same attention behind them.",
                 "fails": "Training with gates leaves another attention behind them, with another error.",
                 "inconclusive": NEAR}),
        Part("ours", "transplanted", "A linear Transformer with Mamba's gates filters as Mamba does.", transplanted,
             replies={"holds": "The gates alone carry the filter: nothing else of Mamba is needed.",
                      "fails": "Mamba's attention has adapted to its gates.", "inconclusive": NEAR}),
        Part("ours", "learned", "With the gates of an untrained Mamba it does not.", learned, replies={
            "holds": "A gate filters because of what it has learned.", "inconclusive": NEAR,
            "fails": "Random gates are enough to hold the attack off."}),
        Part("ours", "poisoned examples", "Opening the gates of poisoned examples alone lets the attack in.",
             poisoned_gates, replies={"holds": "It is their being shut that protects.", "inconclusive": NEAR,
                                      "fails": "Open gates of poisoned examples do little harm."}),
        Part("ours", "clean examples", "Opening those of clean examples alone does no harm.", clean_gates, replies={
            "holds": "The decay of clean gates with distance is not needed. (An untrained Mamba passes too: its gates "
                     "decay, and clean examples at 1 outweigh the rest.)",
            "fails": "The decay with distance matters as well.", "inconclusive": NEAR}),
        Part("ours", "the intake", "What a gate lets in filters, what it forgets does not.", intake, replies={
            "holds": "The factor sigmoid(w.p_i) of an example itself is the filter; the product over later tokens is "
                     "not, which is why relatives of Mamba without that factor do not filter.",
            "fails": "Forgetting takes part in the filter.", "inconclusive": NEAR})))
