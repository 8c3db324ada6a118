"""Claim `mamba.gate`: gates shut poisoned examples out, and those of clean ones decay geometrically with distance.

Rule, written before the run, at outlier fraction 0.3, test outliers three times the training scale, for the one-layer
Mamba of figure 2 (the corollary's model) and for each layer of the three-layer one (the figures' model): over the
nearest 8 positions the mean gate of poisoned examples is at most a quarter of that of clean ones; and a geometric law
explains at least 0.9 of the variance of the clean gates' logarithms. Cost: a few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.figures.bars import Bars, gate_figure
from iclab.figures.plots import Plot
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, Table
from iclab.papers.mamba.deep import DEEP, LAYERS, deep_models
from iclab.papers.mamba.settings import attacked_prompts
from iclab.papers.mamba.trained import one_layer_models
from iclab.probes import UNIT, Interval, seed_interval
from iclab.probes.inside import fit_decay, gate_profiles
from iclab.sweeps.store import run_id
from iclab.training import Trained

FRACTION = 0.3
NEAREST = 8
SHARE_ALLOWED, EXPLAINED = 0.25, 0.9
TEST = attacked_prompts("flip", FRACTION)
PAPER_SAYS = ("In every layer the gates of examples with an outlier are very small; those of clean ones decay roughly "
              "exponentially with the distance from the query.")
STATEMENT = ("Gates of poisoned examples are near 0; those of clean examples decay geometrically with their distance "
             "from the query.")


@dataclass(frozen=True)
class Profile:
    """Gates of one layer, nearest example first, one row per seed."""

    name: str
    clean: Float[np.ndarray, "seeds examples"]
    poisoned: Float[np.ndarray, "seeds examples"]

    @property
    def share(self) -> Interval:
        """Mean gate of poisoned examples divided by that of clean ones, at the nearest positions."""
        near = slice(None, NEAREST)
        return seed_interval(np.nanmean(self.poisoned[:, near], axis=1) / self.clean[:, near].mean(axis=1))

    @property
    def ratio(self) -> Interval:
        """Fitted ratio of a clean example's gate to that of the next nearer one."""
        return seed_interval([fit_decay(row).ratio for row in self.clean])

    @property
    def explained(self) -> Interval:
        """Share of the variance of the log gates that the geometric law explains."""
        return seed_interval([fit_decay(row).explained for row in self.clean], within=UNIT)


def profiles(lab: Lab, shallow: Sequence[Trained], deep: Sequence[Trained]) -> list[Profile]:
    """Gate profiles of the one-layer model and of each of the three layers."""
    prompts = DEEP[lab.scale].prompts

    def compute() -> list[list]:
        parts = [gate_profiles(models, TEST, count=prompts, seeds=lab.seeds(len(models))) for models in (shallow, deep)]
        return [[gates.tolist() for gates in part] for part in parts]

    gates_by_depth = lab.store.recall("mamba-gates", [[m.run for m in (*shallow, *deep)], TEST, prompts], compute)
    names = [["one layer"], [f"layer {i + 1} of {LAYERS}" for i in range(LAYERS)]]
    return [Profile(name, np.array(clean)[:, i], np.array(poisoned)[:, i])
            for (clean, poisoned), layers in zip(gates_by_depth, names, strict=True) for i, name in enumerate(layers)]


def measure(lab: Lab) -> tuple[list[Profile], list[Trained]]:
    """Profiles of this scale's models, and the models."""
    size = DEEP[lab.scale]
    shallow, deep = one_layer_models(lab, "mamba", size.seeds), deep_models(lab)["mamba"]
    return profiles(lab, shallow, deep), [*shallow, *deep]


