"""Claim `mamba.adversarial`, ours: what Mamba gains and loses when it is trained against the worst attack.

Training as for figure 2, with fewer steps. For each seed the worst combination u of the training outliers with a norm
up to three times theirs is searched under flip in every placement, as in `mamba.attack`, and becomes one more outlier
of the training prompts, whose labels stay random. This is repeated three times, each time against the model just
trained. One more model is trained on the v and their reverses -v.

Rules, written after a look at a few search seeds and at one that judges, with 1,500 steps, all at outlier fraction 0.3
under flip. After one round, with u the vector of that round:
- the gate on the attack: the mean gate of examples that carry u is at most a quarter of that of clean ones over the
  nearest 8 positions (as in `mamba.gate`), and the error under u at most 0.02 above the floor;
- the clean error grows by at most 0.01;
- reaching a loss of 0.2 takes at most twice as many steps (a seed that never does counts with all its steps: settled
  after a run with 8 seeds, in which there was one; before, this and the clean error were one rule);
- the error under the attack of figure 2 grows by at most 0.02;
- the gate on the reverse, -u, is more open than that on clean examples;
- a fresh search breaks the model again (error above 0.4), and so it does after three rounds.
With outliers and their reverses: no attack of the search breaks the model (error below 0.4), because the gate gives
up: at outlier fraction 0.6 the attack of figure 2 does, as it does with the linear Transformer.
Why: the gate sees an example p through w . p alone, and w . (p + u) and w . (p - u) have the mean w . p. What shuts it
on u opens it on -u.
Cost: 80 trainings and as many searches, on 16 seeds, because 8 left half of the parts open; half a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.core.parallel import each
from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part, Rule, Table
from iclab.lab.estimates import Difference, Estimate, Mean, Rate, shown
from iclab.lab.laboratory import Lab
from iclab.papers.mamba.settings import attacked_prompts, one_layer_run, sizes, training_prompts
from iclab.probes import information_floor
from iclab.probes.attack_search import Attack, Budget, worst_attack
from iclab.probes.inside import gate_profiles
from iclab.prompts import Classification
from iclab.training import Trained

ROUNDS = 3
FRACTION, BEYOND_HALF = 0.3, 0.6
STANDARD = attacked_prompts("flip", FRACTION)
TESTS = {"clean": replace(STANDARD, outlier_fraction=0.0), "standard": STANDARD,
         "beyond half": replace(STANDARD, outlier_fraction=BEYOND_HALF)}
BUDGET = Budget(3.0 * training_prompts().outlier_scale, rules=("flip",))
NEAREST, SHARE_ALLOWED = 8, 0.25
EXCESS_ALLOWED, CLEAN_ALLOWED, BROKEN = 0.02, 0.01, 0.4
LEARNT, SLOWER_ALLOWED = 0.2, 2.0
PLAIN, MIRRORED = "round 0", "outliers and their reverses"


@dataclass(frozen=True)
class Seen:
    """What is measured of one kind of model, a number per seed."""

    errors: Mapping[str, Float[np.ndarray, " seeds"]]
    """On each of `TESTS`."""
    fresh: Float[np.ndarray, " seeds"]
    """Under the worst attack that a fresh search finds."""
    steps: Float[np.ndarray, " seeds"]
    """To a loss of `LEARNT`; NaN where it is never reached."""
    known: Float[np.ndarray, " seeds"] | None = None
    """Error under the attack that was last added to training."""
    gate: Float[np.ndarray, " seeds"] | None = None
    """Mean gate of examples that carry it, over that of clean ones."""
    reverse: Float[np.ndarray, " seeds"] | None = None
    """The same for its reverse."""


@dataclass(frozen=True)
class Rounds:
    """Every kind of model, by name."""

    seen: Mapping[str, Seen]
    prompts: int
    """On how many an error was measured."""
    steps: int
    """Of a whole training."""

    def rate(self, name: str, of: Callable[[Seen], Any], above: float = 0.0) -> Rate:
        """An error rate of one kind of model."""
        return Rate(of(self.seen[name]), self.prompts, above)

    def cost(self, test: str) -> Difference:
        """By how much one round raises the error on a test."""
        after, before = (self.seen[name].errors[test] for name in ("round 1", PLAIN))
        return Difference(after, before, self.prompts)


def attacks_found(models: Sequence[Trained], effort: Mapping[str, int]) -> list[dict[str, Any]]:
    """The worst attack on every model."""
    def job(model: Trained) -> dict[str, Any]:
        return worst_attack(model, STANDARD, BUDGET, seed=model.run.init_seed, **effort)._asdict()

    return [attack for _, attack in sorted(each(job, models), key=lambda item: item[0])]


def search(lab: Lab, models: Sequence[Trained]) -> list[Attack]:
    """The worst attack on every model, remembered."""
    return [Attack(**attack) for attack in lab.remember(attacks_found, models, lab.size.effort)]


def trained_on(lab: Lab, prompts: Sequence[Classification]) -> list[Trained]:
    """A model per seed, each on its own prompts."""
    run = one_layer_run("mamba", lab.size.steps)
    training = replace(run.training, record_every=lab.size.record_every)
    return lab.train([replace(run, prompts=own, training=training).seeded(seed)
                      for own, seed in zip(prompts, lab.seeds(), strict=True)])


def steps_to_learn(trained: Trained) -> float:
    """Steps until the training loss is first at most `LEARNT`; NaN if it never is."""
    reached = np.flatnonzero(trained.loss <= LEARNT)
    return float(trained.steps[reached[0]]) if len(reached) else float("nan")


def gate_ratio(models: Sequence[Trained], vectors: Sequence[Any], prompts: int) -> list[float]:
    """Mean gate of examples that carry a model's vector over that of clean ones, at the nearest positions."""
    ratios = []
    for model, vector in zip(models, vectors, strict=True):
        test = replace(STANDARD, outlier_mixtures=None, outlier_vectors=np.asarray(vector)[None], outlier_scale=1.0)
        gates = gate_profiles([model], test, count=prompts, seeds=[model.run.init_seed])
        clean, poisoned = (part[0, 0, :NEAREST] for part in gates)
        ratios.append(float(np.nanmean(poisoned) / clean.mean()))
    return ratios


