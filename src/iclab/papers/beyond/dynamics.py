"""Claim `mamba.dynamics`, ours: the expected gradient alone predicts how Mamba and the linear Transformer learn.

`population_dynamics` follows the few order parameters that symmetry leaves, from the mean start, without a seed. It is
compared with SGD over seeds, and lemmas 3 to 6 are read off it (`growth.py`). T is that of `mamba.iterations`.

Rules. Set before anything was run: in every setting the mean of T over seeds is within 10 % of the predicted T, and
entries of W_B^T W_C between patterns after training as in `mamba.tasks` have the predicted signs. Added after a look on
seeds that judge: signs count where the prediction is at least 0.02 of the diagonal; entries are within 0.05 of the
diagonal of the predicted ones; from each seed's own w the predicted T is within 10 % of that seed's T (head to head at
the ends of the axis). From the mean start T of Mamba is judged at the ends of every axis, with many seeds, because they
differ by a seventh in where their gates start.

Lemma 3, on W_B up to step 100: entries on the diagonal, and those of partners against it, grow at least like
t (1 - p_a) / M1 (exponents beyond these by at most 0.35); others stay below 0.05 of that. Lemma 4, up to step 20: w
falls at least like t (1 - p_a) / V along outliers, and like t (1 - p_a) / M1 along relevant patterns. Lemma 5, at 4 T:
-w.p of poisoned examples grows like log M1 at least (exponent 0.65), that of clean ones not with M1 (exponent at most
0.35). Lemma 6, up to step 20: the mean of sum_i G_i (l - i + 1) does not grow with l_tr. Ours: along outliers w falls
in proportion to p_a, too; it falls at least twice as fast before T as in phase one, and from 2 T to 4 T at most half as
fast as before T. The rates are the lemmas' own; the steps at which they are read, and the rules of ours, were set after
a look. Lemma 5 failed at T, 2 T and 4 T alike, with up to 12 patterns; then 24 were added.
Cost: 1,200 short trainings and 280 followed populations, about a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.parallel import each
from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, worst
from iclab.lab.entries import Entry, Findings, Note, Part, Size, Table
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab
from iclab.lab.powers import counted
from iclab.papers.beyond.growth import (
    LATE,
    Growth,
    lemma3,
    lemma4,
    lemma5,
    lemma6,
    lemma_run,
    logits,
    measure_growth,
    share_of_poison,
    two_phases,
    values_of,
)
from iclab.papers.mamba import iterations
from iclab.papers.mamba.iterations import SETTINGS, TARGET, USUAL, a_run, steps_of
from iclab.papers.mamba.shifts import a_run as family_run
from iclab.papers.mamba.shifts import by_shift, scores_by_shift
from iclab.probes.scaling import iterations_to
from iclab.training import Run
from iclab.training.order import order_parameters, order_probe
from iclab.training.population import population_dynamics

WITHIN, VISIBLE, CLOSE = 0.1, 0.02, 0.05
LINEAR = ("linear", "linear, delta 0.02", "linear, head to head", "delta")
HEAD = "mamba, head to head"

Times = Mapping[str, Float[np.ndarray, "seeds points"]]
"""T by axis."""


class Compared(NamedTuple):
    """T of SGD over seeds, and the predicted one."""

    axes: Mapping[str, Sequence[float]]
    trained: Times
    predicted: Times
    """One row from the mean start; a row per seed from its own."""

    def ratios(self, name: str) -> list[tuple[str, Mean]]:
        """T over the predicted T in every setting."""
        return [(f"{name}, {axis} {value:g}", Mean(self.trained[axis][:, i] / self.predicted[axis][:, i]))
                for axis, values in self.axes.items() for i, value in enumerate(values)]


class Signs(NamedTuple):
    """Entries of W_B^T W_C between patterns, over the diagonal, by shift."""

    trained: Float[np.ndarray, "seeds shifts"]
    predicted: Float[np.ndarray, " shifts"]


class Dynamics(NamedTuple):
    """Everything that is measured."""

    mean_start: Mapping[str, Compared]
    own_start: Mapping[str, Compared]
    signs: Mapping[tuple[int, int], Signs]
    """By M1 and U."""
    growth: Growth


def times(runs: Sequence[Run], own_start: bool, prompts: int) -> list[float]:
    """Predicted steps to the target loss."""
    def job(run: Run) -> float:
        return iterations_to(population_dynamics(run, own_start=own_start, until=TARGET, prompts=prompts), TARGET)

    return [T for _, T in sorted(each(job, runs), key=lambda item: item[0])]


def compare(lab: Lab, name: str, axes: Mapping[str, Sequence[float]], seeds: Sequence[int], own_start: bool
            ) -> Compared:
    """T of SGD and the predicted one in every setting."""
    run_at = partial(a_run, name, steps_of(lab, name))
    usual = USUAL | {"delta": SETTINGS["linear"].delta}
    trained = counted(lab, "mamba.iterations", axes, usual, run_at, iterations.iterations, seeds).counts
    runs = {(axis, value): [run_at(axis, value).seeded(seed) for seed in (seeds if own_start else [0])]
            for axis, values in axes.items() for value in values}
    unique = list(dict.fromkeys(run for of in runs.values() for run in of))
    time_of = dict(zip(unique, lab.remember(times, unique, own_start, lab.size.population // (1 + own_start)),
                       strict=True))
    predicted = {axis: np.array([[time_of[run] for run in runs[axis, value]] for value in values], float).T
                 for axis, values in axes.items()}
    return Compared(axes, trained, predicted)


def ends(axes: Mapping[str, Sequence[float]]) -> dict[str, Sequence[float]]:
    """The first and the last value of every axis."""
    return {axis: tuple(dict.fromkeys((values[0], values[-1]))) for axis, values in axes.items()}


def predicted_scores(runs: Sequence[Run], prompts: int) -> list[np.ndarray]:
    """Predicted entries of W_B^T W_C between patterns, over the diagonal, by shift."""
    def job(run: Run) -> np.ndarray:
        weights = population_dynamics(run, prompts=prompts).weights
        return by_shift(weights.scores, weights.relevant)

    return [scores for _, scores in sorted(each(job, runs), key=lambda item: item[0])]


def measure_signs(lab: Lab) -> dict[tuple[int, int], Signs]:
    """Train on every family, and predict."""
    runs = {(M1, U): family_run(M1, U, lab.size.trained_per_pattern * M1) for M1, U in lab.size.families}
    predicted = lab.remember(predicted_scores, list(runs.values()), lab.size.population // 2)
    seeds = lab.seeds(lab.size.sign_seeds)
    return {key: Signs(np.stack([scores_by_shift(model) for model in lab.train_seeds(run, seeds)]), np.asarray(of))
            for (key, run), of in zip(runs.items(), predicted, strict=True)}


def measure(lab: Lab) -> Dynamics:
    """T in every setting, signs, growth."""
    size = lab.size
    few, own = lab.seeds(size.fewer_seeds), lab.seeds(size.own_seeds)
    mean_start = {name: compare(lab, name, axes, few, False) for name, axes in size.axes.items() if name in LINEAR}
    mean_start["mamba"] = compare(lab, "mamba", ends(size.axes["mamba"]), lab.seeds(), False)
    own_start = {"mamba": compare(lab, "mamba", size.axes["mamba"], own, True),
                 HEAD: compare(lab, HEAD, ends(size.axes[HEAD]), own, True)}
    return Dynamics(mean_start, own_start, measure_signs(lab), measure_growth(lab))


def near(compared: Callable[[Dynamics], Mapping[str, Compared]]) -> Callable[[Dynamics], list[Check]]:
    """T is within 10 % of the predicted one in every setting."""
    def checks(dynamics: Dynamics) -> list[Check]:
        ratios = [ratio for name, of in compared(dynamics).items() for ratio in of.ratios(name)]
        return [worst("T over the predicted T, where least ({})", ratios, ">=", 1 - WITHIN),
                worst("T over the predicted T, where largest ({})", ratios, "<=", 1 + WITHIN)]

    return checks


def of_linear(dynamics: Dynamics) -> Mapping[str, Compared]:
    """The settings of the linear Transformer."""
    return {name: of for name, of in dynamics.mean_start.items() if name in LINEAR}


def of_mamba(dynamics: Dynamics) -> Mapping[str, Compared]:
    """Those of Mamba, from the mean start."""
    return {name: of for name, of in dynamics.mean_start.items() if name not in LINEAR}


def same_signs(dynamics: Dynamics) -> list[Check]:
    """Visible entries have the predicted sign."""
    signed = [(f"M1 {M1}, U {U}, shift {k + 1}", Mean(np.sign(of.predicted[k]) * of.trained[:, k]))
              for (M1, U), of in dynamics.signs.items() for k in range(len(of.predicted))
              if abs(of.predicted[k]) >= VISIBLE]
    return [worst("entry times its predicted sign, where least ({})", signed, ">", 0.0)]


def same_sizes(dynamics: Dynamics) -> list[Check]:
    """Entries have the predicted sizes."""
    apart = [(f"M1 {M1}, U {U}, shift {k + 1}", Mean(of.trained[:, k] - of.predicted[k]))
             for (M1, U), of in dynamics.signs.items() for k in range(len(of.predicted))]
    return [worst("entry minus the predicted one, where least ({})", apart, ">=", -CLOSE),
            worst("entry minus the predicted one, where largest ({})", apart, "<=", CLOSE)]


def grown(rule: Callable[[Growth], list[Check]]) -> Callable[[Dynamics], list[Check]]:
    """A rule on growth rates."""
    return lambda dynamics: rule(dynamics.growth)


def followed_run(steps: int) -> Run:
    """The usual run, recorded often."""
    run = a_run("mamba", steps, "eta", 1.0)
    return replace(run, training=replace(run.training, record_every=max(1, steps // 40)))


def drawn(runs: Sequence[Run], prompts: int) -> list[Any]:
    """Predicted order parameters along training."""
    return [population_dynamics(run, prompts=prompts).order for run in runs]


def curves(lab: Lab) -> list[Panel]:
    """Order parameters along training, of SGD and as predicted."""
    run = followed_run(lab.size.drawn_steps)
    models = lab.train_seeds(run, lab.seeds(lab.size.fewer_seeds), order_probe(run.prompts, order_parameters))
    (predicted,) = lab.remember(drawn, [run], lab.size.population)
    panels = []
    for title, names in (("scores", ("score, shift 0", "score, shift 1")), ("gate", ("w, relevant", "w, outlier"))):
        seen = [Curve(name, np.stack([model.probes[name] for model in models if model.probes])) for name in names]
        lines = [("population" if i == 0 else "", predicted[name]) for i, name in enumerate(names)]
        panels.append(Panel(title, models[0].steps.tolist(), seen, lines=lines, x_label="step"))
    return panels


def sign_panels(signs: Mapping[tuple[int, int], Signs]) -> list[Panel]:
    """Entries by shift, a panel per family."""
    return [Panel(f"M1 {M1}, U {U}", list(range(1, len(of.predicted) + 1)), [Curve("SGD", of.trained)],
                  lines=[("population", of.predicted)], x_label="shift") for (M1, U), of in signs.items()]


def time_panels(dynamics: Dynamics) -> list[Panel]:
    """T along every axis, of SGD and as predicted from each seed's own start."""
    of = dynamics.own_start["mamba"]
    return [Panel(axis, list(values), [Curve("SGD", of.trained[axis])],
                  lines=[("population, same start of the gate", of.predicted[axis].mean(axis=0))], x_label=axis)
            for axis, values in of.axes.items()]