def bars(name: str, title: str, layers: Sequence[Profile]) -> Plot:
    """Gates by position, as in figures 4 and 6."""
    panels = []
    for profile in layers:
        fit = fit_decay(profile.clean.mean(axis=0))
        panels.append(Bars(profile.name, profile.clean, profile.poisoned, fit.at(profile.clean.shape[1]),
                           f"{fit.first:.2f} x {fit.ratio:.2f}^(distance - 1)"))
    return gate_figure(name, title, "Mean gate seen from the query at each position, under flip at outlier fraction "
                       f"{FRACTION:g}, test outliers three times the training scale; whiskers are 95 % intervals over "
                       "seeds, the dashed line is the geometric law fitted to clean examples.", panels)


def said(layers: Sequence[Profile]) -> str:
    """Shares and ratios in words."""
    return "; ".join(f"{profile.name.capitalize()}: poisoned gates are {profile.share.mean:.2f} "
                     f"[{profile.share.low:.2f}, {profile.share.high:.2f}] of clean ones, decay ratio "
                     f"{profile.ratio.mean:.2f}"
                     for profile in layers)


def figure_outcome(lab: Lab, name: str, title: str, layers: Sequence[int]) -> Outcome:
    """Figure 4 or 6."""
    measured, models = measure(lab)
    selected = [measured[1 + layer] for layer in layers]
    return Outcome(shown="Gate values by position in the prompt, without (green) and with (red) an outlier, and the "
                         "fitted geometric decay.", paper=PAPER_SAYS,
                   measured=f"{said(selected)}. Clean gates do decay geometrically. How strongly a layer shuts "
                            "outliers out varies with the layer and the seed: what one lets in, another stops.",
                   plots=[bars(name, title, selected)], seeds=lab.seeds(DEEP[lab.scale].seeds),
                   settings={"training": to_json(models[-1].run), "test": to_json(TEST)})


def checks(layers: Sequence[Profile]) -> list[Check]:
    """The rule above."""
    return [check for profile in layers for check in (
        Check.of(f"{profile.name}: gate of poisoned over clean examples", profile.share, "<=", SHARE_ALLOWED),
        Check.of(f"{profile.name}: variance explained by a geometric decay", profile.explained, ">=", EXPLAINED))]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    layers, models = measure(lab)
    judged = checks(layers)
    best = np.min([np.nanmean(p.poisoned[:, :NEAREST], axis=1) / p.clean[:, :NEAREST].mean(axis=1)
                   for p in layers[1:]], axis=0)
    table = Table("mamba.gate", "Gates at outlier fraction 0.3: mean over seeds [95 % interval]",
                  ("layer", "poisoned / clean", "decay ratio", "R^2 of the decay"),
                  [(p.name, *(f"{i.mean:.2f} [{i.low:.2f}, {i.high:.2f}]" for i in (p.share, p.ratio, p.explained)))
                   for p in layers])
    claim = Claim(id="mamba.gate", statement=STATEMENT, place="li2025mamba, corollary 2, figures 4, 6", checks=judged,
                  conditions=[], settings={"test": to_json(TEST), "three layers": to_json(models[-1].run)},
                  seeds=lab.seeds(DEEP[lab.scale].seeds), runs=[str(run_id(m.run)) for m in models], scale=lab.scale,
                  notes=[f"The layer that filters most differs from seed to seed: taking each seed's best layer, "
                         f"poisoned gates are {best.mean():.2f} of clean ones.",
                         "The corollary covers one layer; that each of three layers filters is what the figures show "
                         "for one trained model."])
    return Outcome(shown="Each check with a 95 % interval over seeds, for the one-layer Mamba and each layer of the "
                         "three-layer one; the bars of the latter are figures 4 and 6.", paper=PAPER_SAYS,
                   measured=f"Verdict: {claim.verdict}. {said(layers)}. The one-layer model shows the corollary as "
                            "stated. Three layers divide the work: a layer may let outliers in if another stops them; "
                            f"in each seed's best layer poisoned gates are {best.mean():.2f} of clean ones.",
                   plots=[bars("mamba.gate", "Gates of the one-layer Mamba", layers[:1])], tables=[table], claim=claim,
                   seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("mamba.gate", "claim", "Gates shut outliers out and decay with distance",
              "li2025mamba, corollary 2, figures 4, 6", run)
