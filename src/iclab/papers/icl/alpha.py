"""Claim `icl.alpha`: training prompt length and iterations needed as fewer examples are decisive (figure 6).

T is the first step at which the training loss, averaged over 5 steps, is at most 0.2; the needed l_tr is the number of
training examples at which the loss after 800 steps is 0.1, interpolated between lengths on a log scale. Rules, written
before the run. Theorem 3.3 (iii): the exponent of alpha in l_tr lies within 0.17 of -1 (first 0.35). Only alpha is
varied, neither log M1 nor beta. Theorem 3.3 (iv) has orders, for alpha and delta of order 1: T / alpha^(-2/3) at every
alpha is at most 1.5 times what it is at alpha = 1, at deltas 0.05, 0.13 and 0.2; that it is at least that divided by
1.5, so that no fewer are enough (a T without alpha would fail), is a part of its own. Ours: the exponent of alpha in T
is within 0.1 of -2/3 at each of these deltas. Figure 6: the same at delta 0.13, and l_tr; the paper does not give its
delta, and 0.13 was chosen by how well models train. These rules were settled after runs, which showed exponents of
about -0.84, -0.65 and -0.49; before, (iv) was judged by them, first at delta 0.13 alone, within 0.35. Reported but not
judged: T for other step sizes and loss targets, and the test error after training on short prompts. Cost: 600 short
trainings, about 8 s. Settled after a look: with 400 steps some seeds did not reach the loss at |q| = 1, so that
training is longer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.lab.claims import Check, worst
from iclab.lab.entries import Checks, Entry, Findings, Part, Rule, Size, Table
from iclab.lab.estimates import Mean, Share, power
from iclab.lab.laboratory import Lab, per_seed
from iclab.lab.powers import HEADER, TOLERANCE, Counts, FittedLaw, fit_law, in_words, power_row
from iclab.papers.icl.iterations import BOTH, NOT_ABOVE, NOT_BELOW, QUARTER, law_checks
from iclab.papers.icl.settings import IN_DOMAIN_CONSTANT, in_domain, one_layer_run
from iclab.probes.by_length import needed_examples
from iclab.probes.scaling import iterations_to
from iclab.theory.icl import EXPONENTS, LENGTH_EXPONENT, TRAINING_LENGTH
from iclab.training import Run

Setting = tuple[float, float]
"""Initial scale delta and step size eta."""
JUDGED: Setting = (0.13, 0.5)
STARTS: tuple[Setting, ...] = (JUDGED, (0.05, 0.5), (0.2, 0.5))
"""From one end of the deltas that train within seconds to that which algorithm 1 allows."""
OTHERS: tuple[Setting, ...] = ((0.13, 1.0),)
"""Reported but not judged."""
CLOSE = 0.1
"""How far the exponent of alpha in T may lie from the theorem's."""
FACTOR = 1.5
"""By which T may depart from alpha^(-2/3) over all alpha, as an order; a T free of alpha departs by 1.84."""
TARGETS = (0.5, 0.2, 0.1)
TARGET, LOSS = 0.2, 0.1
LENGTH_STEPS = 800
SIZES = {"tiny": Size(seeds=2, timed=2, steps=500, prompts=1_000, fractions=(0.4, 0.8), short=(0.4, 0.8), lengths=(20,),
                      settings=(JUDGED,)),
         "quick": Size(seeds=8, timed=8, steps=500, prompts=1_000, fractions=(0.4, 0.8), short=(0.4, 0.8),
                       lengths=(4, 14), settings=(JUDGED,)),
         "full": Size(seeds=8, timed=12, steps=600, prompts=1_000, fractions=(0.4, 0.5, 0.6, 0.8, 1.0),
                      short=(0.3, 0.4, 0.5, 0.6, 0.8), lengths=(3, 5, 8, 14, 24), settings=(*STARTS, *OTHERS))}
"""`short`: decisive fractions at which the training length is varied; `timed`: seeds whose iterations are counted."""


class Measured(NamedTuple):
    """Iterations by setting and loss target, final losses and test errors by length."""

    size: Size
    steps: dict[tuple[Setting, float], Float[np.ndarray, "seeds fractions"]]
    losses: Float[np.ndarray, "seeds fractions lengths"]
    errors: Float[np.ndarray, "seeds fractions lengths"]

    @property
    def iterations(self) -> Counts:
        """T by decisive fraction."""
        return self.steps[JUDGED, TARGET]

    @property
    def needed(self) -> Counts:
        """Training examples at which the final loss falls to `LOSS`, by decisive fraction."""
        return needed_examples(self.size.lengths, self.losses, LOSS)


def a_run(decisive: float, length: int, steps: int, setting: Setting = JUDGED, record_every: int = 5) -> Run:
    """The training run for one decisive fraction, prompt length, initial scale and step size."""
    delta, rate = setting
    # A smaller start and smaller steps take longer.
    longer = max(1.0, JUDGED[0] / delta) ** 1.5 * max(1.0, JUDGED[1] / rate)
    run = one_layer_run(decisive, int(steps * longer))
    return replace(run, model=replace(run.model, init_scale=delta), prompts=replace(run.prompts, prompt_length=length),
                   training=replace(run.training, learning_rate=rate, record_every=record_every))


