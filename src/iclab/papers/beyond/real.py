"""Claim `mamba.real`: does what is proved for a simple block hold for the blocks of Mamba and Mamba-2 as released?

The simple block has one gate for all channels and neither convolution, nonlinearity, norm nor skip. Here one layer of
each released block, and of multi-head softmax attention, learns the same poisoned prompts with Adam at the models'
usual settings. What an example weighs is |dF / dy_i|, for examples with the query's pattern (`probes.influence`).

Rules, written before the run that judges, with thresholds of claims about the simple block; the learning rate and the
number of steps were settled on other seeds, on which some errors were seen. (i) Under flip at outlier fraction 0.6 with
outliers three times as large as in training (`mamba.family`): each block, and softmax attention, is within 0.02 of the
floor; the linear Transformer's error is above 0.4. (ii) There a poisoned example weighs at most a quarter of a clean
one (the ratio of `mamba.gate`), in each block and in softmax attention; ours, on where: the blocks' steps Delta at
poisoned tokens, mean over channels, are at most a quarter of those at clean ones. (iii) At fraction 0.3 with outliers
as large as in training: the weights of clean examples fall by at least 5 % per position (the ratio of `mamba.gate`);
errors are larger with the poisoned examples next to the query than far from it (`mamba.position`).
Not judged: the product of B and C at poisoned examples (added after a look at a quick run, in which Mamba's steps did
not tell). At the tiny scale the Mamba-2 block stands for all models.
Cost: 24 trainings of 800 steps, half of the time Mamba's, and the models of figure 2; 80 s of processor time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iclab.figures.plots import Curve, Panel, Plot, curve_figure, error_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Note, Part, Size, Table
from iclab.lab.estimates import Difference, Estimate, Mean, Rate, shown
from iclab.lab.laboratory import Lab, per_seed
from iclab.models import Mamba2Block, MambaBlock, SoftmaxAttention
from iclab.models.protocol import ShowsSteps
from iclab.papers.mamba.settings import attacked_prompts, training_prompts
from iclab.papers.mamba.trained import one_layer_models
from iclab.probes import information_floor
from iclab.probes.error_rate import averages
from iclab.probes.influence import LabelWeights, slopes, summed_slopes, weights_of
from iclab.probes.inside import fit_decay
from iclab.prompts.prompt import Prompt
from iclab.training import Run, Trained, Training

MODELS: dict[str, Any] = {"block": MambaBlock(), "block2": Mamba2Block(), "attention": SoftmaxAttention()}
BLOCKS = ("block", "block2")
SIMPLE = ("mamba", "linear")
"""Models of figure 2, for comparison."""
NAMES = {"block": "Mamba block", "block2": "Mamba-2 block", "attention": "softmax attention", "mamba": "simple Mamba",
         "linear": "linear Transformer"}
FRACTIONS = (0.0, 0.2, 0.4, 0.6, 0.8)
JUDGED, FAINT = 0.6, 0.3
PLACEMENTS = ("far", "random", "close")
TESTS = ([attacked_prompts("flip", fraction) for fraction in FRACTIONS]
         + [attacked_prompts("flip", FAINT, 1.0, placement=placement) for placement in PLACEMENTS]
         + [attacked_prompts("flip", JUDGED, 1.0)])
AT, PLACED, SAME_SCALE = FRACTIONS.index(JUDGED), len(FRACTIONS), -1
EXCESS_ALLOWED, BROKEN, SHARE_ALLOWED, RATIO_ALLOWED = 0.02, 0.4, 0.25, 0.95


@dataclass(frozen=True)
class Inside:
    """One model on every test, one row per seed."""

    errors: Float[np.ndarray, "seeds tests"]
    weights: LabelWeights
    """(seeds, tests, examples), nearest first."""
    steps: Float[np.ndarray, "seeds tests 2"]
    """Mean Delta of clean and of poisoned examples; 0 of models without steps."""
    matches: Float[np.ndarray, "seeds tests 2"]
    """Mean |C_query . B_i| of both, of those with the query's pattern."""
    prompts: int

    @property
    def error(self) -> Rate:
        """At the judged fraction."""
        return Rate(self.errors[:, AT], self.prompts)

    @property
    def excess(self) -> Rate:
        """Over the information floor."""
        return Rate(self.errors[:, AT], self.prompts, information_floor(TESTS[AT]))

    @property
    def weight(self) -> Mean:
        """Of a poisoned example, relative to a clean one."""
        return Mean(self.weights.share[:, AT], (0.0, np.inf))

    @property
    def step(self) -> Mean:
        """At poisoned examples, relative to clean ones."""
        return Mean(self.steps[:, AT, 1] / self.steps[:, AT, 0], (0.0, np.inf))

    @property
    def match(self) -> Mean:
        """The product of B and C at poisoned examples, relative to clean ones."""
        return Mean(self.matches[:, AT, 1] / self.matches[:, AT, 0], (0.0, np.inf))

    @property
    def decay(self) -> Mean:
        """The weight of a clean example relative to that of the next nearer one, by a geometric law."""
        return Mean([fit_decay(row).ratio for row in self.weights.clean[:, PLACED + PLACEMENTS.index("random")]])

    @property
    def closeness(self) -> Difference:
        """Error with poisoned examples next to the query, less that with them far from it."""
        far, close = (self.errors[:, PLACED + PLACEMENTS.index(place)] for place in ("far", "close"))
        return Difference(close, far, self.prompts)


