"""Claim `icl.alpha`: training prompt length and iterations needed as fewer examples are decisive (figure 6).

Rules, written before the run. T is the first step at which the training loss, averaged over 5 steps, is at most 0.2;
the needed l_tr is the number of training examples at which the loss after 400 steps is 0.1, interpolated between
lengths on a log scale. Theorem 3.3 (iv) and (iii): the exponents of alpha must lie within 0.35 of -2/3 and -1. Figure
6: both. Reported but not judged: T for other step sizes, initial scales and loss targets, and the test error after
training on short prompts.
Cost: 400 short trainings, about 5 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.core.spec import replace
from iclab.figures.plots import Plot, curve_figure
from iclab.lab.claims import Check, between
from iclab.lab.entries import Entry, Findings, Part, Size, Table
from iclab.lab.estimates import power
from iclab.lab.laboratory import Lab
from iclab.lab.powers import HEADER, TOLERANCE, Counts, FittedLaw, fit_law, in_words, law_panel, power_row
from iclab.papers.icl.iterations import exists, steps_law
from iclab.papers.icl.iterations import measure as measure_steps
from iclab.papers.icl.settings import in_domain, one_layer_run
from iclab.probes.by_length import needed_examples
from iclab.probes.scaling import iterations_to
from iclab.sweeps.sweep import Sweep
from iclab.theory.icl import EXPONENTS, ITERATIONS, LENGTH_EXPONENT, TRAINING_LENGTH
from iclab.training import Run, Trained

JUDGED = (0.13, 0.5)
"""Initial scale delta and step size eta."""
OTHERS = ((0.05, 0.5), (0.2, 0.5), (0.13, 0.25), (0.13, 1.0))
"""Other pairs, reported but not judged."""
TARGETS = (0.5, 0.2, 0.1)
TARGET, LOSS = 0.2, 0.1
SIZES = {"tiny": Size(seeds=2, steps=500, prompts=1_000, fractions=(0.4, 0.8), short=(0.4, 0.8), lengths=(20,),
                      settings=(JUDGED,)),
         "quick": Size(seeds=8, steps=500, prompts=1_000, fractions=(0.4, 0.8), short=(0.4, 0.8), lengths=(4, 14),
                       settings=(JUDGED,)),
         "full": Size(seeds=8, steps=500, prompts=1_000, fractions=(0.4, 0.5, 0.6, 0.8, 1.0),
                      short=(0.3, 0.4, 0.5, 0.6, 0.8), lengths=(3, 5, 8, 14, 24), settings=(JUDGED, *OTHERS))}
"""`short`: decisive fractions at which the training length is varied."""
LENGTH_STEPS = 400

Setting = tuple[float, float]


def iterations(trained: Trained, test: Any = None, seed: int = 0) -> dict[str, float]:
    """Measure: the step at which the loss falls to each target."""
    return {f"T at {target:g}": iterations_to(trained, target) for target in TARGETS}


def a_run(decisive: float, length: int, steps: int, setting: Setting = JUDGED, record_every: int = 5) -> Run:
    """The training run for one decisive fraction, prompt length, initial scale and step size."""
    delta, rate = setting
    run = one_layer_run(decisive, steps)
    return replace(run, model=replace(run.model, init_scale=delta), prompts=replace(run.prompts, prompt_length=length),
                   training=replace(run.training, learning_rate=rate, record_every=record_every))


@dataclass(frozen=True)
class Measured:
    """Steps by setting and loss target, final losses and test errors by length."""

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


def measure(lab: Lab) -> Measured:
    """Train all runs and measure them."""
    size = SIZES[lab.scale]
    seeds, settings = lab.seeds(size.seeds), size.settings
    step_runs = [a_run(fraction, 20, size.steps, setting) for setting in settings for fraction in size.fractions]
    length_runs = [a_run(fraction, length, LENGTH_STEPS, record_every=50)
                   for fraction in size.short for length in size.lengths]

    def swept(name: str, runs: Sequence[Run], shape: tuple[int, ...], **options: Any) -> dict[str, np.ndarray]:
        points = [{"model": run.model, "prompts": run.prompts, "training": run.training} for run in runs]
        frame = lab.sweep(Sweep(settings=points, seeds=seeds, name=name, **options)).frame
        names = [f"T at {target:g}" for target in TARGETS] if "test" not in options else options["measure"]
        return {name: np.moveaxis(np.array(frame[name].to_list(), float).reshape(*shape, len(seeds)), -1, 0)
                for name in names}

    steps = swept("icl.alpha.steps", step_runs, (len(settings), len(size.fractions)), measure=(iterations,))
    final = swept("icl.alpha.lengths", length_runs, (len(size.short), len(size.lengths)), test=in_domain(),
                  measure=("loss", "error"), prompts=size.prompts)
    return Measured(size, {(setting, target): steps[f"T at {target:g}"][:, i] for target in TARGETS
                           for i, setting in enumerate(settings)}, final["loss"], final["error"])


def of_iterations(results: Measured) -> list[Check]:
    """The exponent of alpha in T."""
    return [exists("share of seeds in which T exists in every setting", results.iterations),
            *_within("T", power(results.size.fractions, results.iterations), EXPONENTS["alpha"])]


def of_length(results: Measured) -> list[Check]:
    """The exponent of alpha in l_tr."""
    return [exists("share of seeds in which l_tr exists in every setting", results.needed),
            *_within("l_tr", power(results.size.short, results.needed), LENGTH_EXPONENT)]


def _within(name: str, exponent: Any, theory: float) -> list[Check]:
    return between(f"exponent of alpha in {name} (theorem {theory:.3g})", exponent, theory - TOLERANCE,
                   theory + TOLERANCE)


def length_law(results: Measured, lab: Lab) -> FittedLaw:
    """The theorem's law for the training length, fitted."""
    orders = [TRAINING_LENGTH.order(a_run(fraction, 20, 1), None) for fraction in results.size.short]
    return fit_law(TRAINING_LENGTH, {"alpha": orders}, {"alpha": results.needed}, lab)


