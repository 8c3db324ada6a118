"""Claim `cot.stages`: the gradient in the two stages of training, as lemmas F.5 to F.7 of the cot paper bound it.

Trained by SGD as the theorems ask (eta 0.9, B 300, prompts of 512 examples), at the paper's sizes (M 20, K 3) and at
sizes that the proof of lemma F.6 asks for, M >= K^4 / alpha (M 44, K 2). At recorded weights, reduced to the numbers
that symmetry leaves, the expected gradient and the powers of p_n in the bounds are computed from the same large batch.
The gradient is dL/dW itself, of |F - z|^2 / 2; p~ and p~' are columns with their position codes, p~ in the query's
place, and every pair of a kind must satisfy its inequality. A stage ends when the mean attention on other steps is at
most epsilon, as in equation 35: that chooses the open constant of T_1 in the lemmas' favour.

Rules. Written after a look at the population dynamics of the paper's sizes, and of M 40 with K 2, from the mean start,
and before any run on seeds that judge. F.5: at every record before the stage ends every inequality of 30 to 33 holds,
with its printed constants: its room (distance to the bound over the sum of both sizes) is at least 0; for epsilon 0.1,
and apart from it for 0.02.
F.6, at M 44 and K 2: the stage ends in every run, and its end outgrows log(K / epsilon) / alpha^2 neither in epsilon
(exponent at least -0.35) nor in alpha (at least -2.35). F.7: the inequalities 36 to 39 at every record after that,
epsilon 0.1. Ours: the closed form of `cot_bounds.closed_form` is within 0.1 of the largest of the four kinds, for every
kind, at every record of both settings; the stage ends like 1 / epsilon (exponent between -1.35 and -0.65); the
population dynamics predict T(attention > 0.9 on the query's step and pattern), and T(loss <= 0.1), within 10 %, at eta
0.9 and at eta 10 with B 60 and prompts of 20 examples. The attention is that of the reduced weights.
Cost: 56 trainings, 1,200 large batches, two followed populations, about 15 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.parallel import each
from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, between, worst
from iclab.lab.entries import Entry, Findings, Part, Size, Table
from iclab.lab.estimates import Mean, power
from iclab.lab.laboratory import Lab
from iclab.lab.powers import TOLERANCE, all_reach
from iclab.papers.beyond.cot_bounds import (
    KINDS,
    Attention,
    Bound,
    Kind,
    attention_of,
    closed_form,
    first_stage,
    second_stage,
)
from iclab.papers.cot.settings import EPSILON, a_run, covered_run
from iclab.probes.scaling import first_below, iterations_to
from iclab.training import Run, Trained
from iclab.training.chain_order import ChainWeights, all_numbers, from_numbers
from iclab.training.chain_population import FollowedChains
from iclab.training.order import order_probe
from iclab.training.population import population_dynamics

PAPER, PROOF, FAST = "M 20, K 3", "M 44, K 2", "M 20, K 3, eta 10"
SMALL = 0.02
EPSILONS = (0.2, 0.1, 0.05, 0.02, 0.01)
"""Ends of the first stage that are compared, at `PROOF`."""
EVERY, CLOSE, WITHIN, GATHERED = 5, 0.1, 0.1, 0.9


class Followed(NamedTuple):
    """One setting along training."""

    run: Run
    steps: Float[np.ndarray, " records"]
    gradient: Mapping[Kind, Float[np.ndarray, "seeds records pairs"]]
    attention: Attention
    T: Float[np.ndarray, " seeds"]
    """Steps to a loss of 0.1."""

    def before(self, eps: float) -> Float[np.ndarray, " records"]:
        """Which records lie before the end of the first stage."""
        late = np.flatnonzero(self.attention.elsewhere.mean(axis=0) > eps)
        return np.arange(len(self.steps)) <= (late[-1] if len(late) else -1)

    def end(self, eps: float) -> Float[np.ndarray, " seeds"]:
        """When the attention on other steps has fallen to epsilon."""
        return np.array([first_below(self.steps, row, eps) for row in self.attention.elsewhere])

    def gathered(self) -> Float[np.ndarray, " seeds"]:
        """When the attention on the query's step and pattern has risen to 0.9."""
        return np.array([first_below(self.steps, -row, -GATHERED) for row in self.attention.p])