Measured = Mapping[str, Inside]
"""By model."""


def looked_at(model: Any, params: Any, batch: Prompt) -> Float[Array, "9 examples"]:
    """Label slopes of clean and of poisoned examples, and their number; error; mean steps, and sizes of scores, of
    both: a row each."""
    outputs, slope, seen = slopes(model, params, batch)
    sums, error = summed_slopes(slope, batch), jnp.where(outputs * batch.label > 0, 0.0, 1.0).mean()
    examples = slice(-1)
    poisoned, pattern = batch.truth.outlier[:, examples], batch.truth.pattern
    same = pattern[:, examples] == pattern[:, -1:]
    steps, sizes = ((seen.steps[:, 0, examples], jnp.abs(seen.scores[:, 0, examples])) if isinstance(seen, ShowsSteps)
                    else (jnp.zeros(poisoned.shape),) * 2)
    means = [(values * kind).sum() / jnp.maximum(kind.sum(), 1) for values, kind in (
        (steps, ~poisoned), (steps, poisoned), (sizes, same & ~poisoned), (sizes, same & poisoned))]
    return jnp.concatenate([sums, jnp.broadcast_to(jnp.stack([error, *means])[:, None], (5, sums.shape[1]))])


def measure(models: Sequence[Trained], prompts: int) -> Float[np.ndarray, "seeds tests 9 examples"]:
    """What `looked_at` finds in every test."""
    return averages(looked_at, models, TESTS, prompts, [trained.run.init_seed for trained in models])


def inside(looks: Float[np.ndarray, "seeds tests 9 examples"], prompts: int) -> Inside:
    """The same, in words."""
    means = looks[:, :, 4:, 0]
    return Inside(means[..., 0], weights_of(looks[:, :, :4]), means[..., 1:3], means[..., 3:], prompts)


def a_run(name: str, steps: int) -> Run:
    """A model at its usual settings, on the poisoned prompts of figure 2."""
    model = MODELS[name]
    return Run(model=model, prompts=training_prompts(), training=Training(
        **model.usual_training | {"steps": steps, "record_every": 100}))


def judged_by(estimate: Callable[[Inside], Estimate], what: str, relation: str, threshold: float, *names: str
              ) -> Callable[[Measured], list[Check]]:
    """The rule that a number of each of these models stands in this relation to a threshold."""
    def checks(measured: Measured) -> list[Check]:
        present = [name for name in names if name in measured] or [next(iter(measured))]
        return [Check(f"{NAMES[name]}: {what}", estimate(measured[name]), relation, threshold) for name in present]

    return checks


def near_the_floor(*names: str) -> Callable[[Measured], list[Check]]:
    """Rule (i)."""
    return judged_by(lambda of: of.excess, f"excess over the floor at {JUDGED:g}", "<=", EXCESS_ALLOWED, *names)


