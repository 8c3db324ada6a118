"""Claim `mamba.gate`: gates shut poisoned examples out, and those of clean ones decay geometrically with distance.

Rules, written before the run, at outlier fraction 0.3, test outliers three times the training scale. Corollary 2 (i),
for the one-layer Mamba of figure 2: over the nearest 8 positions the mean gate of poisoned examples is at most a
quarter of that of clean ones. Corollary 2 (ii), same model: with G(j) the gate of the clean example that is j-th
nearest to the query among clean ones, the mean over prompts of the least 2^(j-1) G(j) over j is at least 0.1 (an order;
with every step 1/2 it is 1/4). Remark 7, same model: a geometric law explains at least 0.9 of the variance of the clean
gates' logarithms (an untrained model's too). Figures 4 and 6: both in each layer of the three-layer Mamba. Cost: a few
seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from iclab.figures.bars import Bars, gate_figure
from iclab.figures.plots import Plot
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Note, Part, Table
from iclab.lab.estimates import Mean, shown
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.deep import DEEP, deep_models
from iclab.papers.mamba.settings import attacked_prompts
from iclab.papers.mamba.trained import one_layer_models
from iclab.probes import UNIT
from iclab.probes.error_rate import averages
from iclab.probes.inside import fit_decay, gate_profiles
from iclab.probes.looks import Look, Numbers, Shown
from iclab.training import Trained

FRACTION = 0.3
NEAREST = 8
SHARE_ALLOWED, EXPLAINED, LEAST_SCALED = 0.25, 0.9, 0.1
LARGEST_SCALED = 1.0
"""What an example that is not clean counts in the least 2^(j-1) G(j); a gate is at most 1."""
TEST = attacked_prompts("flip", FRACTION)
SAYS = ("In every layer the gates of examples with an outlier are very small; those of clean ones decay roughly "
        "exponentially with the distance from the query.")


@dataclass(frozen=True)
class Profile:
    """Gates of one layer, nearest example first, one row per seed."""

    name: str
    clean: Float[np.ndarray, "seeds examples"]
    poisoned: Float[np.ndarray, "seeds examples"]
    least_scaled: Float[np.ndarray, " seeds"] | None = None
    """The least 2^(j-1) G(j) over clean examples."""

    @property
    def share(self) -> Mean:
        """Mean gate of poisoned examples divided by that of clean ones, at the nearest positions."""
        near = slice(None, NEAREST)
        return Mean(np.nanmean(self.poisoned[:, near], axis=1) / self.clean[:, near].mean(axis=1), (0.0, np.inf))

    @property
    def ratio(self) -> Mean:
        """Fitted ratio of a clean example's gate to that of the next nearer one."""
        return Mean([fit_decay(row).ratio for row in self.clean])

    @property
    def explained(self) -> Mean:
        """Share of the variance of the log gates that the geometric law explains."""
        return Mean([fit_decay(row).explained for row in self.clean], UNIT)

    def checks(self) -> list[Check]:
        """Poisoned examples are shut out; clean gates follow a geometric law."""
        return [Check(f"{self.name}: gate of poisoned over clean examples", self.share, "<=", SHARE_ALLOWED),
                Check(f"{self.name}: variance explained by a geometric decay", self.explained, ">=", EXPLAINED)]


def _least_scaled(shown: Shown) -> Float[Numbers, "1 layers"]:
    """The least 2^(j-1) G(j) over ranks j among a prompt's clean examples, averaged over prompts with one."""
    clean = ~shown.outlier[:, -2::-1]
    gates, rank = shown.gates[:, :, -2::-1], shown.arrays.cumsum(clean, -1)
    scaled = shown.arrays.where(clean[:, None], gates * 2.0 ** (rank - 1)[:, None], LARGEST_SCALED)
    return shown.arrays.stack([scaled.min(-1).mean(0)])


least_scaled = Look(_least_scaled, inside=True)


def least_scaled_gates(models: Sequence[Trained], seeds: Sequence[int], prompts: int
                       ) -> Float[np.ndarray, " seeds"]:
    """The least 2^(j-1) G(j) of the first layer of every model."""
    return averages(least_scaled, models, [TEST], prompts, seeds)[:, 0, 0, 0]


def local_bias(layers: Sequence[Profile]) -> list[Check]:
    """Gates of clean examples fall no faster than by half from one clean example to the next."""
    return [Check("one layer: least 2^(j-1) G(j) over clean examples", Mean(layers[0].least_scaled, (0.0, np.inf)),
                  ">=", LEAST_SCALED)]