def spread_explained(dynamics: Dynamics) -> float:
    """The share of T's variance over seeds, within settings, that the start of the gate explains."""
    of = dynamics.own_start["mamba"]
    trained, predicted = (np.concatenate([np.log(part[axis]) for axis in of.axes], axis=1)
                          for part in (of.trained, of.predicted))
    rest = trained - predicted
    return 1 - float((rest - rest.mean(axis=0)).var() / (trained - trained.mean(axis=0)).var())


def in_range(ratios: Sequence[tuple[str, Mean]]) -> str:
    """The least and the largest of some ratios."""
    values = [mean.value for _, mean in ratios]
    return f"{min(values):.3f} to {max(values):.3f}"


def run(lab: Lab) -> Findings:
    """Measure, draw and tabulate."""
    dynamics = measure(lab)
    ratios = {kind: [ratio for name, of in found.items() for ratio in of.ratios(name)] for kind, found in (
        ("the linear Transformer", of_linear(dynamics)), ("Mamba, from the mean start", of_mamba(dynamics)),
        ("Mamba, from each seed's own start", dynamics.own_start))}
    M1 = values_of(dynamics.growth, "M1")
    late = [(f"{m:g}", *(f"{part.mean():.2f}" for multiple in (1, LATE)
                         for part in logits(dynamics.growth, m, multiple)), f"{np.log(m):.2f}") for m in M1]
    rows = [(M1, U, " ".join(f"{score:+.3f}" for score in of.predicted),
             " ".join(f"{score:+.3f}" for score in of.trained.mean(axis=0))) for (M1, U), of in dynamics.signs.items()]
    lemma_runs = [replace(run, training=replace(run.training, batch_size=4 * lab.size.population)) for run in (
        lemma_run(axis, value, int(lab.size.steps_per_pattern * lab.size.lemma_axes["M1"][-1]))
        for axis, values in lab.size.lemma_axes.items() for value in (values[0], values[-1]))]
    return Findings(
        shown="Order parameters, iterations to a loss of 0.2 and entries of W_B^T W_C by shift: SGD over seeds, and "
              "the population dynamics.",
        measured=dynamics,
        numbers="T over the predicted T is " + "; ".join(f"{in_range(of)} for {kind}" for kind, of in ratios.items())
                + f". The start of the gate explains {spread_explained(dynamics):.3f} of the variance of Mamba's log T "
                "over seeds. Entries by shift differ from the predicted ones by at most "
                + "{:.3f} of the diagonal.".format(max(float(np.abs(of.trained.mean(axis=0) - of.predicted).max())
                                                       for of in dynamics.signs.values())),
        plots=[curve_figure("mamba.dynamics", "Order parameters along training", "Mamba at the usual setting of "
                            "mamba.iterations: SGD over seeds, and the population dynamics from the mean start.",
                            curves(lab), "step", "order parameter", share_y=False),
               curve_figure("mamba.dynamics.T", "Iterations to a loss of 0.2", "SGD over seeds, and the population "
                            "dynamics from the same starts of the gate.", time_panels(dynamics), "", "iterations",
                            log_x=True, log_y=True),
               curve_figure("mamba.dynamics.signs", "Entries between patterns by shift", "W_B^T W_C over its diagonal "
                            "after training on U shifts.", sign_panels(dynamics.signs), "shift", "entry / diagonal")],
        tables=[Table("mamba.dynamics", "Entries of W_B^T W_C by shift, over the diagonal",
                      ("M1", "U", "predicted", "SGD"), rows),
                Table("mamba.dynamics.gate", "-w.p in the population dynamics",
                      ("M1", "clean, T", "poisoned, T", f"clean, {LATE} T", f"poisoned, {LATE} T", "log M1"), late)],
        specs={f"lemma {number}": [(run, run.prompts) for run in lemma_runs] for number in (3, 4, 5, 6)})