def light(*names: str) -> Callable[[Measured], list[Check]]:
    """Rule (ii)."""
    return judged_by(lambda of: of.weight, "label weight of poisoned over clean examples", "<=", SHARE_ALLOWED, *names)


def small_steps(*names: str) -> Callable[[Measured], list[Check]]:
    """Rule (ii), where."""
    return judged_by(lambda of: of.step, "step of poisoned over clean examples", "<=", SHARE_ALLOWED, *names)


def recent(*names: str) -> Callable[[Measured], list[Check]]:
    """Rule (iii), weights."""
    return judged_by(lambda of: of.decay, "label weight over that of the next nearer example", "<=", RATIO_ALLOWED,
                     *names)


def hurt_from_near(*names: str) -> Callable[[Measured], list[Check]]:
    """Rule (iii), errors."""
    return judged_by(lambda of: of.closeness, "error with outliers close less far", ">", 0.0, *names)


def figures(measured: Measured) -> list[Plot]:
    """Errors by outlier fraction, label weights by distance."""
    floor = [information_floor(test) for test in TESTS[:PLACED]]
    errors = error_figure(
        "mamba.real.errors", "Released blocks under flipped outliers", "Error against the outlier fraction at test, "
        "outliers three times as large as in training.",
        [Panel(title, FRACTIONS, [Curve(NAMES[name], measured[name].errors[:, :PLACED]) for name in group
                                  if name in measured], floor=floor)
         for title, group in (("as released", tuple(MODELS)), ("simple", SIMPLE)) if set(group) & set(measured)],
        "outlier fraction at test")
    examples = next(iter(measured.values())).weights.clean.shape[-1]

    def relative(of: Inside, kind: str) -> Float[np.ndarray, "seeds examples"]:
        of_kind, clean = getattr(of.weights, kind)[:, AT], of.weights.clean[:, AT]
        return of_kind / np.nanmean(clean, axis=1, keepdims=True)

    weights = curve_figure(
        "mamba.real.weights", "What an example weighs in the answer",
        f"|dF/dy| of examples with the query's pattern, by distance from the query, in units of a model's mean over "
        f"clean ones; outlier fraction {JUDGED:g}.",
        [Panel(NAMES[name], range(1, examples + 1), [Curve(kind, relative(of, kind)) for kind in ("clean", "poisoned")])
         for name, of in measured.items()], "distance from the query", "relative weight", share_y=False)
    return [errors, weights]


def row(name: str, of: Inside) -> tuple[str, ...]:
    """A model's line in the table."""
    numbers = [of.error, Rate(of.errors[:, SAME_SCALE], of.prompts), of.weight,
               *([of.step, of.match] if name in BLOCKS else [None, None]), of.decay,
               *(Rate(of.errors[:, PLACED + i], of.prompts) for i in range(len(PLACEMENTS)))]
    return (NAMES[name], *("none" if number is None else in_brackets(number) for number in numbers))


def in_brackets(estimate: Estimate) -> str:
    """A number with its interval."""
    interval = shown(estimate)
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def run(lab: Lab) -> Findings:
    """Train the models, attack them, look inside."""
    size = lab.size
    runs = {name: a_run(name, size.steps) for name in size.models}
    trained = lab.train([one for run in runs.values() for one in per_seed(run, lab.seeds())])
    models = {name: trained[i * size.seeds:(i + 1) * size.seeds] for i, name in enumerate(runs)}
    models |= {name: one_layer_models(lab, name)[:size.seeds] for name in size.simple}
    measured = {name: inside(lab.remember(measure, of, size.prompts), size.prompts) for name, of in models.items()}
    told = [f"{NAMES[name]} {of.error.value:.3f} (a poisoned example weighs {of.weight.value:.2f} of a clean one"
            + (f", its step is {of.step.value:.2f} and its product B C {of.match.value:.2f} of theirs"
               if name in BLOCKS else "") + ")"
            for name, of in measured.items()]
    return Findings(
        shown="Released blocks, softmax attention and the simple models of figure 2 under flipped outliers: errors, "
              "what each example weighs in the answer, and how both depend on the position.",
        measured=measured, numbers=f"Errors at outlier fraction {JUDGED:g} under flip: {'; '.join(told)}.",
        plots=figures(measured), tables=[Table(
            "mamba.real", f"Under flip: errors at {JUDGED:g} with outliers three times and once as large as in "
            "training, and for the former label weight, step and product B C of a poisoned example over a clean one's; "
            f"at {FAINT:g} with outliers as large as in training, what is left of a weight per position, and errors "
            "with outliers far, anywhere and close",
            ("model", "error", "same scale", "weight", "step", "B C", "decay", *PLACEMENTS),
            [row(name, of) for name, of in measured.items()])],
        specs=[(run, TESTS[AT]) for run in runs.values()])


