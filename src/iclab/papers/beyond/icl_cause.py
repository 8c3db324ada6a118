"""Claim `icl.cause`: the softmax Transformer answers by where it attends and with its large neurons.

Figure 2 and theorem 3.7 describe attention on examples with the query's pattern and neurons of two sizes; here both are
set. Rules, written before the run, for models trained at decisive fraction 0.6 on unseen tasks at the same fraction.
The relevant pattern: with the attention of a prompt whose query has the task's other pattern, and is the same
otherwise, at least 0.95 of the answers are wrong; without, at most 0.01. The irrelevant pattern: with the attention of
a prompt whose query has its irrelevant part moved to another pattern, the error rises by at most 0.01. Necessary:
without attention on examples with the query's pattern the error is at least 0.4. Sufficient: without attention on all
others it rises by at most 0.01. Small neurons (rows of W_O W_V below a quarter of the largest): without them the hinge
loss rises by at most 0.05, in and out of domain. Large neurons: without as many of the largest ones it rises by at
least 0.1. Cost: the models of figure 2, 0.6 million test prompts, about 25 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part, Size, Table
from iclab.lab.estimates import Difference, Rate, shown
from iclab.lab.laboratory import Lab
from iclab.papers.icl.mechanism import PLACES
from iclab.papers.icl.pruned import QUARTER
from iclab.papers.icl.settings import SIZES, in_domain
from iclab.papers.icl.trained import one_layer_models
from iclab.probes.interventions import Change, ablate, intervene, patch
from iclab.probes.pruning import neuron_norms
from iclab.prompts.prompt import Prompt
from iclab.training import Trained

DECISIVE = 0.6
FLIPPED, RIGHT, ADDED, WRONG, LOSS_ADDED, LOSS_LOST = 0.95, 0.01, 0.01, 0.4, 0.05, 0.1
TEST = in_domain(DECISIVE)
RELEVANT, IRRELEVANT = "attention of the other relevant pattern", "attention of another irrelevant pattern"
SAME, OTHER = "no attention on the query's pattern", "no attention on other patterns"


def other_relevant(prompt: Prompt) -> Prompt:
    """The query with the task's other pattern in the place of its own."""
    a, b = prompt.truth.task
    places = jnp.arange(prompt.x.shape[-1])
    swapped = jnp.where(places == a, prompt.x[-1, b], jnp.where(places == b, prompt.x[-1, a], prompt.x[-1]))
    return prompt._replace(x=prompt.x.at[-1].set(swapped))


def other_irrelevant(prompt: Prompt) -> Prompt:
    """The query with its irrelevant part moved on to the next pattern."""
    M1 = TEST.relevant_patterns
    moved = jnp.roll(prompt.x[-1, M1:M1 + TEST.irrelevant_patterns], 1)
    return prompt._replace(x=prompt.x.at[-1, M1:M1 + TEST.irrelevant_patterns].set(moved))


CHANGES: dict[str, Change] = {
    RELEVANT: patch("attention", other_relevant), IRRELEVANT: patch("attention", other_irrelevant),
    SAME: ablate("attention", where="same"), OTHER: ablate("attention", where="other")}


class Cause(NamedTuple):
    """Errors with and without changes of the attention; losses with and without neurons."""

    errors: Mapping[str, Float[np.ndarray, " seeds"]]
    plain: Float[np.ndarray, " seeds"]
    losses: Mapping[str, Mapping[str, Float[np.ndarray, " seeds"]]]
    """By place, then `whole`, `small` or `large`: which neurons are gone."""
    prompts: int

    def added(self, name: str) -> Difference:
        """What a change adds to the error."""
        return Difference(self.errors[name], self.plain, self.prompts)


def small_neurons(trained: Trained) -> int:
    """How many rows are below a quarter of the largest."""
    norms = neuron_norms(trained)
    return int((norms < QUARTER * norms.max()).sum())


def ranked(trained: Trained, order: str) -> Int[np.ndarray, " neurons"]:
    """Neurons by their norm, smallest or largest first."""
    rising = np.argsort(neuron_norms(trained))
    return rising if order == "small" else rising[::-1]


def without(trained: Trained, order: str, count: int) -> Trained:
    """A model without its smallest or largest neurons."""
    if count == 0:
        return trained
    gone = ranked(trained, order)[:count]
    # The last one named again and again: then one program serves all counts.
    return intervene(trained, ablate("neurons", units=np.pad(gone, (0, trained.run.model.neurons - count), "edge")))


def relevant(cause: Cause) -> list[Check]:
    """Attention decides between the task's two patterns."""
    return [Check("error with that attention", Rate(cause.errors[RELEVANT], cause.prompts), ">=", FLIPPED),
            Check("error without a change", Rate(cause.plain, cause.prompts), "<=", RIGHT)]


def adds_little(name: str) -> Callable[[Cause], list[Check]]:
    """A change of the attention that does not matter."""
    return lambda cause: [Check(f"error added with {name}", cause.added(name), "<=", ADDED)]


def necessary(cause: Cause) -> list[Check]:
    """Without the right attention there is no answer."""
    return [Check(f"error with {SAME}", Rate(cause.errors[SAME], cause.prompts), ">=", WRONG)]