class Stages(NamedTuple):
    """Everything that is measured."""

    trained: Mapping[str, Followed]
    """By setting."""
    by_alpha: Mapping[float, Followed]
    """The setting of the proof with other fractions of matching examples."""
    predicted: Mapping[str, Followed]
    """Of the population, in one row."""


def setting_run(setting: str, steps: int, alpha: float = 0.4) -> Run:
    """The training of a setting."""
    if setting == FAST:
        return a_run(steps, record_every=EVERY, matching_fraction=alpha)
    sizes = {"patterns": 44, "dimension": 44, "reasoning_steps": 2} if setting == PROOF else {}
    return covered_run(steps, record_every=EVERY, matching_fraction=alpha, **sizes)


def records_of(steps: int, count: int) -> list[int]:
    """About so many records, evenly on a logarithmic scale."""
    return sorted({EVERY * round(step / EVERY) for step in np.geomspace(EVERY, steps, count)})


def looked_at(run: Run, path: Sequence[ChainWeights], prompts: int, seed: int) -> list[Any]:
    """Gradients between pairs, by kind, and `Attention`, at all weights of a path; batches of their own."""
    large = replace(run, training=replace(run.training, batch_size=prompts))
    followed, K = FollowedChains(large, own_start=False), run.prompts.reasoning_steps
    gradients, attention = [], []
    for record, weights in enumerate(path):
        followed.place(weights)
        followed.advance(seed, record)
        gradient = followed.gradient()
        gradients.append([gradient.pairs(*kind) for kind in KINDS])
        attention.append(attention_of(followed.attended(), K))
    return [[np.array(rows) for rows in zip(*gradients, strict=True)],
            {name: np.array([row[name] for row in attention]) for name in Attention._fields}]


def look_at_trained(models: Sequence[Trained], records: Sequence[int], prompts: int) -> list[Any]:
    """`looked_at` of every model."""
    def job(model: Trained) -> list[Any]:
        path = [from_numbers(model.probes or {}, int(np.searchsorted(model.steps, record))) for record in records]
        return looked_at(model.run, path, prompts, 10_000 + model.run.data_seed)

    return [found for _, found in sorted(each(job, models), key=lambda item: item[0])]


def look_at_population(runs: Sequence[Run], records: Sequence[Sequence[int]], prompts: int) -> list[Any]:
    """`looked_at` of the population dynamics of every run, and their steps to a loss of 0.1."""
    def job(i: int) -> list[Any]:
        of = population_dynamics(runs[i], order=all_numbers, prompts=prompts)
        path = [from_numbers(of.order, int(np.searchsorted(of.steps, record))) for record in records[i]]
        return [looked_at(runs[i], path, prompts, 20_000), iterations_to(of, EPSILON)]

    return [found for _, found in sorted(each(job, range(len(runs))), key=lambda item: item[0])]


def together(run: Run, records: Sequence[int], found: Sequence[Any], T: Sequence[float]) -> Followed:
    """One setting, from what was seen of its seeds."""
    gradient = {kind: np.stack([gradients[i] for gradients, _ in found]) for i, kind in enumerate(KINDS)}
    return Followed(run, np.array(records, float), gradient,
                    Attention(*(np.stack([of[name] for _, of in found]) for name in Attention._fields)), np.array(T))


def follow_training(lab: Lab, setting: str, steps: int, alpha: float = 0.4) -> Followed:
    """Train all seeds in a setting, and look at them along training."""
    run, records = setting_run(setting, steps, alpha), records_of(steps, lab.size.records)
    models = lab.train_seeds(run, lab.seeds(), order_probe(run.prompts, all_numbers))
    return together(run, records, lab.remember(look_at_trained, models, records, lab.size.prompts),
                    [iterations_to(model, EPSILON) for model in models])