NEAR = "Seeds differ too much, or the number lies too near to the threshold."
FLOOR_REPLIES = {"holds": "A real model is as robust as the simple block, or nearly.", "inconclusive": NEAR,
                 "fails": "What is proved for the simple block does not carry over at these settings."}
WEIGHT_REPLIES = {"holds": "It has learned to tell poisoned examples apart, as a gate does.", "inconclusive": NEAR,
                  "fails": "It is not by weighing poisoned examples less that it answers as it does."}
STEP_REPLIES = {
    "holds": "The step is the gate of the theory, in the real block, too.", "inconclusive": NEAR,
    "fails": "A real block has other ways to keep an example out: B and C, the convolution and its SiLU."}
RECENT_REPLIES = {"holds": "The real block forgets, too.", "inconclusive": NEAR,
                  "fails": "The real block need not forget: its rates A and its step are apart from what it lets in."}
PLACE_REPLIES = {"holds": "Table 1 of the paper carries over.", "inconclusive": NEAR,
                 "fails": "Table 1 of the paper does not carry over."}


def parts_of(name: str) -> tuple[Part, ...]:
    """The questions put to a released block."""
    title = NAMES[name]
    return (
        Part("ours", f"{title}, errors", f"The {title} stays near the floor at outlier fraction {JUDGED:g} under flip.",
             near_the_floor(name), replies=FLOOR_REPLIES),
        Part("ours", f"{title}, label weights", "A poisoned example weighs at most a quarter of a clean one.",
             light(name), replies=WEIGHT_REPLIES),
        Part("ours", f"{title}, steps", "The step at a poisoned example is at most a quarter of that at a clean one.",
             small_steps(name), replies=STEP_REPLIES),
        Part("ours", f"{title}, recency", "A clean example weighs less the farther it is from the query.",
             recent(name), replies=RECENT_REPLIES),
        Part("ours", f"{title}, placement", "Outliers next to the query hurt more than outliers far from it.",
             hurt_from_near(name), replies=PLACE_REPLIES))


ENTRY = Entry(
    "mamba.real", "The released blocks of Mamba and Mamba-2", "ours, after li2025mamba", run,
    says="The paper proves for a simple block, and shows on three of them, that a gate on the input filters outliers "
         "and makes recent examples count most; the released blocks have more parts.",
    sizes={"tiny": Size(seeds=2, steps=30, prompts=500, models=("block2",), simple=()),
           "quick": Size(seeds=4, steps=500, prompts=1_000, models=tuple(MODELS), simple=SIMPLE),
           "full": Size(seeds=8, steps=800, prompts=2_000, models=tuple(MODELS), simple=SIMPLE)},
    parts=(
        *parts_of("block"), *parts_of("block2"),
        Part("ours", "softmax attention, errors", "Multi-head softmax attention stays near the floor, too.",
             near_the_floor("attention"), replies=FLOOR_REPLIES),
        Part("ours", "softmax attention, label weights", "A poisoned example weighs at most a quarter of a clean one.",
             light("attention"), replies=WEIGHT_REPLIES),
        Part("ours", "linear Transformer, errors", "The linear Transformer fails past 1/2.",
             judged_by(lambda of: of.error, f"error at {JUDGED:g}", ">", BROKEN, "linear"), replies={
                 "holds": "Without softmax or gate nothing tells examples apart.", "inconclusive": NEAR,
                 "fails": "It learned to tell examples apart after all."})),
    notes=(Note("2026-11-19", "One layer of softmax attention without positions cannot see the order of examples."),))
