"""Claim `mamba.length`: the tolerated outlier fraction by p_a and l_ts, compared with min(1, p_a l_tr / l_ts).

Rules, under flip. Theorem: at the largest tested fraction below its bound for which the test prompts have twice as many
examples as (d) asks for with its fitted constant, the error is at most 0.1, the accuracy for which the premises are
computed, at the worst length, for every p_a. The same at an error of 0.05 for p_a 0.4, with the batch of 1,024 that it
asks for. An earlier rule took exactly as many examples as (d) asks for. Theorem, close to 1: trained with p_a 0.6, l_tr
160 and kappa_a 3, where (c) allows every fraction of l_ts 80, the error is at most 0.1 at 0.9; ours: the same with the
paper's kappa_a of 2. Searched on other seeds: 0.05 and 0.3 (0.3 and 0.8 at fraction 0.95). Tight, ours: at the smallest
tested fraction from the bound on the excess over the floor is more than 0.02 in every cell (with a floor of at most
0.02: above it, prompts of that length carry too little information). Ours, as lengths grow (p_a 0.4, l_ts = l_tr / 2,
bound 0.8): the excess at fraction 0.7 falls at least as fast as l_tr^-1/2 and is at most 0.01 at the longest; at 0.78
it falls too. Theorem, in long prompts (added when that was known): the error at 0.78 is at most 0.1 at the longest.
Searched on other seeds: exponents of about -1.2 and -0.6. Drawn beside it: the l_tr at which the excess falls to 0.05,
0.02 and 0.01.
Settled after a look: twice as many examples as (d), when the result with as many was known; and the training of "close
to 1", the best of two scales and two pairs of lengths on search seeds.
Cost: 80 trainings of 3,000 steps, 1 million test prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.figures.heat import heat_figure
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, worst
from iclab.lab.entries import Checks, Entry, Findings, Part, Rule, Table
from iclab.lab.estimates import Power, Rate, power
from iclab.lab.laboratory import Lab
from iclab.lab.regions import Axis, Region
from iclab.papers.mamba.settings import FINER, attacked_prompts, one_layer_run, sizes, training_prompts
from iclab.probes import UNIT, information_floor
from iclab.probes.by_length import context_errors, needed_examples
from iclab.prompts import Classification
from iclab.theory.mamba import EXAMPLES, tolerated_fraction_mamba
from iclab.training import Run, Trained

TRAINED = (0.2, 0.4, 0.6, 0.8)
LENGTHS = (10, 20, 40, 80)
FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
EXCESS_ALLOWED, FLOOR_ALLOWED = 0.02, 0.02


ACCURACY = 0.1
GROWING = {"p_a": 0.4, "shorter": 2}
"""The family of growing lengths: training fraction, and how many times shorter the test prompts are."""
FINER_ACCURACY, FINER_BATCH, FINER_FRACTION = 0.05, 1_024, 0.4
"""A finer accuracy, the batch size that it asks for, and the training fraction at which it is judged."""
TWICE = 2.0
"""How many times over prompts have the examples that (d) asks for."""
SCALES, NEAR_ONE = (3.0, 2.0), (0.8, 0.85, 0.9, 0.95)
"""Training scales, and test fractions, of the family with fractions close to 1."""
ALL_FRACTIONS = {"p_a": 0.6, "l_tr": 160, "l_ts": 80}
"""Its training fraction and lengths: p_a l_tr / l_ts is above 1."""
JUDGED_NEAR_ONE = 0.9
EXCESSES = (0.05, 0.02, 0.01)
GROWING_FRACTIONS = (0.4, 0.5, 0.6, 0.7, 0.75, 0.78, 0.8, 0.85, 0.9)
BOUND = 0.8
"""That of theorem 2 (c) in this family."""
INSIDE, CLOSE, LEAST_FALL = 0.7, 0.78, -0.5


class Errors(NamedTuple):
    """Errors for every test fraction and prompt length, by training fraction; and by training length, for the family
    of growing lengths."""

    values: dict[float, Float[np.ndarray, "seeds fractions lengths"]]
    prompts: int
    growing: dict[int, Float[np.ndarray, "seeds fractions"]] | None = None
    finer: Float[np.ndarray, "seeds fractions lengths"] | None = None
    """Errors after training with the larger batch."""
    near_one: dict[float, Float[np.ndarray, "seeds fractions"]] | None = None
    """By training scale, errors at fractions close to 1."""

    def needed_length(self, fraction: float, excess: float) -> Float[np.ndarray, " seeds"]:
        """The training length at which the excess of the family of growing lengths falls to this one, by seed."""
        lengths = list(self.growing or {})
        curves = [self.grown(length, fraction) for length in lengths]
        values = np.stack([rate.rates - rate.above for rate in curves], axis=1)
        return np.asarray(needed_examples(lengths, values, excess))

    def grown(self, length: int, fraction: float) -> Rate:
        """The excess of the family of growing lengths at one point."""
        return Rate((self.growing or {})[length][:, GROWING_FRACTIONS.index(fraction)], self.prompts,
                    information_floor(growing_test(length, fraction)))

    def error(self, p_a: float, fraction: float, length: int) -> Rate:
        """The error at one point."""
        return Rate(self.values[p_a][:, FRACTIONS.index(fraction), LENGTHS.index(length)], self.prompts)

    def excess(self, p_a: float, fraction: float, length: int) -> Rate:
        """The excess over the floor at one point."""
        i, k = FRACTIONS.index(fraction), LENGTHS.index(length)
        return Rate(self.values[p_a][:, i, k], self.prompts, floors()[i, k])


def a_run(fraction: float, steps: int, length: int = 20) -> Run:
    """Mamba trained with this outlier fraction and length."""
    base = one_layer_run("mamba", steps)
    return replace(base, prompts=replace(base.prompts, outlier_fraction=fraction, prompt_length=length))


def growing_test(length: int, fraction: float) -> Classification:
    """A test of the family of growing lengths, for a training length."""
    return attacked_prompts("flip", fraction, prompt_length=length // int(GROWING["shorter"]))


def near_one_run(scale: float, steps: int) -> Run:
    """Mamba trained in long prompts with this outlier scale."""
    run = a_run(float(ALL_FRACTIONS["p_a"]), steps, int(ALL_FRACTIONS["l_tr"]))
    return replace(run, prompts=replace(run.prompts, outlier_scale=scale))


def near_one_tests(scale: float) -> list[Classification]:
    """Tests with fractions close to 1, outliers three times as large as in training."""
    return [attacked_prompts("flip", fraction, outlier_scale=3 * scale, prompt_length=int(ALL_FRACTIONS["l_ts"]))
            for fraction in NEAR_ONE]


def finer_run(steps: int) -> Run:
    """Mamba trained with the batch of the finer accuracy."""
    run = a_run(FINER_FRACTION, steps)
    return replace(run, training=replace(run.training, batch_size=FINER_BATCH))


def measure(models: Sequence[Trained], seeds: Sequence[int], prompts: int
            ) -> Float[np.ndarray, "models fractions lengths"]:
    """Errors for every test fraction and prompt length."""
    tests = [attacked_prompts("flip", fraction, prompt_length=max(LENGTHS)) for fraction in FRACTIONS]
    return context_errors(models, tests, LENGTHS, count=prompts, seeds=seeds)


@cache
def floors() -> Float[np.ndarray, "fractions lengths"]:
    """The information floor of every test."""
    return np.array([[information_floor(attacked_prompts("flip", fraction, prompt_length=length)) for length in LENGTHS]
                     for fraction in FRACTIONS])


def tolerated(errors: Float[np.ndarray, "seeds fractions lengths"]) -> Float[np.ndarray, "seeds lengths"]:
    """The largest fraction up to which the excess over the floor stays within the limit; 0 if there is none."""
    within = (errors - floors() <= EXCESS_ALLOWED).cumprod(axis=1).astype(bool)
    return np.concatenate([[0.0], FRACTIONS])[within.sum(axis=1)]


def promised(p_a: float, length: int) -> float:
    """The fraction below which theorem 2 (c) promises a small error."""
    return tolerated_fraction_mamba(training_prompts(outlier_fraction=p_a),
                                    attacked_prompts("flip", 0.5, prompt_length=length))


def tested(p_a: float, length: int, beyond: bool) -> float | None:
    """The tested fraction next to the bound, below it or not; None if there is none with a low enough floor."""
    fractions = [f for f, floor in zip(FRACTIONS, floors()[:, LENGTHS.index(length)], strict=True)
                 if (f >= promised(p_a, length) - 1e-9) == beyond and floor <= FLOOR_ALLOWED]
    return (fractions[0] if beyond else fractions[-1]) if fractions else None


def judged_tests(p_a: float, times: float = TWICE) -> list[tuple[float, int]]:
    """Fractions and lengths at which the theorem is judged: the largest inside (c) with enough examples by (d)."""
    inside = {length: [f for f in FRACTIONS if f < promised(p_a, length) - 1e-9 and enough_examples(f, length, times)]
              for length in LENGTHS}
    return [(fractions[-1], length) for length, fractions in inside.items() if fractions]


def enough_examples(fraction: float, length: int, times: float = 1.0) -> bool:
    """Premise (d) of theorem 2 with its fitted constant, met so many times over."""
    needed = EXAMPLES["mamba"].predict(None, attacked_prompts("flip", fraction, prompt_length=length))
    return needed is not None and length >= times * needed


def theorem(errors: Errors, times: float = TWICE) -> list[Check]:
    """The worst length for each training fraction."""
    return [worst(f"p_a = {p_a:g}: error inside the bound, worst length ({{}})",
                  [(f"l_ts {length}, fraction {f:g}", errors.error(p_a, f, length)) for f, length in
                   judged_tests(p_a, times)], "<=", ACCURACY) for p_a in errors.values]


def finer_accuracy(errors: Errors) -> list[Check]:
    """The same for a finer accuracy, with the batch that it asks for."""
    if errors.finer is None:
        return []
    values = np.asarray(errors.finer)
    return [worst(f"p_a = {FINER_FRACTION:g}, B = {FINER_BATCH}: error inside the bound, worst length ({{}})", [
        (f"l_ts {length}, fraction {f:g}", Rate(values[:, FRACTIONS.index(f), LENGTHS.index(length)], errors.prompts))
        for f, length in judged_tests(FINER_FRACTION)], "<=", FINER_ACCURACY)]


def close_to_one(scale: float) -> Checks:
    """The error at a fraction close to 1, after training with this outlier scale."""
    def checks(errors: Errors) -> list[Check]:
        if errors.near_one is None:
            return []
        values = errors.near_one[scale][:, NEAR_ONE.index(JUDGED_NEAR_ONE)]
        return [Check(f"kappa_a = {scale:g}: error at fraction {JUDGED_NEAR_ONE:g}", Rate(values, errors.prompts), "<=",
                      ACCURACY)]
    return checks


def finer(errors: Errors) -> list[Check]:
    """The earlier rule: the excess over the floor, wherever the floor is low."""
    return [worst(f"p_a = {p_a:g}: excess just inside the bound, worst length ({{}})", [
        (f"l_ts {length}, fraction {f:g}", errors.excess(p_a, f, length)) for length in LENGTHS
        if (f := tested(p_a, length, beyond=False)) is not None], "<=", EXCESS_ALLOWED) for p_a in errors.values]


def long_prompts(errors: Errors) -> list[Check]:
    """The error close to the bound in the longest prompts."""
    longest = max(errors.growing or ())
    of = (errors.growing or {})[longest][:, GROWING_FRACTIONS.index(CLOSE)]
    return [Check(f"error at fraction {CLOSE:g}, l_tr {longest}", Rate(of, errors.prompts), "<=", ACCURACY)]


def fall(errors: Errors, fraction: float) -> Power:
    """The exponent of the length in the excess inside the bound; an excess of no prompt counts as that of one."""
    lengths = list(errors.growing or ())
    excess = np.stack([np.maximum(errors.grown(length, fraction).rates - errors.grown(length, fraction).above,
                                  1 / errors.prompts) for length in lengths], axis=1)
    return power(lengths, excess)


def vanishes(errors: Errors) -> list[Check]:
    """Inside the bound the excess vanishes as lengths grow."""
    longest, name = max(errors.growing or ()), "exponent of the length in the excess at fraction"
    return [Check(f"{name} {INSIDE:g}", fall(errors, INSIDE), "<=", LEAST_FALL),
            Check(f"{name} {CLOSE:g}", fall(errors, CLOSE), "<", 0.0),
            Check(f"excess at fraction {INSIDE:g}, l_tr {longest}", errors.grown(longest, INSIDE), "<=", 0.01)]


def beyond(errors: Errors) -> Region:
    """Where the error is still small just beyond the bound; a cell whose bound cannot be passed shows the excess at the
    largest fraction tested."""
    estimates = [[errors.excess(p_a, tested(p_a, length, beyond=True) or FRACTIONS[-1], length)
                  for p_a in errors.values] for length in LENGTHS]
    return Region("excess just beyond the bound", Axis("p_a", tuple(errors.values)), Axis("l_ts", LENGTHS), estimates,
                  "<=", EXCESS_ALLOWED, lambda p_a, length: tested(p_a, int(length), beyond=True) is not None,
                  where="whose bound can be passed")


def tight(errors: Errors) -> list[Check]:
    """The error is large just beyond the bound."""
    return [Check(check.name, check.estimate, ">", EXCESS_ALLOWED) for check in beyond(errors).checks()]


def run(lab: Lab) -> Findings:
    """Measure every cell and draw the map."""
    models = {p_a: lab.train_seeds(a_run(p_a, lab.size.steps)) for p_a in TRAINED}
    growing = {length: lab.errors(lab.train_seeds(a_run(GROWING["p_a"], lab.size.growing_steps, length)),
                                  [growing_test(length, f) for f in GROWING_FRACTIONS]) for length in lab.size.lengths}
    errors = Errors({p_a: lab.remember(measure, of, lab.seeds(), lab.size.prompts) for p_a, of in models.items()},
                    lab.size.prompts, growing)
    finer_training = finer_run(lab.size.other_steps)
    near_one = {scale: near_one_run(scale, lab.size.other_steps) for scale in SCALES}
    if lab.size.others:
        errors = errors._replace(
            finer=lab.remember(measure, lab.train_seeds(finer_training), lab.seeds(), lab.size.prompts),
            near_one={scale: lab.errors(lab.train_seeds(run), near_one_tests(scale))
                      for scale, run in near_one.items()})
    family = curve_figure(
        "mamba.length.growing", "Error as lengths grow", "p_a 0.4 and l_ts = l_tr / 2: the bound of theorem 2 (c) is "
        "0.8 at every length. Under flip.", [Panel("", GROWING_FRACTIONS, [
            Curve(f"l_tr {length}", values) for length, values in growing.items()])], "outlier fraction", "error",
        y_range=(-0.03, 1.03), within=UNIT)
    grid = np.stack([tolerated(values) for values in errors.values.values()], axis=-1)
    bound = np.array([[promised(p_a, length) for p_a in TRAINED] for length in LENGTHS])
    plot = heat_figure("mamba.length", "Tolerated outlier fraction", "Each cell: the largest outlier fraction at which "
                       "Mamba stays within 0.02 of the floor, and in brackets what theorem 2 (c) promises. Left of and "
                       "above the line the promise is below 1.", TRAINED, LENGTHS, grid, bound,
                       "training outlier fraction p_a", "test prompt length l_ts (l_tr = 20)", "tolerated fraction")
    margin = grid.mean(axis=0) - np.minimum(bound, FRACTIONS[-1])
    at = {length: (LENGTHS.index(length), TRAINED.index(0.6)) for length in (20, 80)}
    cells = ", ".join(f"{grid[:, i, j].mean():.2f} at l_ts = {length} (promised: {bound[i, j]:.2f})"
                      for length, (i, j) in at.items())
    return Findings(
        shown="The outlier fraction that Mamba tolerates under flip, for every training fraction and test length, and "
              "its excess error just beyond the theorem's bound.",
        measured=errors, numbers=f"At p_a = 0.6 Mamba tolerates {cells}; over all cells the tolerated fraction less "
        f"the promised one is between {margin.min():.2f} and {margin.max():.2f}. As lengths grow, the "
        f"excess at fraction {INSIDE:g} is " + ", ".join(f"{errors.grown(length, INSIDE).value:.4f} at l_tr {length}"
                                                         for length in growing) + f", at {CLOSE:g} " + ", ".join(
            f"{errors.grown(length, CLOSE).value:.3f}" for length in growing) + "." + "".join(
            f" In prompts of {ALL_FRACTIONS['l_ts']}, trained at {ALL_FRACTIONS['l_tr']} with p_a "
            f"{ALL_FRACTIONS['p_a']} and kappa_a {scale:g}, the error is " + ", ".join(
                f"{value:.3f} at {f:g}" for f, value in zip(NEAR_ONE, of.mean(axis=0), strict=True)) + "."
            for scale, of in (errors.near_one or {}).items()),
        plots=[plot, family, beyond(errors).plot(
            "mamba.length.beyond", "Just beyond the bound of theorem 2 (c)", "Excess over the floor at the "
            "smallest tested fraction that is not below the bound; the map asks where it is small all the same (at "
            "most 0.02).")],
        tables=[Table("mamba.length.needed", "Training length at which the excess falls to a given one (p_a 0.4, "
                      "l_ts = l_tr / 2, bound 0.8; the shortest tried if it is below it there)",
                      ("fraction", *(f"excess {excess:g}" for excess in EXCESSES)), [
                          (f"{f:g}", *(f"{np.mean(errors.needed_length(f, excess)):.0f}" for excess in EXCESSES))
                          for f in GROWING_FRACTIONS if f < BOUND])],
        specs={"theorem 2 (c)": [(models[p_a][0].run, attacked_prompts("flip", f, prompt_length=length))
                                 for p_a in TRAINED for f, length in judged_tests(p_a)],
               "theorem 2 (c), every accuracy": [
                   (finer_training, attacked_prompts("flip", f, prompt_length=length))
                   for f, length in judged_tests(FINER_FRACTION)],
               **{place: [(near_one[scale], near_one_tests(scale)[NEAR_ONE.index(JUDGED_NEAR_ONE)])]
                  for place, scale in zip(PLACES_NEAR_ONE, SCALES, strict=True)},
               "theorem 2 (c), long prompts": [(a_run(GROWING["p_a"], lab.size.growing_steps, max(growing)),
                                                growing_test(max(growing), CLOSE))]})


PLACES_NEAR_ONE = ("theorem 2 (c), close to 1", "theorem 2 (c), close to 1 at the paper's scale")
NEAR = "The number lies too near to the threshold for this many seeds."
ENTRY = Entry(
    "mamba.length", "How many outliers are tolerated, by training fraction and test length",
    "li2025mamba, theorem 2 (c)", run,
    says="Mamba's error is small for outlier fractions below min(1, p_a l_tr / l_ts), a bound that falls as test "
         "prompts grow.",
    sizes=sizes(seeds=(2, 4, 8), steps=(300, 1_000, 3_000), prompts=(500, 1_000, 2_000),
                other_steps=(300, 1_000, 1_000), others=(True, False, True),
                growing_steps=(300, 1_000, 4_000), lengths=((20, 40), (20, 80), (20, 40, 80, 160))), parts=(
        Part("theorem", "theorem 2 (c)", "Below the bound the error is small, given enough examples.", theorem,
             theory=("Theorem 2",), accuracy=ACCURACY, earlier=(
                 Rule(finer, f"{FINER} It also left out premise (d), enough test examples."),
                 Rule(lambda errors: theorem(errors, 1.0), "It took just as many examples as (d) asks for with a "
                      "constant that was fitted at another p_a; (d) is an order; now it asks for twice as many.")),
             replies={
                 "fails": "The constant of (d) was fitted at another p_a.",
                 "holds": "Inside the bound the error is small.", "inconclusive": NEAR}),
        Part("theorem", "theorem 2 (c), every accuracy", "The same for an error of 0.05, with the batch that it asks "
             "for.", finer_accuracy, theory=("Theorem 2",), accuracy=FINER_ACCURACY, replies={
                 "fails": "The constants of (d) and of the batch size are open.",
                 "holds": "Inside the bound the finer error is reached, too.",
                 "inconclusive": "Not measured at this scale, or the error lies too near to 0.05."}),
        Part("theorem", PLACES_NEAR_ONE[0], "Where p_a l_tr / l_ts is above 1 the error is small at fractions close to "
             "1 (here 0.9), with outliers of scale 3 in training.", close_to_one(SCALES[0]), theory=("Theorem 2",),
             accuracy=ACCURACY, replies={
                 "holds": "Nine in ten examples may be poisoned, given outliers that are large enough for prompts of "
                          "this length.",
                 "fails": "Prompts may be no longer than a power of M1^kappa_a over the fraction, and we leave that "
                          "power open.",
                 "inconclusive": "Not measured at this scale, or the error lies too near to 0.1."}),
        Part("ours", PLACES_NEAR_ONE[1], "The same with outliers of scale 2 in training, as in the paper's "
             "experiments.", close_to_one(SCALES[1]), replies={
                 "holds": "The paper's scale is enough at these lengths.",
                 "fails": "The theorem bounds the lengths by a power of M1^kappa_a that it leaves open; at this scale "
                          "these prompts are too long for fractions close to 1, which we say nowhere.",
                 "inconclusive": "Not measured at this scale, or the error lies too near to 0.1."}),
        Part("theorem", "theorem 2 (c), long prompts", "Just below the bound the error is small in the longest "
             "prompts.", long_prompts, theory=("Theorem 2",), accuracy=ACCURACY, replies={
                 "holds": "In the longest prompts tried, where (d) is met many times over, it holds near its bound.",
                 "fails": "Prompts are still too short for the constant of (d).", "inconclusive": NEAR}),
        Part("ours", "as lengths grow", "Inside the bound the excess over the floor vanishes as training and test "
             "prompts grow.", vanishes, replies={
                 "holds": "What is left inside the bound is an effect of short prompts.",
                 "fails": "The excess does not vanish inside the bound.", "inconclusive": NEAR}),
        Part("ours", "the bound of theorem 2 (c)", "From the bound on the error is not small.",
             tight, tight=True, replies={
                 "not tight": "The bound is sufficient: it is made for the worst order of the outliers.",
                 "tight": "The bound is needed.", "inconclusive": NEAR})))