def short_run(decisive: float, length: int) -> Run:
    """The training run whose final loss tells whether prompts of this length are enough."""
    return a_run(decisive, length, LENGTH_STEPS, record_every=50)


def measure(lab: Lab) -> Measured:
    """Train all runs and measure them."""
    size = SIZES[lab.scale]
    seeds, timed = lab.seeds(size.seeds), lab.seeds(size.timed)
    shape = (len(size.short), len(size.lengths), size.seeds)
    steps = {}
    for setting in size.settings:
        models = lab.train([run for fraction in size.fractions
                            for run in per_seed(a_run(fraction, 20, size.steps, setting), timed)])
        for target in TARGETS:
            counts = np.array([iterations_to(model, target) for model in models])
            steps[setting, target] = counts.reshape(-1, len(timed)).T
    models = lab.train([run for fraction in size.short for length in size.lengths
                        for run in per_seed(short_run(fraction, length), seeds)])
    losses, errors = np.array([model.loss[-1] for model in models]), lab.errors(models, [in_domain()], size.prompts)
    return Measured(size, steps, *(np.moveaxis(values.reshape(shape), -1, 0) for values in (losses, errors)))


def of_iterations(sides: str, settings: tuple[Setting, ...] = STARTS, tolerance: float = CLOSE) -> Checks:
    """The exponent of alpha in T, at all of these settings that were measured."""
    def checks(results: Measured) -> list[Check]:
        judged = [(setting, counts) for setting in settings
                  if (counts := results.steps.get((setting, TARGET))) is not None]
        return [check for (delta, _), counts in judged for check in law_checks(
            f"a loss of {TARGET}", f"alpha in T at delta {delta:g}", power(results.size.fractions, counts),
            EXPONENTS["alpha"], counts, sides=sides, tolerance=tolerance)]
    return checks


def of_order(relation: str, limit: float) -> Checks:
    """T over alpha^(-2/3), relative to that at the largest alpha, at every start."""
    def checks(results: Measured) -> list[Check]:
        found: list[Check] = []
        fractions = np.array(results.size.fractions)
        for setting in STARTS:
            counts = results.steps.get((setting, TARGET))
            if counts is None:
                continue
            relative = counts / fractions ** EXPONENTS["alpha"]
            relative = relative / relative[:, -1:]
            reached = Share(np.isfinite(counts).all(axis=1))
            found += [Check(f"share of seeds that reach a loss of {TARGET} at every alpha, delta {setting[0]:g}",
                            reached, ">=", 0.5),
                      worst(f"delta {setting[0]:g}: T / alpha^(-2/3) relative to alpha = {fractions[-1]:g} (at {{}})",
                            [(f"alpha = {fraction:g}", Mean(relative[:, i]))
                             for i, fraction in enumerate(fractions[:-1])], relation, limit)]
        return found
    return checks


def of_length(tolerance: float = QUARTER) -> Checks:
    """The exponent of alpha in l_tr."""
    return lambda results: law_checks(f"a loss of {LOSS}", "alpha in l_tr", power(results.size.short, results.needed),
                                      LENGTH_EXPONENT, results.needed, tolerance=tolerance)


def length_law(results: Measured, lab: Lab) -> FittedLaw:
    """The theorem's law for the training length, fitted."""
    orders = [TRAINING_LENGTH.order(short_run(fraction, 20), None) for fraction in results.size.short]
    return fit_law(TRAINING_LENGTH, {"alpha": orders}, {"alpha": results.needed}, lab)


def run(lab: Lab) -> Findings:
    """Count iterations and training examples."""
    results, size = measure(lab), lab.size
    exponents = {key: power(size.fractions, values) for key, values in results.steps.items()}
    length = power(size.short, results.needed)
    rows = [(f"delta {delta:g}, eta {rate:g}, loss {target:g}", *power_row("T", exponent, EXPONENTS["alpha"]))
            for ((delta, rate), target), exponent in exponents.items()]
    rows.append((f"delta {JUDGED[0]:g}, eta {JUDGED[1]:g}, loss {LOSS:g}", *power_row("l_tr", length, LENGTH_EXPONENT)))
    values = [exponent.value for exponent in exponents.values() if np.isfinite(exponent.value)]
    at_starts = [a_run(fraction, 20, size.steps, setting) for setting in STARTS if setting in size.settings
                 for fraction in (size.fractions[0], size.fractions[-1])]
    runs = {ITERATIONS: at_starts, NEEDED: at_starts,
            LENGTH: [short_run(fraction, examples) for fraction in (size.short[0], size.short[-1])
                     for examples in (size.lengths[0], size.lengths[-1])]}
    return Findings(
        shown="The exponent of alpha for every initial scale, step size and loss target; figure 6 shows the curves.",
        measured=results, constants=length_law(results, lab).constants,
        tables=[Table("icl.alpha", "Exponents of alpha", ("setting", *HEADER), rows)],
        numbers=f"Exponent of alpha in T: {in_words(exponents[JUDGED, TARGET])}; over the settings of the table in "
                f"which it exists, from {min(values, default=np.nan):.2f} to {max(values, default=np.nan):.2f}. "
                f"Exponent in l_tr: {in_words(length)}, for the training loss; with {size.lengths[0]} training "
                f"examples the error on unseen tasks is at most {results.errors[:, :, 0].mean(axis=0).max():.3f}.",
        # The loss is that of training, so the prompts of training are the test.
        specs={place: [(run, run.prompts) for run in of] for place, of in runs.items()})