def axes_at(scale: str) -> dict[str, Any]:
    """The axes of `mamba.iterations` at a scale."""
    return dict(iterations.SIZES[scale].axes)


NEAR = "The number lies too near to what the rule allows for this many seeds."
FEWER = {"1 - p_a": (0.9, 0.75, 0.6, 0.4), "M1": (4, 6, 8, 12, 24), "V": (1, 3, 6), "l_tr": (10, 20, 40)}
SIZES = {
    "tiny": Size(seeds=2, fewer_seeds=2, sign_seeds=2, own_seeds=2, samplings=2, prompts=500, population=128, steps=200,
                 head_steps=60, drawn_steps=80, trained_per_pattern=15, steps_per_pattern=25, families=((6, 1),),
                 axes={"mamba": {"1 - p_a": (0.9, 0.6), "eta": (1.0, 2.0)}, "mamba, head to head": {"l_tr": (20,)},
                       "linear": {"1 - p_a": (0.9, 0.6)}},
                 lemma_axes={"1 - p_a": (0.9, 0.6), "M1": (6, 8), "V": (1, 3), "l_tr": (10, 20)}),
    "quick": Size(seeds=24, fewer_seeds=4, sign_seeds=4, own_seeds=4, samplings=3, prompts=1_000, population=1_024,
                  steps=700, head_steps=3_000, drawn_steps=600, trained_per_pattern=200, steps_per_pattern=135,
                  families=((6, 1), (12, 1)), axes=axes_at("quick"), lemma_axes=FEWER | {"M1": (4, 6, 8, 12)}),
    "full": Size(seeds=64, fewer_seeds=8, sign_seeds=16, own_seeds=6, samplings=4, prompts=1_000, population=2_048,
                 steps=1_000, head_steps=3_200, drawn_steps=1_000, trained_per_pattern=300, steps_per_pattern=135,
                 families=((6, 1), (6, 2), (12, 1), (12, 2), (20, 1)), axes=axes_at("full"), lemma_axes=FEWER)}
