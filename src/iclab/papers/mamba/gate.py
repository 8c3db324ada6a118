"""Claim `mamba.gate`: gates shut poisoned examples out, and those of clean ones decay geometrically with distance.

Rules, written before the run, at outlier fraction 0.3, test outliers three times the training scale. Corollary 2 (i),
for the one-layer Mamba of figure 2: of the poisoned examples next to the query, where no gate has decayed, at most one
in twenty has a gate above 1 / M1 (that of an untrained model is 1/4), and over the nearest 8 positions the mean gate of
poisoned examples is at most a quarter of that of clean ones; an earlier rule had only the latter. Ours: the latter for
test outliers as large as in training (settled after a look; it was the former, which says little). The corollary covers
every positive coefficient sum: the ratio of the means is at most a quarter for outliers as large as in training with a
sum of 0.1, too (added after a look at the errors of `mamba.unseen`). Corollary 2 (ii), same model: with G(j) the gate
of the clean example that is j-th nearest to the query among clean ones, the mean over prompts of the least 2^(j-1) G(j)
over j is at least 0.1 (an order; with every step 1/2 it is 1/4). Remark 7, same model: a geometric law explains at
least 0.9 of the variance of the clean gates' logarithms, and each gate is at most 0.95 of the next nearer one (both
hold for an untrained model too; an earlier rule had only the former).

Figures 4 and 6: the ratio of gates and the geometric law in each layer of the three-layer Mamba, with a setting that
was chosen on other seeds (`mamba.deep_search`; with the setting before it figure 4 failed and figure 6 was
inconclusive). Ours, settled after that search: the last layer, which the output is read from, shuts poison out, and
does so in at least half of the stacks; all three layers do in at most half of them. Cost: a few seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from iclab.figures.bars import Bars, gate_figure
from iclab.figures.plots import Plot
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part, Rule, Table
from iclab.lab.estimates import Mean, Share, shown
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.deep import DEEP, WATCHED, deep_models
from iclab.papers.mamba.settings import attacked_prompts, training_prompts
from iclab.papers.mamba.single import OnePrompt, one_prompt
from iclab.papers.mamba.trained import one_layer_models
from iclab.papers.mamba.unseen import directions
from iclab.probes import UNIT
from iclab.probes.error_rate import averages
from iclab.probes.inside import fit_decay, gate_profiles
from iclab.probes.looks import Look, Numbers, Shown
from iclab.prompts import Classification
from iclab.training import Trained

FRACTION = 0.3
NEAREST = 8
SHARE_ALLOWED, EXPLAINED, LEAST_SCALED = 0.25, 0.9, 0.1
MOST = 0.5
"""The share of stacks that is called most of them."""
OPEN_GATE, OPEN_ALLOWED = 1 / training_prompts().relevant_patterns, 0.05
"""A gate above 1 / M1 is open; corollary 2 (i) bounds those of poisoned examples by the inverse of a polynomial."""
RATIO_ALLOWED = 0.95
LARGEST_SCALED = 1.0
"""What an example that is not clean counts in the least 2^(j-1) G(j); a gate is at most 1."""
TEST = attacked_prompts("flip", FRACTION)
SMALL_SUM = 0.1
"""The least coefficient sum that is tried."""
SMALL_TEST = attacked_prompts("flip", FRACTION, 1.0, outlier_mixtures=directions(SMALL_SUM))
SCALES = (3.0, 1.0)
"""Of test outliers, in units of the training scale."""
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
    open_gates: Float[np.ndarray, "scales seeds"] | None = None
    """Share of open gates among poisoned examples next to the query, for test outliers at each of `SCALES`."""
    same_scale: Profile | None = None
    """The same layer, with test outliers as large as in training."""
    small_sum: Profile | None = None
    """As large as in training, and with a small coefficient sum."""

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


def _next_to_query(shown: Shown) -> Float[Numbers, "2 1"]:
    """The shares of prompts whose last example is poisoned, with an open gate and in all."""
    poisoned = shown.outlier[:, -2]
    number = shown.arrays.ones_like(shown.gates[:, 0, -2])
    return shown.arrays.stack([(number * (poisoned & (shown.gates[:, 0, -2] > OPEN_GATE))).mean(0, keepdims=True),
                               (number * poisoned).mean(0, keepdims=True)])


next_to_query = Look(_next_to_query, inside=True)


def open_gates(models: Sequence[Trained], seeds: Sequence[int], prompts: int) -> Float[np.ndarray, "scales seeds"]:
    """The share of open gates among poisoned examples next to the query, in one layer."""
    tests = [attacked_prompts("flip", FRACTION, scale) for scale in SCALES]
    opened, poisoned = np.moveaxis(averages(next_to_query, models, tests, prompts, seeds)[..., 0], -1, 0)
    return (opened / np.maximum(poisoned, 1e-12)).T


def shut_out(scale: float) -> Callable[[Sequence[Profile]], list[Check]]:
    """Gates of poisoned examples are near 0, at this scale of the test outliers."""
    def checks(layers: Sequence[Profile]) -> list[Check]:
        measured = layers[0].open_gates
        values = np.full(2, np.nan) if measured is None else measured[SCALES.index(scale)]
        return [Check(f"poisoned examples next to the query whose gate is above 1 / M1, kappa_a' = {scale:g} kappa_a",
                      Mean(values, UNIT), "<=", OPEN_ALLOWED)]

    return checks


def same_scale(layers: Sequence[Profile]) -> list[Check]:
    """Poisoned examples are shut out when their outliers are as large as in training."""
    assert layers[0].same_scale is not None
    return [Check("gate of poisoned over clean examples, kappa_a' = kappa_a", layers[0].same_scale.share, "<=",
                  SHARE_ALLOWED)]


def small_sum(layers: Sequence[Profile]) -> list[Check]:
    """Poisoned examples are shut out when their outliers are as large as in training and have a small sum."""
    assert layers[0].small_sum is not None
    return [Check(f"gate of poisoned over clean examples, L = {SMALL_SUM:g}, kappa_a' = kappa_a",
                  layers[0].small_sum.share, "<=", SHARE_ALLOWED)]


def remark7(layers: Sequence[Profile]) -> list[Check]:
    """Gates of clean examples follow a geometric law that falls."""
    return [layers[0].checks()[1], Check("one layer: decay ratio", layers[0].ratio, "<=", RATIO_ALLOWED)]


def local_bias(layers: Sequence[Profile]) -> list[Check]:
    """Gates of clean examples fall no faster than by half from one clean example to the next."""
    return [Check("one layer: least 2^(j-1) G(j) over clean examples", Mean(layers[0].least_scaled, (0.0, np.inf)),
                  ">=", LEAST_SCALED)]


def profiles(lab: Lab, models: Sequence[Trained], test: Classification = TEST) -> list[Profile]:
    """Gate profiles of every layer of these models."""
    seeds = [trained.run.init_seed for trained in models]
    clean, poisoned = lab.remember(gate_profiles, models, test, count=lab.size.prompts, seeds=seeds)
    depth = clean.shape[1]
    return [Profile("one layer" if depth == 1 else f"layer {i + 1} of {depth}", clean[:, i], poisoned[:, i])
            for i in range(depth)]


def shuts(layers: Sequence[Profile]) -> Bool[np.ndarray, "layers seeds"]:
    """Which layers of which stacks shut poison out."""
    return np.array([profile.share.values for profile in layers]) <= SHARE_ALLOWED


def last_layer(layers: Sequence[Profile]) -> list[Check]:
    """The layer that the output is read from shuts poison out."""
    stack = layers[1:]
    return [Check("last layer: gate of poisoned over clean examples", stack[-1].share, "<=", SHARE_ALLOWED),
            Check("share of stacks whose last layer shuts poison out", Share(shuts(stack)[-1]), ">=", MOST)]


def not_every_layer(layers: Sequence[Profile]) -> list[Check]:
    """Few stacks have three layers that shut poison out."""
    return [Check("share of stacks in which every layer shuts poison out", Share(shuts(layers[1:]).all(axis=0)), "<=",
                  MOST)]


def law(title: str, clean: Float[np.ndarray, "seeds examples"], poisoned: Float[np.ndarray, "seeds examples"]) -> Bars:
    """One panel, with the geometric law fitted to the clean gates."""
    fit = fit_decay(clean.mean(axis=0))
    return Bars(title, clean, poisoned, fit.at(clean.shape[1]), f"{fit.first:.2f} x {fit.ratio:.2f}^(distance - 1)")


def bars(name: str, title: str, layers: Sequence[Profile], single: OnePrompt | None = None) -> Plot:
    """Gates by position, as in figures 4 and 6; beside each layer's mean its gates in a single prompt, if given."""
    panels, beside = [], ""
    for profile in layers:
        mean = law(profile.name, profile.clean, profile.poisoned)
        if single is not None:
            one = single.rows(int(profile.name.split()[1]) - 1)
            panels.append(Bars(f"{profile.name}, one prompt", *one, mean.fit, "the law of the mean"))
            beside = " Beside each mean, one prompt of the first seed's model (the paper's figure shows one)."
        panels.append(mean)
    return gate_figure(name, title, "Mean gate seen from the query at each position, under flip at outlier fraction "
                       f"{FRACTION:g}, test outliers three times the training scale; whiskers are 95 % intervals over "
                       f"seeds, the dashed line is the geometric law fitted to clean examples.{beside}", panels)