def errors_under(models: Sequence[Trained], attacks: Sequence[Attack], lab: Lab) -> Float[np.ndarray, " seeds"]:
    """Error of every model under an attack of its own."""
    return np.array([lab.errors([model], [attack.on(STANDARD)])[0, 0]
                     for model, attack in zip(models, attacks, strict=True)])


def look(lab: Lab, models: Sequence[Trained], fresh: Sequence[Attack], known: Sequence[Attack] = ()) -> Seen:
    """Measure models of one kind; `known` are the attacks that were last added to their training."""
    errors = lab.errors(models, list(TESTS.values()))
    of_known: dict[str, Any] = {}
    if known:
        vectors = [attack.vector for attack in known]
        gate, reverse = (np.array(lab.remember(gate_ratio, models, of, lab.size.prompts))
                         for of in (vectors, [-np.asarray(vector) for vector in vectors]))
        of_known = {"known": errors_under(models, known, lab), "gate": gate, "reverse": reverse}
    return Seen(dict(zip(TESTS, errors.T, strict=True)), np.array([attack.error for attack in fresh]),
                np.array([steps_to_learn(model) for model in models]), **of_known)


def measure(lab: Lab) -> tuple[Rounds, list[Trained]]:
    """Train, search and train again; and once on the outliers and their reverses."""
    prompts = [training_prompts() for _ in lab.seeds()]
    models = plain = trained_on(lab, prompts)
    fresh = search(lab, models)
    seen = {PLAIN: look(lab, models, fresh)}
    for number in range(1, ROUNDS + 1):
        known = fresh
        prompts = [attack.added_to(own) for attack, own in zip(known, prompts, strict=True)]
        models = trained_on(lab, prompts)
        fresh = search(lab, models)
        seen[f"round {number}"] = look(lab, models, fresh, known)
    carried = training_prompts().carried()
    mirrored = replace(training_prompts(), outlier_scale=1.0, outlier_vectors=np.concatenate([carried, -carried]))
    models = trained_on(lab, [mirrored for _ in lab.seeds()])
    seen[MIRRORED] = look(lab, models, search(lab, models))
    return Rounds(seen, lab.size.prompts, lab.size.steps), plain


def on_the_attack(rounds: Rounds) -> list[Check]:
    """The gate shuts on what was added, and the error falls to the floor."""
    excess = rounds.rate("round 1", lambda seen: seen.known, information_floor(STANDARD))
    return [Check("gate on u over that on clean examples", Mean(rounds.seen["round 1"].gate, (0.0, np.inf)), "<=",
                  SHARE_ALLOWED), Check("error under u above the floor", excess, "<=", EXCESS_ALLOWED)]


