"""Claim `tokens.markov`: in-context Markov chains, learned first by counting tokens, then by counting transitions.

Every prompt has a transition table of its own (three states, Dirichlet prior 1/2, 32 tokens), and the next token is
asked for at every token. The Bayes predictor counts transitions; the unigram estimator counts tokens. Two layers of
softmax attention and one Mamba block are trained with the same steps and batches.

Rules, set before anything was trained on the seeds that judge at these settings, and after trainings on others (500,
501, 7000 and 7001; in other settings also on seed 0). Floor: of the cross-entropy that lies between the unigram
estimator and the Bayes predictor, attention leaves at most a third, Mamba at most a fifth. Phases of attention, in KL
divergences of its predictions from those of the estimators, over the last half of the tokens: at the record at which it
is nearest to the unigram estimator it has come at least half of the way there from uniform predictions, and is at
least twice as near to it as to the Bayes predictor; at the end it is at least twice as near to the Bayes predictor.
Heads, at the end: in layer 1 some head has at least half of its attention on the token before, in layer 2 some head at
least 0.7 on tokens that followed an earlier occurrence of the same one. One layer, which cannot find these, leaves
between half of the distance between unigram and Bayes and 1.25 times as much.
Cost: 18 trainings of 9,600 prompts, about 25 seconds, most of it for compiling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, between
from iclab.lab.entries import Entry, Findings, Part, Size
from iclab.lab.estimates import Mean
from iclab.lab.laboratory import Lab, per_seed
from iclab.papers.beyond.tokens_settings import attention, mamba, token_run
from iclab.probes.token_floors import dirichlet_predictor, errors_by_token, token_floor
from iclab.probes.token_phases import phase_probe
from iclab.prompts.markov import MarkovChain
from iclab.training import Trained

PROMPTS = MarkovChain(dimension=3, prompt_length=31, concentration=0.5)
MODELS = {"attention": attention(reach=8), "Mamba": mamba(state=4), "one layer": attention(reach=8, layers=1)}
NAMES = {"attention": "two layers of attention", "Mamba": "a Mamba block", "one layer": "one layer of attention"}
LEFT = {"attention": 1 / 3, "Mamba": 1 / 5}
ONE_LAYER = 0.5, 1.25
HALF, TWICE, PREVIOUS, INDUCTION = 0.5, 2.0, 0.5, 0.7
LATE = slice(PROMPTS.prompt_length // 2, None)


class References(NamedTuple):
    """Cross-entropies at every token."""

    bayes: Float[np.ndarray, " tokens"]
    known: Float[np.ndarray, " tokens"]
    unigram: Float[np.ndarray, " tokens"]

    @property
    def distance(self) -> float:
        """What counting transitions is worth over counting tokens."""
        return float(np.mean(self.unigram - self.bayes))


class Phases(NamedTuple):
    """What is seen of attention along training; `steps` are those of the records."""

    steps: Float[np.ndarray, " records"]
    unigram: Float[np.ndarray, "seeds records"]
    bayes: Float[np.ndarray, "seeds records"]
    previous: Float[np.ndarray, "seeds records layers"]
    """Of the head with most of it."""
    induction: Float[np.ndarray, "seeds records layers"]

    def nearest(self) -> Float[np.ndarray, " seeds"]:
        """The record at which each seed is nearest to the unigram estimator."""
        return self.unigram.argmin(axis=1)

    def at_nearest(self, values: Float[np.ndarray, "seeds records"]) -> Float[np.ndarray, " seeds"]:
        """Values at that record."""
        return np.take_along_axis(values, self.nearest()[:, None], axis=1)[:, 0]

    def delay(self) -> Float[np.ndarray, " seeds"]:
        """The first step from there on at which the Bayes predictor is nearer, over the step of that record; the last
        step if there is none."""
        nearer = (self.bayes < self.unigram) & (np.arange(len(self.steps)) >= self.nearest()[:, None])
        first = np.where(nearer.any(axis=1), nearer.argmax(axis=1), len(self.steps) - 1)
        return self.steps[first] / self.steps[self.nearest()]


class Learned(NamedTuple):
    """Everything that is measured."""

    losses: dict[str, Float[np.ndarray, "seeds tokens"]]
    references: References
    phases: Phases
    """Of two layers of attention."""
    uniform: float
    """KL divergence of uniform predictions from the unigram estimator."""

    def left(self, name: str) -> Mean:
        """Excess over the floor, relative to the distance between unigram and Bayes."""
        excess = (self.losses[name] - self.references.bayes).mean(axis=1)
        return Mean(excess / self.references.distance)


def losses_of(models: Sequence[Trained], prompts: int) -> list[Float[np.ndarray, " tokens"]]:
    """Cross-entropy of every model at every token."""
    return [errors_by_token(model, PROMPTS, count=prompts, seed=model.run.data_seed).loss for model in models]


def references_of(prompts: int) -> list[Any]:
    """Of the Bayes predictor, of the chain itself, of the unigram estimator; and how far that is from uniform."""
    floor, unigram = token_floor(PROMPTS, count=prompts), dirichlet_predictor(PROMPTS, order=0)
    logs = unigram(PROMPTS.sample(0, 1_000).numpy())[:, LATE].astype(float)
    away = np.log(PROMPTS.dimension) + (np.exp(logs) * logs).sum(axis=-1).mean()
    return [floor.bayes, floor.known, errors_by_token(unigram, PROMPTS, count=prompts).loss, away]


def phases_of(models: Sequence[Trained]) -> Phases:
    """What the probe saw; heads by the one with most of it."""
    def seen(name: str) -> Any:
        return np.stack([model.probes[name] for model in models if model.probes is not None])

    return Phases(models[0].steps, seen("from unigram"), seen("from order 1"), seen("previous").max(axis=-1),
                  seen("induction").max(axis=-1))


def near_the_floor(name: str) -> Callable[[Learned], list[Check]]:
    """The first rule."""
    return lambda learned: [Check(f"{NAMES[name]}: excess over the floor / (unigram - Bayes)", learned.left(name),
                                  "<=", LEFT[name])]


def unigram_first(learned: Learned) -> list[Check]:
    """The rule on phases."""
    phases = learned.phases
    nearest = phases.at_nearest(phases.unigram)
    return [Check("least distance from unigram / that of uniform predictions", Mean(nearest / learned.uniform), "<=",
                  HALF),
            Check("there: distance from Bayes / from unigram", Mean(phases.at_nearest(phases.bayes) / nearest), ">=",
                  TWICE),
            Check("at the end: distance from unigram / from Bayes",
                  Mean(phases.unigram[:, -1] / phases.bayes[:, -1]), ">=", TWICE)]


def heads_look(learned: Learned) -> list[Check]:
    """The rule on heads."""
    phases = learned.phases
    return [Check("layer 1: attention on the token before", Mean(phases.previous[:, -1, 0]), ">=", PREVIOUS),
            Check("layer 2: attention after an earlier occurrence", Mean(phases.induction[:, -1, -1]), ">=",
                  INDUCTION)]


def one_layer_is_not_enough(learned: Learned) -> list[Check]:
    """The rule on depth."""
    return between("one layer: excess over the floor / (unigram - Bayes)", learned.left("one layer"), *ONE_LAYER)


def figures(learned: Learned) -> list[Any]:
    """Losses by token; distances and heads along training."""
    references, tokens = learned.references, list(range(1, PROMPTS.prompt_length + 2))
    by_token = curve_figure("tokens.markov", "In-context Markov chains", "Cross-entropy of the next token.",
                            [Panel(NAMES[name], tokens, [Curve("trained", losses),
                                                         Curve("unigram", references.unigram[None])],
                                   bayes=references.bayes, lines=[("table known", references.known)])
                             for name, losses in learned.losses.items()], "token", "cross-entropy (nats)")
    seen, steps = learned.phases, learned.phases.steps.tolist()
    panels = [
        Panel("predictions", steps, [Curve("from unigram", seen.unigram), Curve("from Bayes", seen.bayes)],
              y_label="KL divergence (nats)"),
        Panel("heads", steps, [Curve("layer 1: token before", seen.previous[..., 0]),
                               Curve("layer 2: after the same token", seen.induction[..., -1])], y_label="attention",
              within=(0.0, 1.0))]
    return [by_token, curve_figure("tokens.markov.phases", "Unigrams first, then bigrams",
                                   "Distance of predictions from two estimators, and where heads look.", panels,
                                   "step", "", share_y=False)]


def run(lab: Lab) -> Findings:
    """Train three models, compare them with what counting gives."""
    size = lab.size
    runs = {name: token_run(model, PROMPTS, size.steps, size.record_every) for name, model in MODELS.items()}
    models = {"attention": lab.train_seeds(runs["attention"], probe=phase_probe(PROMPTS))}
    others, seeds = [name for name in runs if name != "attention"], lab.seeds()
    trained = lab.train([one for name in others for one in per_seed(runs[name], seeds)])  # compiled side by side
    models |= {name: trained[i * len(seeds):(i + 1) * len(seeds)] for i, name in enumerate(others)}
    bayes, known, unigram, uniform = lab.remember(references_of, size.prompts)
    learned = Learned(
        {name: np.stack(lab.remember(losses_of, of, size.prompts)) for name, of in models.items()},
        References(*(np.asarray(part) for part in (bayes, known, unigram))),
        phases_of(models["attention"]), float(uniform))
    phases = learned.phases
    left = "; ".join(f"{NAMES[name]} {learned.left(name).value:.2f}" for name in MODELS)
    return Findings(
        shown="Cross-entropy by token of models trained on Markov chains in context, beside counting tokens and "
              "transitions; and how far their predictions are from either along training.",
        measured=learned,
        numbers=f"Of the {learned.references.distance:.3f} nats between the unigram estimator and the Bayes predictor "
                f"these are left: {left}. Attention is nearest to the unigram estimator at step "
                f"{phases.steps[phases.nearest()].mean():.0f}, and nearer to the Bayes predictor from "
                f"{phases.delay().mean():.1f} times as many steps on.",
        plots=figures(learned), specs=[(run, PROMPTS) for run in runs.values()],
        settings={"states": PROMPTS.dimension, "tokens": PROMPTS.prompt_length + 1, "steps": size.steps})


SHORT = "These are brief trainings of small models; longer ones come nearer."
ENTRY = Entry(
    "tokens.markov", "Markov chains in context: unigrams first, then bigrams", "ours", run,
    says="Trained to predict the next token of chains that it has never seen, a small model first counts tokens, then "
         "transitions, as the Bayes predictor does.",
    sizes={"tiny": Size(seeds=2, steps=20, prompts=500, record_every=10),
           "quick": Size(seeds=2, steps=300, prompts=2_000, record_every=10),
           "full": Size(seeds=6, steps=300, prompts=4_000, record_every=10)},
    parts=(
        *(Part("ours", f"{NAMES[name]}, floor", f"{NAMES[name].capitalize()} comes near to the floor.",
               near_the_floor(name), replies={
                   "holds": "It counts transitions, nearly as the Bayes predictor does.", "inconclusive": SHORT,
                   "fails": SHORT}) for name in LEFT),
        Part("ours", "phases", "Attention predicts like the unigram estimator before it predicts like the Bayes "
             "predictor.", unigram_first, replies={
                 "holds": "Counting tokens needs one layer, counting transitions two that fit together.",
                 "inconclusive": "The phases overlap at this step size.",
                 "fails": "The phases overlap at this step size."}),
        Part("ours", "heads", "In the end one layer looks at the token before, the next one at what followed the same "
             "token earlier.", heads_look, replies={
                 "holds": "The two layers form an induction head.", "inconclusive": SHORT,
                 "fails": "It may find transitions in another way."}),
        Part("ours", "depth", "One layer of attention stays near the unigram estimator.", one_layer_is_not_enough,
             replies={"holds": "To count transitions takes two layers.",
                      "inconclusive": "Shifts by distance let one layer see a little of the order.",
                      "fails": "Shifts by distance let one layer see much of the order."})))