def measure(lab: Lab) -> Stages:
    """Train in all settings, and follow the population in two."""
    size = lab.size
    trained = {setting: follow_training(lab, setting, steps) for setting, steps in size.settings.items()}
    by_alpha = {alpha: follow_training(lab, PROOF, size.axis_steps, alpha) for alpha in size.fractions}
    names = [name for name in (PAPER, FAST) if name in trained]
    runs, records = [trained[name].run for name in names], [trained[name].steps.astype(int).tolist() for name in names]
    found = lab.remember(look_at_population, runs, records, size.population)
    return Stages(trained, by_alpha, {name: together(run, at, [seen], [T]) for name, run, at, (seen, T) in zip(
        names, runs, records, found, strict=True)})


def room(bound: Bound, gradient: Float[np.ndarray, "seeds records pairs"]) -> Float[np.ndarray, "seeds records pairs"]:
    """The distance between a gradient and its bound, below 0 beyond it, over the sum of both sizes, their means."""
    limit, value = bound.values[..., None], np.abs(gradient) if bound.side == "size" else gradient
    apart = value - limit if bound.side == "lower" else limit - value
    return apart / (np.abs(limit).mean(axis=0) + np.abs(gradient).mean(axis=0))


def inside(of: Followed, bounds: Sequence[Bound], chosen: Float[np.ndarray, " records"]
           ) -> dict[str, list[tuple[str, Mean]]]:
    """The room below or above every bound, at the chosen records and for every pair of its kind."""
    rooms: dict[str, list[tuple[str, Mean]]] = {}
    for bound in bounds:
        values = room(bound, of.gradient[bound.kind])
        rooms.setdefault(f"{bound.equation}, {bound.side}", []).extend(
            (f"step {of.steps[i]:.0f}", Mean(values[:, i, pair]))
            for i in np.flatnonzero(chosen) for pair in range(values.shape[2]))
    return rooms


def bounded(stages: Stages, chosen: Callable[[Followed], Mapping[str, list[tuple[str, Mean]]]]) -> list[Check]:
    """The least room of every inequality in both settings."""
    rooms: dict[str, list[tuple[str, Mean]]] = {}
    for setting in (PAPER, PROOF):
        for name, found in chosen(stages.trained[setting]).items():
            rooms.setdefault(name, []).extend((f"{setting}, {at}", mean) for at, mean in found)
    return [worst(f"room of equation {name}, where least ({{}})", found, ">=", 0.0) for name, found in rooms.items()
            if found]


def lemma_F5(stages: Stages, eps: float = EPSILON) -> list[Check]:
    """Equations 30 to 33 before the first stage ends."""
    return bounded(stages, lambda of: inside(of, first_stage(of.attention, of.run.prompts), of.before(eps)))


def lemma_F7(stages: Stages) -> list[Check]:
    """Equations 36 to 39 after the first stage."""
    return bounded(stages, lambda of: inside(of, second_stage(of.attention, of.run.prompts, EPSILON),
                                             ~of.before(EPSILON)))


def ends_by_epsilon(stages: Stages) -> Float[np.ndarray, "seeds epsilons"]:
    """When the first stage ends in the setting of the proof."""
    return np.stack([stages.trained[PROOF].end(eps) for eps in EPSILONS], axis=1)


def ends_by_alpha(stages: Stages) -> tuple[list[float], Float[np.ndarray, "seeds fractions"]]:
    """The same, at the usual epsilon, along the fraction of matching examples."""
    alphas = sorted(stages.by_alpha)
    return alphas, np.stack([stages.by_alpha[alpha].end(EPSILON) for alpha in alphas], axis=1)