def on_clean(rounds: Rounds) -> list[Check]:
    """What a round costs on clean prompts."""
    return [Check("rise of the clean error", rounds.cost("clean"), "<=", CLEAN_ALLOWED)]


def in_steps(rounds: Rounds) -> list[Check]:
    """What a round costs in steps."""
    after, before = (np.where(np.isfinite(rounds.seen[name].steps), rounds.seen[name].steps, rounds.steps)
                     for name in ("round 1", PLAIN))
    return [Check(f"steps to a loss of {LEARNT:g}, after over before", Mean(after / before, (0.0, np.inf)), "<=",
                  SLOWER_ALLOWED)]


def on_clean_and_in_steps(rounds: Rounds) -> list[Check]:
    """The first rule: both, undecided where a seed never gets there."""
    slower = rounds.seen["round 1"].steps / rounds.seen[PLAIN].steps
    return [*on_clean(rounds), Check(f"steps to a loss of {LEARNT:g}, after over before", Mean(slower, (0.0, np.inf)),
                                     "<=", SLOWER_ALLOWED)]


def on_standard(rounds: Rounds) -> list[Check]:
    """What a round costs under the attack of figure 2."""
    return [Check(f"rise of the error under flip at {FRACTION:g}", rounds.cost("standard"), "<=", EXCESS_ALLOWED)]


def on_the_reverse(rounds: Rounds) -> list[Check]:
    """The gate opens on the reverse."""
    return [Check("gate on -u over that on clean examples", Mean(rounds.seen["round 1"].reverse, (0.0, np.inf)), ">",
                  1.0)]


def on_fresh(rounds: Rounds) -> list[Check]:
    """A fresh search breaks the model again."""
    return [Check(f"{name}: error under a fresh attack", rounds.rate(name, lambda seen: seen.fresh), ">", BROKEN)
            for name in ("round 1", f"round {ROUNDS}")]


def on_mirrored(rounds: Rounds) -> list[Check]:
    """Trained on outliers and their reverses: no attack at 0.3, but flip beyond one half."""
    return [Check(f"error under a fresh attack at {FRACTION:g}", rounds.rate(MIRRORED, lambda seen: seen.fresh), "<",
                  BROKEN),
            Check(f"error under flip at {BEYOND_HALF:g}",
                  rounds.rate(MIRRORED, lambda seen: seen.errors["beyond half"]), ">", BROKEN)]


def run(lab: Lab) -> Findings:
    """Measure, draw and tabulate."""
    rounds, plain = measure(lab)

    def words(estimate: Estimate) -> str:
        mean, low, high = shown(estimate)
        return f"{mean:.3f} [{low:.3f}, {high:.3f}]"

    def row(name: str, seen: Seen) -> tuple[Any, ...]:
        rates = [*seen.errors.values(), *([] if seen.known is None else [seen.known]), seen.fresh]
        cells = [words(Rate(rate, rounds.prompts)) for rate in rates]
        if seen.known is None:
            cells.insert(len(TESTS), "")
        gates = ["" if ratio is None else f"{np.mean(ratio):.3f}" for ratio in (seen.gate, seen.reverse)]
        learnt = seen.steps[np.isfinite(seen.steps)]
        return name, *cells, *gates, f"{learnt.mean():.0f} ({len(learnt)} seeds)" if len(learnt) else "never"

    names = [f"round {number}" for number in range(ROUNDS + 1)]
    series = {"fresh worst attack": [rounds.seen[name].fresh for name in names],
              **{f"{test} prompts" if test == "clean" else f"figure 2's flip, {test}":
                 [rounds.seen[name].errors[test] for name in names] for test in TESTS}}
    plot = error_figure("mamba.adversarial", "Trained against the worst attack",
                        f"Error of Mamba after rounds of search and training; attacks at outlier fraction "
                        f"{FRACTION:g}, 'beyond half' at {BEYOND_HALF:g}.",
                        [Panel("Mamba", list(range(ROUNDS + 1)), [Curve(name, np.stack(values, axis=1))
                                                                  for name, values in series.items()])],
                        "attacks added to training")
    after = rounds.seen["round 1"]
    return Findings(
        shown="Errors, gates and steps of Mamba before and after it is trained against the worst attack on it.",
        measured=rounds, plots=[plot],
        numbers=f"One round takes the error under the attack it was trained against from "
                f"{words(rounds.rate(PLAIN, lambda seen: seen.fresh))} to "
                f"{words(rounds.rate('round 1', lambda seen: seen.known))}, that under figure 2's flip from "
                f"{words(rounds.rate(PLAIN, lambda seen: seen.errors['standard']))} to "
                f"{words(rounds.rate('round 1', lambda seen: seen.errors['standard']))}, and leaves "
                f"{words(rounds.rate('round 1', lambda seen: seen.fresh))} to a fresh search; the gate on u is "
                f"{words(Mean(after.gate))} of that on clean examples, the gate on -u {words(Mean(after.reverse))}.",
        tables=[Table("mamba.adversarial", "Errors; gates on the attack last added to training and on its reverse, "
                      f"over those on clean examples; steps to a loss of {LEARNT:g}",
                      ("model", *TESTS, "attack added", "fresh attack", "gate on u", "gate on -u", "steps"),
                      [row(name, seen) for name, seen in rounds.seen.items()])],
        specs=[(plain[0].run, STANDARD)], settings={"budget": repr(BUDGET), "rounds": ROUNDS})