def profiles(lab: Lab, models: Sequence[Trained]) -> list[Profile]:
    """Gate profiles of every layer of these models."""
    seeds = [trained.run.init_seed for trained in models]
    clean, poisoned = lab.remember(gate_profiles, models, TEST, count=lab.size.prompts, seeds=seeds)
    depth = clean.shape[1]
    return [Profile("one layer" if depth == 1 else f"layer {i + 1} of {depth}", clean[:, i], poisoned[:, i])
            for i in range(depth)]


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


def words(layers: Sequence[Profile]) -> str:
    """Shares and ratios in words."""
    return "; ".join("{}: poisoned gates are {:.2f} [{:.2f}, {:.2f}] of clean ones, decay ratio {:.2f}".format(
        profile.name.capitalize(), *shown(profile.share), profile.ratio.value) for profile in layers)


def figure(number: int, title: str, layers: Sequence[int], alias: str) -> Entry:
    """Figure 4 or 6."""
    def run(lab: Lab) -> Findings:
        models = deep_models(lab)["mamba"]
        selected = [profiles(lab, models)[layer] for layer in layers]
        return Findings(shown="Gate values by position in the prompt, without (green) and with (red) an outlier, and "
                              "the fitted geometric decay.", numbers=f"{words(selected)}.",
                        plots=[bars(f"mamba.fig{number}", title, selected)], specs=[(models[0].run, TEST)])

    return Entry(f"mamba.fig{number}", title, f"li2025mamba, figure {number}", run, says=SAYS, sizes=DEEP,
                 kind="figure", aliases=(alias,))


def run(lab: Lab) -> Findings:
    """Measure the gates of the one-layer model and of each of the three layers."""
    shallow = one_layer_models(lab, "mamba")
    least = lab.remember(least_scaled_gates, shallow, [m.run.init_seed for m in shallow], lab.size.prompts)
    layers = [*(replace(profile, least_scaled=least) for profile in profiles(lab, shallow)),
              *profiles(lab, deep_models(lab)["mamba"])]
    best = np.min([profile.share.values for profile in layers[1:]], axis=0).mean()
    table = Table("mamba.gate", "Gates at outlier fraction 0.3: mean over seeds [95 % interval]",
                  ("layer", "poisoned / clean", "decay ratio", "R^2 of the decay"),
                  [(p.name, *("{:.2f} [{:.2f}, {:.2f}]".format(*shown(estimate))
                              for estimate in (p.share, p.ratio, p.explained))) for p in layers])
    return Findings(shown="Gates of the one-layer Mamba by position, and a table of all layers; the bars of three "
                          "layers are figures 4 and 6.", measured=layers,
                    numbers=f"{words(layers)}. In one layer the least 2^(j-1) G(j) over clean examples is "
                            f"{np.mean(least):.2f}. In the layer of each seed that filters most, poisoned gates are "
                            f"{best:.2f} of clean ones.",
                    plots=[bars("mamba.gate", "Gates of the one-layer Mamba", layers[:1])], tables=[table],
                    specs=[(shallow[0].run, TEST)])


ENTRY = Entry(
    "mamba.gate", "Gates shut outliers out and decay with distance", "li2025mamba, corollary 2, figures 4, 6", run,
    says="Gates of poisoned examples are near 0; those of clean examples decay geometrically with their distance from "
         "the query.", sizes=DEEP, notes=(
        Note("2026-11-18", "How strongly a layer shuts outliers out varies much between seeds."),), parts=(
        Part("theorem", "corollary 2 (i)", "Gates of examples with an outlier are close to 0.",
             lambda layers: layers[0].checks()[:1], theory=("Corollary 2",)),
        Part("theorem", "corollary 2 (ii)", "The gate of the j-th nearest clean example is at least of the order of "
             "1 / 2^(j-1).", local_bias, theory=("Corollary 2",)),
        Part("remark", "remark 7", "Gates of clean examples decay exponentially with their distance from the query.",
             lambda layers: layers[0].checks()[1:], theory=("Corollary 2",)),
        Part("figure", "figure 4", "The first of three layers shuts outliers out, and its clean gates decay.",
             lambda layers: layers[1].checks()),
        Part("figure", "figure 6", "The second and third layers do the same.",
             lambda layers: [check for layer in layers[2:] for check in layer.checks()])))