def figure(results: Measured, name: str, lab: Lab) -> Plot:
    """Figure 6: training examples and iterations needed, against alpha."""
    law, steps = length_law(results, lab), steps_law(measure_steps(lab), lab)
    fractions, x = results.size.fractions, "alpha, fraction of decisive training examples"
    expected = steps.along(ITERATIONS.order(a_run(fraction, 20, 1), None) for fraction in fractions)
    return curve_figure(name, "Training examples and iterations needed, against the decisive fraction",
                        f"Dashed: {law.words} {steps.words} The latter was fitted in {ITERATIONS.entry}, where alpha "
                        "is not varied.",
                        [law_panel("training examples", results.size.short, {"softmax": results.needed},
                                   law.line("alpha"), x),
                         law_panel("iterations", fractions, {"softmax": results.iterations}, expected, x)],
                        "", "", log_x=True, log_y=True, share_y=False)


def run(lab: Lab) -> Findings:
    """Count iterations and training examples."""
    results, size = measure(lab), lab.size
    exponents = {key: power(size.fractions, values) for key, values in results.steps.items()}
    length = power(size.short, results.needed)
    rows = [(f"delta {setting[0]:g}, eta {setting[1]:g}, loss {target:g}",
             *power_row("T", exponent, EXPONENTS["alpha"])) for (setting, target), exponent in exponents.items()]
    rows.append((f"delta {JUDGED[0]:g}, eta {JUDGED[1]:g}, loss {LOSS:g}", *power_row("l_tr", length, LENGTH_EXPONENT)))
    runs = {ITERATING: [a_run(fraction, 20, size.steps) for fraction in (size.fractions[0], size.fractions[-1])],
            PROMPTING: [a_run(fraction, length, LENGTH_STEPS, record_every=50)
                        for fraction in (size.short[0], size.short[-1]) for length in (min(size.lengths),
                                                                                       max(size.lengths))]}
    values = [exponent.value for exponent in exponents.values() if np.isfinite(exponent.value)]
    ranges = f"from {min(values):.2f} to {max(values):.2f}" if values else "nowhere"
    return Findings(
        shown="The exponent of alpha for every initial scale, step size and loss target; figure 6 shows the curves.",
        measured=results, constants=length_law(results, lab).constants,
        tables=[Table("icl.alpha", "Exponents of alpha", ("setting", *HEADER), rows)],
        numbers=f"Exponent of alpha in T: {in_words(exponents[JUDGED, TARGET])}; across the settings in the table "
                f"where it exists it ranges {ranges}. Exponent in l_tr: {in_words(length)}, for the training loss; "
                f"with {size.lengths[0]} training examples the error on unseen tasks is at most "
                f"{results.errors[:, :, 0].mean(axis=0).max():.3f}.",
        # The loss is that of training, so the prompts of training are the test.
        specs={place: [(run, run.prompts) for run in of] for place, of in runs.items()})


ITERATING, PROMPTING = "theorem 3.3 (iv)", "theorem 3.3 (iii)"
ENTRY = Entry(
    "icl.alpha", "Training prompts and iterations as fewer examples are decisive", "li2024icl, theorem 3.3, figure 6",
    run, says="As fewer training examples are decisive, T grows like alpha^(-2/3) and the needed l_tr like 1 / alpha.",
    sizes=SIZES, parts=(
        Part("theorem", ITERATING, "The required number of iterations grows like alpha^(-2/3).", of_iterations,
             theory=("Theorem 3.3",), measured=("number of iterations",)),
        Part("theorem", PROMPTING, "The required length of training prompts grows like 1 / alpha.", of_length,
             theory=("Theorem 3.3",), measured=("length of training prompts", "number of test examples")),
        Part("figure", "figure 6", "The required prompt length is linear in 1 / alpha, the number of iterations in "
             "alpha^(-2/3).", lambda results: [*of_iterations(results), *of_length(results)])))