ENTRY = Entry(
    "mamba.adversarial", "Mamba trained against the worst attack on it", "ours, after theorem 2 and corollary 2", run,
    says="Can adversarial training keep Mamba's gate shut, what does it cost, and does a fresh search still get "
         "through?",
    sizes=sizes(seeds=(2, 4, 16), steps=(100, 2_000, 4_000), prompts=(500, 2_000, 4_000), record_every=(20, 20, 20),
                effort=({"steps": 2, "starts": 1, "searched": 64, "count": 500},
                        {"steps": 12, "starts": 2, "searched": 128, "count": 2_000},
                        {"steps": 20, "starts": 3, "searched": 256, "count": 4_000})), parts=(
        Part("ours", "the gate on the attack", "Trained against an attack, Mamba shuts its gate on it.", on_the_attack,
             replies={
                 "holds": "Corollary 2 covers whatever outliers are in the training prompts, this one too.",
                 "inconclusive": "Training was too short, or seeds differ too much.",
                 "fails": "The added vector is not orthogonal to the other outliers, as those of the paper are."}),
        Part("ours", "the price on clean prompts", "It costs nothing on clean prompts.", on_clean,
             earlier=(Rule(on_clean_and_in_steps, "It asked for the steps as well, which have no mean where a seed "
                           "never gets there; they are a part of their own now."),),
             replies={
                 "holds": "Clean examples carry nothing along the outliers, and are not touched.",
                 "inconclusive": "Most seeds pay nothing, a few pay more than is allowed.",
                 "fails": "A gate that is asked for too much shuts clean examples out as well."}),
        Part("ours", "the price in steps", "It costs few steps.", in_steps, replies={
            "holds": "One more outlier is learned along with the others.",
            "inconclusive": "Most seeds are about as fast, but one that never gets there counts as much as many.",
            "fails": "The added vector and the others pull the gate apart, and seeds differ in how long it takes."}),
        Part("ours", "the price under the paper's attack", "It costs nothing under the attack of figure 2.",
             on_standard, replies={
                 "holds": "The added vector leaves room for the directions of the paper.",
                 "inconclusive": "How far the added vector lies from the reverse of the paper's directions differs "
                                 "between seeds.",
                 "fails": "The added vector has a negative coefficient sum, and the directions of the paper lean the "
                          "other way: to shut the gate on it opens the gate on them."}),
        Part("ours", "the gate on the reverse", "Shut on a vector, the gate is open on its reverse.", on_the_reverse,
             replies={
                 "holds": "The gate is a function of one linear form of the example.",
                 "inconclusive": "Training was too short, or seeds differ too much.",
                 "fails": "The gate must then be almost shut on clean examples, too."}),
        Part("ours", "a fresh search", "A fresh search breaks the retrained model again.", on_fresh, replies={
            "holds": "What shuts the gate on one vector opens it on another, and a search finds that one.",
            "inconclusive": "Seeds differ too much.",
            "fails": "These rounds were enough against this search; a stronger one may still find something."}),
        Part("ours", "outliers and their reverses", "Trained on outliers and their reverses, Mamba withstands the "
             "search below one half and gives its gate up: beyond one half it breaks like the linear Transformer.",
             on_mirrored, replies={
                 "holds": "A gate that can shut on neither side stops looking at the outliers, and the clean majority "
                          "decides.",
                 "inconclusive": "Beyond one half it breaks; below it seeds differ: on some the gate still moves a "
                                 "little along some outlier, and the search finds it.",
                 "fails": "The gate still moves along some outliers, and an attack finds them."})))