def words(layers: Sequence[Profile]) -> str:
    """Shares and ratios in words."""
    return "; ".join("{}: poisoned gates are {:.2f} [{:.2f}, {:.2f}] of clean ones, decay ratio {:.2f}".format(
        profile.name.capitalize(), *shown(profile.share), profile.ratio.value) for profile in layers)


def figure(number: int, title: str, layers: Sequence[int], alias: str) -> Entry:
    """Figure 4 or 6."""
    def run(lab: Lab) -> Findings:
        models = deep_models(lab)["mamba"]
        selected = [profiles(lab, models)[layer] for layer in layers]
        return Findings(shown="Gate values by position, without (green) and with (red) an outlier, and the fitted "
                              "geometric decay; in one prompt and on average.", numbers=f"{words(selected)}.",
                        plots=[bars(f"mamba.fig{number}", title, selected, one_prompt(models[0], TEST, WATCHED))],
                        specs=[(models[0].run, TEST)])

    return Entry(f"mamba.fig{number}", title, f"li2025mamba, figure {number}", run, says=SAYS, sizes=DEEP,
                 kind="figure", aliases=(alias,))


def run(lab: Lab) -> Findings:
    """Measure the gates of the one-layer model and of each of the three layers."""
    shallow = one_layer_models(lab, "mamba")
    least = lab.remember(least_scaled_gates, shallow, [m.run.init_seed for m in shallow], lab.size.prompts)
    opened = lab.remember(open_gates, shallow, [m.run.init_seed for m in shallow], lab.size.prompts)
    (same,) = profiles(lab, shallow, attacked_prompts("flip", FRACTION, SCALES[1]))
    (small,) = profiles(lab, shallow, SMALL_TEST)
    layers = [*(replace(profile, least_scaled=least, open_gates=np.asarray(opened), same_scale=same, small_sum=small)
                for profile in profiles(lab, shallow)),
              *profiles(lab, deep_models(lab)["mamba"])]
    filters = shuts(layers[1:])
    table = Table("mamba.gate", "Gates at outlier fraction 0.3: mean over seeds [95 % interval]",
                  ("layer", "poisoned / clean", "decay ratio", "R^2 of the decay"),
                  [(p.name, *("{:.2f} [{:.2f}, {:.2f}]".format(*shown(estimate))
                              for estimate in (p.share, p.ratio, p.explained))) for p in layers])
    return Findings(shown="Gates of the one-layer Mamba by position, and a table of all layers; the bars of three "
                          "layers are figures 4 and 6.", measured=layers,
                    numbers=f"{words(layers)}. In one layer the least 2^(j-1) G(j) over clean examples is "
                            f"{np.mean(least):.2f}. Of {filters.shape[1]} stacks, layers 1 to {len(filters)} shut "
                            f"poison out in {', '.join(map(str, filters.sum(axis=1)))}; some layer does in "
                            f"{filters.any(axis=0).sum()}, every layer in {filters.all(axis=0).sum()}.",
                    plots=[bars("mamba.gate", "Gates of the one-layer Mamba", layers[:1])], tables=[table],
                    specs={**{place: [(shallow[0].run, TEST)]
                              for place in ("corollary 2 (i)", "corollary 2 (ii)", "remark 7")},
                           SMALL_PLACE: [(shallow[0].run, SMALL_TEST)]})