def lemma_F6(stages: Stages) -> list[Check]:
    """Equation 34: the end of the first stage does not outgrow log(K / epsilon) / alpha^2."""
    K, (alphas, by_alpha), by_epsilon = 2, ends_by_alpha(stages), ends_by_epsilon(stages)
    return [all_reach("first stage ends", [by_alpha, by_epsilon]),
            Check("exponent of epsilon in the end of the first stage over log(K / epsilon)",
                  power(EPSILONS, by_epsilon / np.log(K / np.array(EPSILONS))), ">=", -TOLERANCE),
            Check("exponent of alpha in the end of the first stage", power(alphas, by_alpha), ">=", -2 - TOLERANCE)]


def slow_end(stages: Stages) -> list[Check]:
    """Ours: the first stage ends like 1 / epsilon."""
    return between("exponent of epsilon in the end of the first stage", power(EPSILONS, ends_by_epsilon(stages)),
                   -1 - TOLERANCE, -1 + TOLERANCE)


def apart_from_closed_form(of: Followed) -> dict[Kind, Float[np.ndarray, "seeds records"]]:
    """The mean gradient of a kind minus the closed form, over the largest gradient of all kinds."""
    means = {kind: of.gradient[kind].mean(axis=2) for kind in KINDS}
    largest = np.max([np.abs(values.mean(axis=0)) for values in means.values()], axis=0)
    return {kind: (means[kind] - values) / largest for kind, values in closed_form(of.attention,
                                                                                   of.run.prompts).items()}


def as_in_closed_form(stages: Stages) -> list[Check]:
    """Ours: the closed form."""
    apart = [(f"{KINDS[kind]}, {setting}, step {step:.0f}", Mean(values[:, i])) for setting in (PAPER, PROOF)
             for kind, values in apart_from_closed_form(stages.trained[setting]).items()
             for i, step in enumerate(stages.trained[setting].steps)]
    return [worst("gradient minus its closed form, where least ({})", apart, ">=", -CLOSE),
            worst("gradient minus its closed form, where largest ({})", apart, "<=", CLOSE)]


def ratios(stages: Stages) -> list[tuple[str, Mean]]:
    """T over the predicted T."""
    return [(f"{name}, {setting}", Mean(mine / predicted)) for setting, of in stages.predicted.items()
            for name, mine, predicted in (("attention", stages.trained[setting].gathered(), of.gathered()),
                                          ("loss", stages.trained[setting].T, of.T))]


def predicted_in_time(stages: Stages) -> list[Check]:
    """Ours: T is within 10 % of the predicted one."""
    return [worst("T over the predicted T, where least ({})", ratios(stages), ">=", 1 - WITHIN),
            worst("T over the predicted T, where largest ({})", ratios(stages), "<=", 1 + WITHIN)]


def drawn_bounds(of: Followed, kind: Kind, unit: Float[np.ndarray, " records"]) -> list[Float[np.ndarray, " records"]]:
    """The bounds of a kind in a unit: of lemma F.5 until the smaller epsilon, of lemma F.7 after the larger one;
    epsilon itself would be far outside."""
    drawn = []
    for at, bounds in ((of.before(SMALL), first_stage(of.attention, of.run.prompts)),
                       (~of.before(EPSILON), second_stage(of.attention, of.run.prompts, EPSILON))):
        for bound in bounds:
            if bound.kind == kind and bound.equation not in ("37", "39"):
                values = np.where(at, bound.values.mean(axis=0) / unit, np.nan)
                drawn += [values, -values] if bound.side == "size" else [values]
    return drawn


def drawn_panels(of: Followed) -> list[Panel]:
    """The gradient of every kind over the mean of p (1 - p)^2 / M, its closed form and bounds, and where the stages
    meet."""
    unit = of.attention.pq2.mean(axis=0) / of.run.prompts.patterns
    ends = [(f"attention on other steps {eps:g}", float(of.end(eps).mean())) for eps in (EPSILON, SMALL)]
    closed = closed_form(of.attention, of.run.prompts)
    return [Panel(name, of.steps.tolist(), [Curve("SGD", of.gradient[kind].mean(axis=2) / unit),
                                            Curve("closed form", closed[kind] / unit)],
                  lines=[("" if i else "bounds of the lemmas", values)
                         for i, values in enumerate(drawn_bounds(of, kind, unit))],
                  marks=[end for end in ends if np.isfinite(end[1])]) for kind, name in KINDS.items()]