ITERATIONS, NEEDED, LENGTH = "theorem 3.3 (iv)", "theorem 3.3 (iv), needed", "theorem 3.3 (iii)"
FIRST = Rule(of_iterations(BOTH, (JUDGED,), TOLERANCE),
             "The theorem holds for every delta up to 0.2 and gives a number that is enough; the rule judged one "
             "delta, loosely, and on both sides.")
EXPONENT = ("The powers are orders, for alpha and delta of order 1; an exponent over a factor of 2.5 in alpha does not "
            "test one.")
WIDE = "A tolerance of 0.35 is a third of the exponent."
CROSSES = "The interval of the exponent at one of the deltas crosses the tolerance."
ORDERS = "The interval at one of the deltas crosses the factor of 1.5."
ENTRY = Entry(
    "icl.alpha", "Training prompts and iterations as fewer examples are decisive", "li2024icl, theorem 3.3, figure 6",
    run, says="As fewer training examples are decisive, T grows by the order of alpha^(-2/3), and the needed "
         "l_tr like 1 / alpha; T's exponent depends on delta.",
    sizes=SIZES, parts=(
        Part("theorem", ITERATIONS, "As alpha falls, iterations of the order alpha^(-2/3) are enough, whatever delta.",
             of_order("<=", FACTOR), theory=("Theorem 3.3",), measured=("number of iterations",), accuracy=TARGET,
             constant=IN_DOMAIN_CONSTANT, earlier=(FIRST, Rule(of_iterations(NOT_BELOW), EXPONENT)),
             replies={"holds": "Equation 82 makes the output grow like alpha^2 (eta T)^3.",
                      "fails": "Alpha is of order 1 in the theorem, and so is delta (remark 4.2): the power is not "
                               "meant for small starts.", "inconclusive": ORDERS}),
        Part("theorem", NEEDED, "No fewer iterations than of the order alpha^(-2/3) are enough, whatever delta.",
             of_order(">=", 1 / FACTOR), theory=("Theorem 3.3",), measured=("number of iterations",), accuracy=TARGET,
             constant=IN_DOMAIN_CONSTANT, tight=True, earlier=(Rule(of_iterations(NOT_ABOVE), EXPONENT),),
             replies={"tight": "The Theta of (10) is an order in both directions.",
                      "not tight": "A start near 0.2 already tells patterns apart, and less of the time depends on "
                                   "alpha; that fewer iterations can be enough does not touch the theorem.",
                      "inconclusive": ORDERS}),
        Part("theorem", LENGTH, "The required length of training prompts grows like 1 / alpha.", of_length(),
             earlier=(Rule(of_length(TOLERANCE), WIDE),),
             theory=("Theorem 3.3",), measured=("length of training prompts", "number of test examples"), accuracy=LOSS,
             constant=IN_DOMAIN_CONSTANT,
             replies={"holds": "A prompt must hold a few examples of the query's pattern, which are alpha / 2 of all.",
                      "fails": "The length in (9) is what the proof needs of each prompt; the loss may ask for less.",
                      "inconclusive": "The interval crosses the tolerance, or some seeds need more examples than were "
                                      "tried."}),
        Part("figure", "figure 6", "The required prompt length is linear in 1 / alpha, the number of iterations in "
             "alpha^(-2/3).", lambda results: [*of_iterations(BOTH, (JUDGED,))(results), *of_length()(results)],
             earlier=(Rule(lambda results: [*of_iterations(BOTH, (JUDGED,), TOLERANCE)(results),
                                            *of_length(TOLERANCE)(results)],
                           "A tolerance of 0.35 cannot tell -2/3 from -1."),
                      Rule(lambda results: [*of_iterations(BOTH, (JUDGED,))(results),
                                            *of_length(TOLERANCE)(results)], WIDE)),
             replies={"holds": "As drawn; the figure's setting is this one or a similar one.",
                      "fails": "The figure's delta and step size, which the paper does not give, differ from these.",
                      "inconclusive": CROSSES}),
        Part("ours", "the exponent of alpha at each delta", "The exponent of alpha in T is -2/3 whatever delta.",
             of_iterations(BOTH),
             replies={"holds": "The power is that of the theorem at every start tried.",
                      "fails": "At small starts the power is nearer to the -1 of the law of icl.start, at large ones "
                               "less of the time depends on alpha.",
                      "inconclusive": CROSSES})))
