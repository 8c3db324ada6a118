"""Claim `mamba.attention`: scores gather on the examples that share the query's pattern.

Rules, written before the run, on attacked test prompts. Corollary 1, for the one-layer Mamba of figure 2: after
training the score mass on same-pattern examples is at least 1 (the corollary's constant order), the absolute value of
that on the others at most a tenth of it (the proof bounds the absolute value of each score; 000, eq. 61). Remark 6: the
gap between them is larger than before training. Figures 3 and 5: in each layer of the three-layer Mamba that gap is
positive, and larger than before training; an earlier rule bounded the mass on others as well. Cost: no extra training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, short
from iclab.lab.entries import Checks, Entry, Findings, Note, Part, Rule
from iclab.lab.estimates import Difference, Mean
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.deep import DEEP, LAYERS, WATCHED_TEST, deep_models, mass_along
from iclab.papers.mamba.trained import one_layer_models, untrained
from iclab.probes.inside import score_masses
from iclab.training import Trained, begin, probed

LEAST, OTHER_SHARE = 1.0, 0.1
SAYS = ("The score mass on same-pattern examples grows to a constant order, that on the others stays below a bound, "
        "and the gap widens during training.")
NEGATIVE = Note("2026-11-18", "A negative score on an example of the task's other pattern, whose label is the opposite "
                "one, is a vote for the right answer.")


class Masses(NamedTuple):
    """Score mass before training and at every record."""

    same: Float[np.ndarray, "seeds records layers"]
    other: Float[np.ndarray, "seeds records layers"]

    def words(self, layer: int) -> str:
        """Its way from before training to the end."""
        ways = [f"{short(mass[:, 0, layer].mean())} to {short(mass[:, -1, layer].mean())}" for mass in self]
        return f"{ways[0]} on the same pattern, {ways[1]} on others"


def masses_along(models: Sequence[Trained]) -> Masses:
    """The masses recorded during training, and before."""
    before = [probed(mass_along, m.run, begin(m.run).params) for m in models]
    return Masses(*(np.stack([np.concatenate([[first[name]], (m.probes or {})[name]])
                              for m, first in zip(models, before, strict=True)]) for name in Masses._fields))


def in_layer(masses: Masses, layer: int, name: str, times: float = 1.0) -> list[Check]:
    """Mass gathers on the same pattern, not on others, and the gap is more than `times` that before training."""
    same, other, gap = masses.same[:, -1, layer], masses.other[:, -1, layer], (masses.same - masses.other)[..., layer]
    grown = "growth of the gap" if times == 1 else f"gap less {times:g} times the untrained model's"
    return [Check(f"{name}: mass on the same pattern", Mean(same), ">=", LEAST),
            Check(f"{name}: mass on others less {OTHER_SHARE:g} of it", Mean(other - OTHER_SHARE * same), "<=", 0.0),
            Check(f"{name}: {grown}", Difference(gap[:, -1], times * gap[:, 0]), ">", 0.0)]


def corollary1(masses: dict[str, Masses]) -> list[Check]:
    """Mass of the one-layer model gathers on the same pattern, and that on others is small, whatever its sign."""
    same, other = (mass[:, -1, 0] for mass in masses["one layer"])
    return [Check("one layer: mass on the same pattern", Mean(same), ">=", LEAST),
            Check(f"one layer: absolute mass on others less {OTHER_SHARE:g} of it",
                  Mean(np.abs(other) - OTHER_SHARE * same), "<=", 0.0)]


def in_layers(layers: Sequence[int], times: float = 1.0) -> Checks:
    """An earlier rule of figures 3 and 5."""
    return lambda masses: [check for layer in layers for check in
                           in_layer(masses["three layers"], layer, f"layer {layer + 1}", times)]


def gaps(layers: Sequence[int]) -> Checks:
    """The rule of figures 3 and 5: more mass on the same pattern than on others, and more so than before training."""
    def checks(masses: dict[str, Masses]) -> list[Check]:
        gap = masses["three layers"].same - masses["three layers"].other
        return [check for layer in layers for check in (
            Check(f"layer {layer + 1}: gap after training", Mean(gap[:, -1, layer]), ">", 0.0),
            Check(f"layer {layer + 1}: growth of the gap", Difference(gap[:, -1, layer], gap[:, 0, layer]), ">", 0.0))]

    return checks


def figure(number: int, title: str, layers: Sequence[int], alias: str) -> Entry:
    """Figure 3 or 5."""
    def run(lab: Lab) -> Findings:
        models = deep_models(lab)["mamba"]
        masses = masses_along(models)
        panels = [Panel(f"layer {layer + 1}", [0, *models[0].steps.tolist()],
                        [Curve("same pattern as the query", masses.same[..., layer]),
                         Curve("other patterns", masses.other[..., layer])]) for layer in layers]
        numbers = [f"layer {layer + 1}: {masses.words(layer)}" for layer in layers]
        return Findings(
            shown="The sum of attention scores with the query, over examples with its pattern and over all others, "
                  "during training; bands are 95 % intervals over seeds.",
            numbers=f"From before training to its end, {'; '.join(numbers)}.", specs=[(models[0].run, WATCHED_TEST)],
            plots=[curve_figure(f"mamba.fig{number}", title, "Three-layer Mamba, attacked test prompts (flip, outlier "
                                "fraction 0.3): sum of the scores with the query over context examples.", panels,
                                "training step", "sum of scores", share_y=False)])

    return Entry(f"mamba.fig{number}", title, f"li2025mamba, figure {number}", run, says=SAYS, sizes=DEEP,
                 notes=(NEGATIVE,), kind="figure", aliases=(alias,))


def run(lab: Lab) -> Findings:
    """Measure the masses of the one-layer and of the three-layer models."""
    shallow = one_layer_models(lab, "mamba")
    seeds, records = [m.run.init_seed for m in shallow], ([untrained(m) for m in shallow], shallow)
    ends = [lab.remember(score_masses, models, WATCHED_TEST, count=lab.size.prompts, seeds=seeds) for models in records]
    masses = {"one layer": Masses(*(np.stack(mass, axis=1) for mass in zip(*ends, strict=True))),
              "three layers": masses_along(deep_models(lab)["mamba"])}
    numbers = [f"{name}{f', layer {layer + 1}' * (name != 'one layer')}: {of.words(layer)}"
               for name, of in masses.items() for layer in range(of.same.shape[-1])]
    return Findings(shown="Each check with its interval over seeds; the curves are figures 3 and 5.", measured=masses,
                    numbers=f"Score mass from before training to its end: {'; '.join(numbers)}.",
                    specs=[(shallow[0].run, WATCHED_TEST)])


def _figure_part(place: str, says: str, layers: Sequence[int]) -> Part:
    return Part("figure", place, says, gaps(layers), earlier=(
        Rule(in_layers(layers, 2.0), "The gap had to be twice that of the untrained model; the paper says only that "
             "it increases."),
        Rule(in_layers(layers), "It bounded the mass on others by a tenth of that on the same pattern; what the figure "
             "shows is a gap, which grows.")), replies={
        "holds": "This is what the figure shows, for a model trained with settings that the paper does not give.",
        "fails": "The figure's optimizer, step size and residual path are not given, and these are not they.",
        "inconclusive": "The mass on other patterns varies too much between seeds, or training was too short."})


ENTRY = Entry(
    "mamba.attention", "Scores gather on the query's pattern, in every layer", "li2025mamba, corollary 1, figures 3, 5",
    run, says="In every layer attention scores gather on the context examples that share the query's pattern.",
    sizes=DEEP, notes=(NEGATIVE,), parts=(
        Part("theorem", "corollary 1", "After training, the scores of examples with the query's pattern add up to at "
             "least a constant, those of all others to little.", corollary1, theory=("Corollary 1",), earlier=(
                 Rule(lambda masses: in_layer(masses["one layer"], 0, "one layer")[:2], "It bounded the mass on others "
                      "only from above; the proof bounds its absolute value (000, eq. 61)."),)),
        Part("remark", "remark 6", "The mass on the query's pattern increases during training, beyond that on others.",
             lambda masses: in_layer(masses["one layer"], 0, "one layer")[2:], theory=("Corollary 1",)),
        _figure_part("figure 3", "In the first of three layers scores gather on the query's pattern, more and more "
                     "during training.", (0,)),
        _figure_part("figure 5", "The second and third layers do the same.", range(1, LAYERS))))