def run(lab: Lab) -> Findings:
    """Measure, draw and tabulate."""
    stages = measure(lab)
    by_epsilon, (alphas, by_alpha) = ends_by_epsilon(stages), ends_by_alpha(stages)
    late = {name: of.gradient[True, True][:, -1].mean() / second_stage(of.attention, of.run.prompts, EPSILON)[0].values[
        :, -1].mean() for name, of in stages.trained.items() if name != FAST}
    furthest = max(float(np.abs(values.mean(axis=0)).max()) for name in (PAPER, PROOF)
                   for values in apart_from_closed_form(stages.trained[name]).values())
    rows = [(setting, f"{of.steps[i]:.0f}", f"{of.attention.p[:, i].mean():.3f}",
             f"{of.attention.elsewhere[:, i].mean():.4f}",
             *(f"{1000 * of.gradient[kind][:, i].mean():+.3f}" for kind in KINDS))
            for setting, of in stages.trained.items() for i in range(0, len(of.steps), 3)]
    lemma_runs = [(of.run, of.run.prompts) for name, of in stages.trained.items() if name != FAST]
    proof_runs = [(of.run, of.run.prompts) for of in (stages.trained[PROOF], *stages.by_alpha.values())]
    return Findings(
        shown="The expected gradient between pairs of columns along training, beside the bounds of the lemmas and a "
              "closed form.",
        measured=stages,
        numbers="At M 44 and K 2 the attention on other steps falls to " + ", ".join(
            f"{eps:g}" for eps in EPSILONS) + " at steps "
                + ", ".join(f"{step:.0f}" for step in by_epsilon.mean(axis=0)) + "; to 0.1 at alpha "
                + ", ".join(f"{alpha:g}" for alpha in alphas) + " at steps "
                + ", ".join(f"{step:.0f}" for step in by_alpha.mean(axis=0))
                + ". At the end of training the gradient of equation 36 is " + " and ".join(
                    f"{ratio:.2f} ({name})" for name, ratio in late.items())
                + f" times its bound. The closed form is off by at most {furthest:.3f} of the largest kind. T over the "
                  "predicted T: " + ", ".join(f"{mean.value:.3f} ({name})" for name, mean in ratios(stages)) + ".",
        plots=[curve_figure("cot.stages", "Gradient between columns in the two stages of training",
                            f"{PROOF}: mean over the pairs of a kind, in units of the mean of p (1 - p)^2 / M, with "
                            "the bounds of lemma F.5 until the attention on other steps is 0.02, and of lemma F.7 "
                            "once it is 0.1 (equations 37 and 39, a bound of 0.1 on the gradient itself, lie outside).",
                            drawn_panels(stages.trained[PROOF]),
                            "step", "gradient in its unit", log_x=True, share_y=False)],
        tables=[Table("cot.stages", "Gradients along training, in thousandths",
                      ("setting", "step", "p", "other steps", *KINDS.values()), rows)],
        specs={"lemma F.5": lemma_runs, "lemma F.5 at a smaller epsilon": lemma_runs, "lemma F.7": lemma_runs,
               "lemma F.6": proof_runs})


NEAR = "The number lies too near to what the rule allows for this many seeds."
LEMMA: dict[str, Any] = {"theory": ("Lemmas F.5 and F.7",), "constant": 1.0}
SIZES = {
    "tiny": Size(seeds=2, steps=60, prompts=240, population=240, records=6, settings={PAPER: 60, PROOF: 60, FAST: 40},
                 fractions=(0.4, 0.7), axis_steps=40),
    "quick": Size(seeds=8, steps=1_600, prompts=2_048, population=1_024, records=20,
                  settings={PAPER: 1_700, PROOF: 700, FAST: 300}, fractions=(0.4, 0.7), axis_steps=150),
    "full": Size(seeds=8, steps=1_600, prompts=4_096, population=1_024, records=28,
                 settings={PAPER: 1_700, PROOF: 800, FAST: 300}, fractions=(0.4, 0.5, 0.6, 0.75), axis_steps=200)}
