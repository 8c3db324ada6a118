"""Claim `cot.cause`: a slip in the chain so far does its harm through attention, wrong examples do it through values.

Two wrong prompts are made from each clean one, which asks for one step of a chain. In the first the query's own last
step has gone wrong: its input is that of an example at another place. In the second the examples that match the query
have wrong outputs at this step. Both lead to the same wrong answer. Then the attention, or the columns that attention
sums, are patched from the clean prompt into the wrong one. Rules, written before the run: without a patch at least 0.95
of the answers to clean prompts are right and at least 0.9 of those to each wrong prompt are its wrong answer. A slip:
with clean attention at least 0.95 are right, with clean values at most 0.05. Wrong examples: with clean values at least
0.95 are right, with clean attention at most 0.05. Sufficient: in a clean prompt, the attention of the slip makes at
least 0.9 of the answers its wrong one.
Cost: 8 trainings and 24 shorter ones, 0.2 million test prompts, about 10 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check
from iclab.lab.entries import Entry, Findings, Part, Size, Table
from iclab.lab.estimates import Rate, shown
from iclab.lab.laboratory import Lab
from iclab.papers.cot.settings import a_run, training_prompts
from iclab.probes import UNIT
from iclab.probes.interventions import patched
from iclab.prompts.prompt import Prompt
from iclab.training import Trained

RESTORED, MISLED, LOST = 0.95, 0.9, 0.05
TEST = training_prompts()
CLEAN, SLIP, WRONG = "clean", "slip", "wrong examples"
ATTENTION, VALUES, NOTHING = "attention", "values", "nothing"
RIGHT_ANSWER, WRONG_ANSWER = "right", "wrong"
CASES = ((CLEAN, NOTHING), (SLIP, NOTHING), (SLIP, ATTENTION), (SLIP, VALUES), (WRONG, NOTHING), (WRONG, ATTENTION),
         (WRONG, VALUES))
"""The prompt that is read, and what is patched into it from the clean one."""
MISLEADING = (CLEAN, "attention of the slip")
TEST_STREAM = 500
"""Added to seeds of training: prompts of a test are others."""


def _elsewhere(prompt: Prompt) -> Int[Any, ""]:
    """A column of the query's step, of an example that is at another place."""
    return jnp.argmax((prompt.step == prompt.step[-1]) & (prompt.truth.pattern != prompt.truth.pattern[-1]))


def slip(prompt: Prompt) -> Prompt:
    """The query's last step gone wrong: it ended where another example is."""
    return prompt._replace(x=prompt.x.at[-1].set(prompt.x[_elsewhere(prompt)]))


def wrong_examples(prompt: Prompt) -> Prompt:
    """All examples that match the query with the wrong output of this step."""
    match = (prompt.step == prompt.step[-1]) & (prompt.truth.pattern == prompt.truth.pattern[-1])
    match = match & (jnp.arange(len(match)) < len(match) - 1)
    return prompt._replace(y=jnp.where(match[:, None], prompt.y[_elsewhere(prompt)], prompt.y))


def wrong_answer(prompt: Prompt) -> Int[Any, ""]:
    """The pattern that both wrong prompts lead to."""
    return prompt.truth.answer[_elsewhere(prompt)]


@jax.jit
def prompts_of(batch: Prompt) -> dict[str, Prompt]:
    """A batch of clean prompts and the two wrong ones of each."""
    return {CLEAN: batch, SLIP: jax.vmap(slip)(batch), WRONG: jax.vmap(wrong_examples)(batch)}


class Cause(NamedTuple):
    """Shares of right answers and of the wrong one, by the prompt that is read and what is patched."""

    shares: Mapping[str, Float[np.ndarray, "seeds 2"]]
    prompts: int

    def share(self, read: str, patch: str, answer: str = RIGHT_ANSWER) -> Rate:
        """The share of one answer."""
        column = (RIGHT_ANSWER, WRONG_ANSWER).index(answer)
        return Rate(np.asarray(self.shares[named(read, patch)])[:, column], self.prompts)


def named(read: str, patch: str) -> str:
    """A case in words."""
    return read if patch == NOTHING else f"{read}, {patch} patched"


def answers(models: Sequence[Trained], count: int) -> dict[str, Float[np.ndarray, "seeds 2"]]:
    """Shares of right answers and of the wrong one in all cases."""
    shares: dict[str, list[tuple[float, float]]] = {}
    for model in models:
        batch = TEST.sample(TEST_STREAM + model.run.init_seed, count)
        read = prompts_of(batch)
        right = np.argmax(np.asarray(batch.label), axis=1)
        wrong = np.asarray(jax.vmap(wrong_answer)(batch))
        predictors = {named(name, patch): (name, model if patch == NOTHING else patched(model, patch, batch))
                      for name, patch in CASES}
        predictors[named(*MISLEADING)] = CLEAN, patched(model, ATTENTION, slip)
        for case, (name, predict) in predictors.items():
            given = np.argmax(np.asarray(predict(read[name])), axis=1)
            shares.setdefault(case, []).append((float((given == right).mean()), float((given == wrong).mean())))
    return {case: np.array(of) for case, of in shares.items()}