def neurons(order: str) -> Callable[[Cause], list[Check]]:
    """Small neurons are not needed, large ones are."""
    relation, threshold = ("<=", LOSS_ADDED) if order == "small" else (">=", LOSS_LOST)
    return lambda cause: [Check(f"hinge loss added {place}", Difference(losses[order], losses["whole"]), relation,
                                threshold) for place, losses in cause.losses.items()]


def measure(lab: Lab, models: Sequence[Trained]) -> Cause:
    """Change the attention, ablate neurons."""
    errors = {name: lab.errors([intervene(model, change) for model in models], [TEST])[:, 0]
              for name, change in CHANGES.items()}
    tests = [make(DECISIVE) for make in PLACES.values()]
    counts = {"whole": [0] * len(models)} | {order: [small_neurons(model) for model in models]
                                             for order in ("small", "large")}
    losses = {name: lab.errors([without(model, name, count) for model, count in zip(models, of, strict=True)], tests,
                               measure="hinge") for name, of in counts.items()}
    return Cause(errors, lab.errors(models, [TEST])[:, 0],
                 {place: {name: of[:, i] for name, of in losses.items()} for i, place in enumerate(PLACES)},
                 lab.size.prompts)


def run(lab: Lab) -> Findings:
    """Measure, tabulate, draw what ablated neurons cost."""
    models = one_layer_models(lab, DECISIVE)
    cause = measure(lab, models)
    total = models[0].run.model.neurons
    curves = {order: np.stack([lab.errors([without(model, order, round(share * total)) for model in models], [TEST],
                                          measure="hinge")[:, 0] for share in lab.size.shares], axis=1)
              for order in ("small", "large")}
    plot = curve_figure("icl.cause", "Neurons ablated by the norm of what they read", "Hinge loss on unseen tasks in "
                        "domain.", [Panel("", [100 * share for share in lab.size.shares], [
                            Curve(f"{order}est first" if order == "small" else "largest first", values)
                            for order, values in curves.items()])], "neurons ablated, %", "hinge loss")
    rows = [(name, f"{of.mean:.4f}", f"{of.low:.4f}", f"{of.high:.4f}") for name, of in (
        (name, shown(Rate(values, cause.prompts)))
        for name, values in {"no change": cause.plain, **cause.errors}.items())]
    inside = cause.losses["in domain"]
    return Findings(
        shown="Error with attention taken from another prompt, or removed, and hinge loss against the share of neurons "
              "that is ablated.",
        measured=cause, numbers=", ".join(f"{name}: error {mean}" for name, mean, *_ in rows) + ". Without the "
        f"{np.mean([small_neurons(model) for model in models]):.0f} small neurons of {total} the hinge loss in domain "
        f"is {inside['small'].mean():.3f}, without as many large ones {inside['large'].mean():.3f}, with all "
        f"{inside['whole'].mean():.3f}.",
        plots=[plot], tables=[Table("icl.cause", "Error by what is done to the attention",
                                    ("attention", "error", "low", "high"), rows)],
        specs=[(models[0].run, make(DECISIVE)) for make in PLACES.values()])


NEAR = "The number lies too near to the threshold for this many seeds."
ENTRY = Entry(
    "icl.cause", "Are attention and large neurons the cause?", "ours, after li2024icl, figure 2 and theorem 3.7", run,
    says="Trained models attend to examples with the query's pattern and have neurons with small and with large rows. "
         "If these are what the answer is made of, changing them changes it, and changing the rest does not.",
    sizes={scale: Size(**(vars(SIZES[scale]) | {"prompts": prompts, "shares": shares})) for scale, prompts, shares in (
        ("tiny", 500, (0.0, 0.3)), ("quick", 1_000, (0.0, 0.3, 0.5)), ("full", 3_000, (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)))},
    parts=(
        Part("ours", "the relevant pattern", "With the attention that the task's other pattern would get, the answer "
             "turns round.", relevant, replies={
                 "holds": "Attention is how the query's pattern reaches the answer.", "inconclusive": NEAR,
                 "fails": "The answer does not simply follow the attention."}),
        Part("ours", "the irrelevant pattern", "With the attention for another irrelevant pattern it stays.",
             adds_little(IRRELEVANT), replies={
                 "holds": "Attention has learned to look at the relevant pattern only.", "inconclusive": NEAR,
                 "fails": "Irrelevant patterns move the attention enough to matter."}),
        Part("ours", "necessary", "Without attention on examples with the query's pattern there is no right answer.",
             necessary, replies={"holds": "These examples carry the answer.", "inconclusive": NEAR,
                                 "fails": "The other examples carry some of the answer."}),
        Part("ours", "sufficient", "Attention on these examples alone is enough.", adds_little(OTHER), replies={
            "holds": "The rest of the attention is not needed.", "inconclusive": NEAR,
            "fails": "The rest of the attention helps."}),
        Part("ours", "small neurons", "Without the small neurons the loss stays.", neurons("small"), replies={
            "holds": "Small neurons are free to remove, in one intervention as in pruning.", "inconclusive": NEAR,
            "fails": "Together the small neurons carry a part of the output."}),
        Part("ours", "large neurons", "Without as many large ones it rises.", neurons("large"), replies={
            "holds": "The output is made of the large neurons.", "inconclusive": NEAR,
            "fails": "The large neurons are redundant."})))