ENTRY = Entry(
    "cot.stages", "The gradient in the two stages of training", "ours, after lemmas F.5 to F.7 of li2024cot", run,
    says="Is the gradient between columns within the bounds of the lemmas behind theorem 1, and what is it?",
    sizes=SIZES, parts=(
        Part("theorem", "lemma F.5", "Before the attention on other steps has fallen to 0.1, equations 30 to 33 bound "
             "the gradient between columns.", lemma_F5, **LEMMA, accuracy=EPSILON, replies={
                 "holds": "The bounds hold with the constants that are printed.", "inconclusive": NEAR,
                 "fails": "The bounds are orders; the proof uses their signs and their powers of K and M.",
                 "outside": "The settings lie outside the premises of the lemma."}),
        Part("theorem", "lemma F.5 at a smaller epsilon", "Before it has fallen to 0.02 they do so too.",
             lambda stages: lemma_F5(stages, SMALL), **LEMMA, accuracy=SMALL, replies={
                 "holds": "The bounds hold with the constants that are printed.", "inconclusive": NEAR,
                 "fails": "The terms alpha^2 / K^3 (1 - p)^2 bound the gradient between steps from the start of "
                          "training; it is in proportion to the attention on other steps, which the bounds leave out, "
                          "so that they hold while that is of order 1.",
                 "outside": "The settings lie outside the premises of the lemma."}),
        Part("theorem", "lemma F.6", "The attention on other steps is at most epsilon after the order of "
             "K^3 log(K / epsilon) / (eta alpha^2) steps.", lemma_F6, theory=("Lemma F.6",), constant=1.0,
             accuracy=EPSILON, replies={
                 "holds": "The order is enough.", "inconclusive": NEAR,
                 "fails": "For one fixed epsilon some constant makes the order large enough, and at 0.1 the constant "
                          "1 does; that it is enough for all rests on the bounds of lemma F.5 late in the stage.",
                 "outside": "The settings lie outside the premises of the lemma's proof."}),
        Part("theorem", "lemma F.7", "After the attention on other steps has fallen to 0.1, equations 36 to 39 bound "
             "the gradient.", lemma_F7, **LEMMA, accuracy=EPSILON, replies={
                 "holds": "The bounds hold with the constants that are printed.", "inconclusive": NEAR,
                 "fails": "The bounds are orders: the gradient of equation 36 is of the order p (1 - p)^2 / M, its "
                          "constant tends to half the printed one; that of equation 38 is small only once the "
                          "attention on other steps is of order 1 / M. The proof's 1/2 before 1 / M is 1 / K for two "
                          "steps.",
                 "outside": "The settings lie outside the premises of the lemma."}),
        Part("ours", "a closed form", "The gradient is -p (1 - p)^2 / M between columns of the same pattern, whatever "
             "the step, minus p (1 - p) / K times the attention on other steps between those of the same step.",
             as_in_closed_form, replies={
                 "holds": "It has the two stages: the steps are told apart at a rate of 1 / K that ends with the "
                          "attention on other steps, the patterns at a rate of 1 / M.", "inconclusive": NEAR,
                 "fails": "Terms of the order 1 / M matter in some setting."}),
        Part("ours", "how the first stage ends", "The attention on other steps falls like 1 / t: its end is of the "
             "order 1 / epsilon.", slow_end, replies={
                 "holds": "The gradient between steps is in proportion to the attention that is left on other steps.",
                 "inconclusive": NEAR, "fails": "The attention that is left falls by another law."}),
        Part("ours", "T of chains", "The population dynamics predict the steps to an attention of 0.9, and to a loss "
             "of 0.1, within 10 %.", predicted_in_time, replies={
                 "holds": "The few numbers that symmetry leaves are enough, without a seed.", "inconclusive": NEAR,
                 "fails": "Noise of the batches matters in some setting."})))