LEMMA: dict[str, Any] = {"theory": ("Theorem 1",), "measured": ("number of iterations",), "accuracy": TARGET}
ENTRY = Entry(
    "mamba.dynamics", "How training goes, without a seed", "ours, after lemmas 3 to 6 of li2025mamba", run,
    says="Can the expected gradient, in the few numbers that symmetry leaves, predict how long training takes and what "
         "it ends in, and does it grow as lemmas 3 to 6 say?", sizes=SIZES, notes=(
        Note("2026-11-19", "Eight seeds left the sizes of entries open; therefore sixteen."),), parts=(
        Part("ours", "T of the linear Transformer", "Its T is within 10 % of the predicted T in every setting of "
             "mamba.iterations.", near(of_linear), replies={
                 "holds": "The linear Transformer starts at the same weights for every seed, and a batch of 128 is "
                          "close to the population.", "inconclusive": NEAR,
                 "fails": "Noise of the batches matters in some setting."}),
        Part("ours", "T of Mamba, from the mean start", "Its mean T is within 10 % of the predicted T at the ends of "
             "every axis.", near(of_mamba), replies={
                 "holds": "No seed is needed to know about how long training takes; on average it takes a few percent "
                          "longer, because gates start at random.",
                 "inconclusive": "What random starts of the gate cost on average grows with beta, because w.p does, to "
                                 "about a tenth at beta 4.",
                 "fails": "What random starts of the gate cost on average is more than a tenth."}),
        Part("ours", "T of Mamba, from each seed's own gate", "Its T is within 10 % of the T predicted from the same "
             "start of the gate in the settings of mamba.iterations.", near(lambda dynamics: dynamics.own_start),
             replies={"holds": "Seeds differ in T because of where their gates start, not because of the prompts they "
                               "see.", "inconclusive": NEAR, "fails": "Noise of the batches matters in some setting."}),
        Part("ours", "off-diagonal signs", "Entries of W_B^T W_C between patterns have the predicted signs, those of "
             "pairs that no training task combines as well.", same_signs, replies={
                 "holds": "They follow from the expected gradient: what mamba.tasks sees in them is no accident of "
                          "seeds.", "inconclusive": NEAR, "fails": "Some entries are made by the noise of SGD."}),
        Part("ours", "off-diagonal sizes", "They have the predicted sizes.", same_sizes, replies={
            "holds": "The expected gradient leaves little to the noise.", "inconclusive": NEAR,
            "fails": "Noise of SGD moves some of them."}),
        Part("theorem", "lemma 3", "Entries of W_B on the diagonal grow like t (1 - p_a) / M1 at least, those of "
             "partners as fast against it, all others hardly.", grown(lemma3), **LEMMA, replies={
                 "holds": "The rates are the lemma's.", "inconclusive": NEAR, "fails": "A rate is not the lemma's.",
                 "outside": "The settings lie outside the premises of Theorem 1."}),
        Part("theorem", "lemma 4", "In phase one w falls like t (1 - p_a) / V at least along outliers, and like "
             "t (1 - p_a) / M1 along relevant patterns.", grown(lemma4), **LEMMA, replies={
                 "holds": "The rates are the lemma's.", "inconclusive": NEAR, "fails": "A rate is not the lemma's.",
                 "outside": "The settings lie outside the premises of Theorem 1."}),
        Part("theorem", "lemma 5", "At 4 T, -w.p is of the order of log M1 at least for poisoned examples, and of "
             "order 1 for clean ones.", grown(lemma5), **LEMMA, replies={
                 "holds": "The orders are the lemma's.", "inconclusive": NEAR,
                 "fails": "Poisoned examples are shut out far enough for the loss to vanish, which takes hardly more "
                          "with more patterns; nothing is left then that would drive the gate on to log M1.",
                 "outside": "The settings lie outside the premises of Theorem 1."}),
        Part("theorem", "lemma 6", "In phase one the gates weighted by distance sum to order 1.", grown(lemma6),
             **LEMMA, replies={
                 "holds": "The gate has hardly moved by then, and an open gate forgets geometrically.",
                 "inconclusive": NEAR, "fails": "The sum grows with the length.",
                 "outside": "The settings lie outside the premises of Theorem 1."}),
        Part("ours", "the share of poison in lemma 4", "Along outliers w falls in proportion to p_a as well.",
             grown(share_of_poison), replies={
                 "holds": "Lemma 4 leaves the factor p_a out, which is right for a p_a of order 1 only: few outliers "
                          "in training teach the gate slowly.", "inconclusive": NEAR,
                 "fails": "The fall does not depend on p_a as the share of poisoned examples suggests."}),
        Part("ours", "two phases of the gate", "Along outliers w falls ever faster up to T, and slower after it.",
             grown(two_phases), replies={
                 "holds": "The gate learns once the scores are large enough to be worth filtering, and stops when the "
                          "loss is small.", "inconclusive": NEAR,
                 "fails": "The gate falls evenly."})))