def unpatched(cause: Cause) -> list[Check]:
    """The model works, and both wrong prompts mislead it."""
    return [Check("right answers to clean prompts", cause.share(CLEAN, NOTHING), ">=", RESTORED),
            *(Check(f"wrong answers after {name}", cause.share(name, NOTHING, WRONG_ANSWER), ">=", MISLED)
              for name in (SLIP, WRONG))]


def through(read: str, cause_of_harm: str, other: str) -> Any:
    """One patch restores the answer, the other does not."""
    return lambda cause: [
        Check(f"right answers with clean {cause_of_harm}", cause.share(read, cause_of_harm), ">=", RESTORED),
        Check(f"right answers with clean {other}", cause.share(read, other), "<=", LOST)]


def sufficient(cause: Cause) -> list[Check]:
    """Attention alone misleads."""
    return [Check("wrong answers to clean prompts with the attention of the slip",
                  cause.share(*MISLEADING, WRONG_ANSWER), ">=", MISLED)]


def run(lab: Lab) -> Findings:
    """Train, patch, count answers."""
    models = lab.train_seeds(a_run(lab.size.steps))
    cause = Cause(lab.remember(answers, models, lab.size.prompts), lab.size.prompts)
    seeds = lab.seeds(lab.size.early_seeds)
    early = [lab.remember(answers, lab.train_seeds(a_run(steps), seeds), lab.size.early_prompts)
             for steps in lab.size.early]
    plot = curve_figure(
        "cot.cause", "Right answers after a patch from the clean prompt", "Share against the steps of training.",
        [Panel(title, lab.size.early, [
            Curve(label, np.stack([np.asarray(shares[named(read, patch)])[:, 0] for shares in early], axis=1))
            for patch, label in ((NOTHING, "no patch"), (ATTENTION, "clean attention"), (VALUES, "clean values"))])
         for title, read in (("after a slip of the query", SLIP), ("with wrong examples", WRONG))],
        "T", "share of right answers", y_range=(-0.03, 1.03), log_x=True, within=UNIT)
    rows = [(case, *(f"{of.mean:.3f} [{of.low:.3f}, {of.high:.3f}]" for column in np.asarray(values).T
                     for of in [shown(Rate(column, cause.prompts))])) for case, values in cause.shares.items()]
    return Findings(
        shown="Shares of right answers along training, and of right answers and those that the wrong prompt leads to "
              "after it, with attention or values patched from the clean prompt.",
        measured=cause, numbers="Right answers: " + ", ".join(
            f"{np.asarray(values)[:, 0].mean():.3f} ({case})" for case, values in cause.shares.items()) + ".",
        plots=[plot], tables=[Table("cot.cause", "Shares of answers", ("prompt", "right", "the wrong one"), rows)],
        specs=[(models[0].run, TEST)])


NEAR = "The number lies too near to the threshold for this many seeds."
ENTRY = Entry(
    "cot.cause", "Do slips mislead through attention or through values?", "ours, after li2024cot, proposition 1", run,
    says="A step is answered from the examples at the query's step and place, to which attention goes. A slip should "
         "therefore mislead through where attention goes, wrong examples through what it finds there.",
    sizes={"tiny": Size(seeds=2, steps=300, prompts=200, early=(10, 20), early_seeds=2, early_prompts=100),
           "quick": Size(seeds=4, steps=2_000, prompts=1_000, early=(10, 40, 160), early_seeds=2,
                         early_prompts=500),
           "full": Size(seeds=8, steps=4_000, prompts=2_000, early=(5, 10, 20, 40, 80, 160), early_seeds=4,
                        early_prompts=500)}, parts=(
        Part("ours", "without a patch", "Clean prompts are answered rightly; both kinds of wrong ones mislead.",
             unpatched, replies={"holds": "The model follows the chain that it is shown.", "inconclusive": NEAR,
                                 "fails": "The model does not do what is to be explained."}),
        Part("ours", "a slip", "After a slip clean attention restores the answer, clean values do not.",
             through(SLIP, ATTENTION, VALUES), replies={
                 "holds": "The query's input reaches the answer through attention alone.", "inconclusive": NEAR,
                 "fails": "A slip acts on more than the attention."}),
        Part("ours", "wrong examples", "With wrong examples clean values restore the answer, clean attention does not.",
             through(WRONG, VALUES, ATTENTION), replies={
                 "holds": "Attention does not look at outputs: it goes where it went before.", "inconclusive": NEAR,
                 "fails": "Wrong outputs move the attention."}),
        Part("ours", "sufficient", "In a clean prompt the attention of the slip is enough to mislead.", sufficient,
             replies={"holds": "Where attention goes decides the answer.", "inconclusive": NEAR,
                      "fails": "Attention alone does not decide the answer."})))