SMALL_PLACE = "corollary 2 (i), small coefficient sums"
ENTRY = Entry(
    "mamba.gate", "Gates shut outliers out and decay with distance", "li2025mamba, corollary 2, figures 4, 6", run,
    says="Gates of poisoned examples are near 0; those of clean examples decay geometrically with their distance from "
         "the query.", sizes=DEEP, parts=(
        Part("theorem", "corollary 2 (i)", "Gates of examples with an outlier are close to 0.",
             lambda layers: [*shut_out(SCALES[0])(layers), *layers[0].checks()[:1]], theory=("Corollary 2",),
             earlier=(Rule(lambda layers: layers[0].checks()[:1], "It compared means of gates; the corollary bounds "
                           "the gate itself."),), replies={
                 "holds": "This is what the corollary says of one trained layer, for outliers it never saw.",
                 "fails": "Within its premises the corollary would be contradicted.",
                 "inconclusive": "The seeds differ too much in how far their gate has turned against outliers.",
                 "outside": "The corollary speaks of models trained within the premises of Theorem 1."}),
        Part("theorem", SMALL_PLACE, "Gates of examples with an outlier as large as in training and any positive "
             "coefficient sum (here 0.1) are close to 0.", small_sum, theory=("Corollary 2",), replies={
                 "holds": "The corollary covers every positive sum, and this is a small one.",
                 "fails": "L is a constant in our proof: the gate sees the product of sum and scale, and eq. 11 should "
                          "bound it from below.",
                 "inconclusive": "How much poison passes is too near the quarter that was allowed.",
                 "outside": "The corollary speaks of models trained within the premises of Theorem 1."}),
        Part("theorem", "corollary 2 (ii)", "The gate of the j-th nearest clean example is at least of the order of "
             "1 / 2^(j-1).", local_bias, theory=("Corollary 2",), replies={
                 "holds": "Clean examples fade no faster than by half from one to the next, as the corollary has it.",
                 "fails": "Within its premises the corollary would be contradicted.",
                 "inconclusive": "The mean of the least scaled gate is too near the order that was asked for.",
                 "outside": "The corollary speaks of models trained within the premises of Theorem 1."}),
        Part("remark", "remark 7", "Gates of clean examples decay exponentially with their distance from the query.",
             remark7, theory=("Corollary 2",), earlier=(
                 Rule(lambda layers: layers[0].checks()[1:], "A geometric law with any ratio passed, one that does "
                      "not fall as well."),), replies={
                 "holds": "The decay is exponential on average, and it comes from the form of the gate more than from "
                          "training.",
                 "fails": "The remark reads a lower bound as a law, which the gates then do not follow.",
                 "inconclusive": "The fit of the law differs too much between seeds.",
                 "outside": "The remark speaks of models trained within the premises of Theorem 1."}),
        Part("figure", "figure 4", "The first of three layers shuts outliers out, and its clean gates decay.",
             lambda layers: layers[1].checks(), replies={
                 "holds": "The figure shows the same for one prompt.",
                 "fails": "Not reproduced on average at our settings (SGD with step size 0.2; 0.1, 0.4 and Adam with "
                          "0.001 were tried, too, by mamba.deep_search, whose notes have Adam with 0.01 close to "
                          "it); the figure shows one prompt of one model trained in a way that is not given.",
                 "inconclusive": "Whether the first layer filters depends on the seed; the figure shows one model."}),
        Part("figure", "figure 6", "The second and third layers do the same.",
             lambda layers: [check for layer in layers[2:] for check in layer.checks()], replies={
                 "holds": "The figure shows the same for one prompt.",
                 "fails": "The figure shows one prompt of one model with settings that are not given; on average over "
                          "seeds one of our two upper layers does not filter as it does.",
                 "inconclusive": "Whether the second layer filters depends on the seed, so much that more seeds would "
                                 "measure a mixture; the figure shows one model."}),
        Part("ours", "outliers no larger than in training", "At kappa_a' = kappa_a as well, gates of examples with an "
             "outlier are close to 0 in one layer.", same_scale, earlier=(
                 Rule(shut_out(SCALES[1]), "It bounded the gate by 1 / M1, which that of a clean example hardly "
                      "exceeds."),), replies={
                 "holds": "The corollary asks for no larger outliers than those of training, and none are needed.",
                 "fails": "The corollary hides a constant, and at six patterns it takes larger outliers than those of "
                          "training to shut out directions whose coefficients nearly cancel.",
                 "inconclusive": "How much poison passes at this scale is too near the quarter that was allowed."}),
        Part("ours", "the last layer", "At the settings used here the last layer, which the output is read from, shuts "
             "outliers out.", last_layer, replies={
                 "holds": "At these settings (SGD with step size 0.2) one filter before the output is enough for the "
                          "loss to vanish, and it forms in the last layer; at others it can form elsewhere.",
                 "fails": "In this setting the filter does not form where the output is read.",
                 "inconclusive": "Too few seeds, or training too short, to tell."}),
        Part("ours", "every layer", "At three times the training scale, stacks in which all three layers shut outliers "
             "out are the exception.", not_every_layer, replies={
                 "holds": "Once a later layer filters nothing is left to learn for the others, so we think that the "
                          "trend of figures 4 and 6 is not what training usually ends in.",
                 "fails": "Most stacks filter in all of their layers, as figures 4 and 6 have it.",
                 "inconclusive": "Too few seeds to tell."})))
