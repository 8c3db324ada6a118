"""Claim `cot.condition1`: without Condition 1 in-context learning fails however many examples there are; CoT does not.

Rule, written before the run. Examples with tau_o 0.4 and rho_o 0.1, all steps alike with one rival, with and without
Condition 1. At 256 examples: without it the error of the answer given at once exceeds 0.5, and is no smaller than with
one example, less 0.05; with it, it is smaller than with one example by at least 0.2; the chain of thought errs below
0.01 in both. Beside the verdict: the rival so placed that one wrong turn leads back to the query's own pattern.
Cost: no training of its own, about 15 s. Expect: .73 without (rising), .28 with; .20 when the wrong answer is the query
itself, which reverses the figure, unless rho_o is larger.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from iclab.papers.claims import Check, Claim
from iclab.papers.cot.settings import LONG, SIZES, a_run, default_test
from iclab.papers.cot.trained import asked, errors, models, prompts_for
from iclab.papers.entries import Entry, Lab, Outcome, Table
from iclab.probes import UNIT, seed_interval
from iclab.probes.chains import ChainErrors
from iclab.prompts.chain import Chain
from iclab.prompts.transitions import own_pattern_distance, same_steps
from iclab.runs.store import run_id
from iclab.specs import to_json
from iclab.theory.cot import quality_of, theorem3_conditions
from iclab.training import Trained

TAU_O, RHO_O = 0.4, 0.1
CASES = ("with Condition 1", "without Condition 1", "without, wrong answer = query", "the same, rho_o 0.3")
CLEARER = 0.3
"""rho_o of the last case."""
FAR, LARGE, SMALL, FALL, RISE = 256, 0.5, 0.01, 0.2, -0.05
STATEMENT = "Without Condition 1 in-context learning errs with any number of examples; a chain of thought does not."


def tests() -> dict[str, Chain]:
    """The two cases of figure 4, and two in which the likeliest wrong answer is the pattern of the query."""
    length = max(LONG)
    plain = default_test(prompt_length=length)
    back = own_pattern_distance(plain.reasoning_steps, plain.patterns)
    made = (same_steps(TAU_O, RHO_O, condition_one=True), same_steps(TAU_O, RHO_O, condition_one=False),
            same_steps(TAU_O, RHO_O, condition_one=False, distance=back),
            same_steps(TAU_O, CLEARER, condition_one=False, distance=back))
    return {name: default_test(transitions=transitions, prompt_length=length)
            for name, transitions in zip(CASES, made, strict=True)}


def measure(lab: Lab) -> ChainErrors:
    """Errors in all cases; the second axis is `CASES`."""
    return errors(lab, "condition1", [asked(lab, models(lab), list(tests().values()), LONG)])[0]


def weight_of_own(some: Sequence[Trained]) -> Float[np.ndarray, " models"]:
    """How much less attention a column gets for an output that is the query's own pattern: exp of what W adds for it,
    over that for another output, a mean over the training patterns."""
    d, M = a_run(1).prompts.dimension, a_run(1).prompts.patterns
    blocks = np.stack([np.asarray(trained.params.W)[d:d + M, :M] for trained in some])
    own = np.trace(blocks, axis1=1, axis2=2) / M
    other = (blocks.sum(axis=(1, 2)) - own * M) / (M * (M - 1))
    return np.exp(own - other)


def checks(found: ChainErrors) -> list[Check]:
    """The rule above."""
    far = LONG.index(FAR)
    held, failed = found.icl[:, 0], found.icl[:, 1]
    judged = [
        Check.of(f"ICL without Condition 1, {FAR} examples", seed_interval(failed[:, far], within=UNIT), ">", LARGE),
        Check.of("the same less that with 1 example", seed_interval(failed[:, far] - failed[:, 0]), ">=", RISE),
        Check.of(f"ICL with Condition 1: error with 1 example less that with {FAR}",
                 seed_interval(held[:, 0] - held[:, far]), ">=", FALL)]
    for i, name in enumerate(CASES[:2]):
        judged.append(Check.of(f"CoT {name}, {FAR} examples", seed_interval(found.cot[:, i, far], within=UNIT), "<",
                               SMALL))
    return judged


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    found, size = measure(lab), SIZES[lab.scale]
    cases, far = tests(), LONG.index(FAR)
    claim = Claim(id="cot.condition1", statement=STATEMENT, place="li2024cot, theorem 3 (a), figure 4",
                  checks=checks(found), conditions=theorem3_conditions(a_run(size.steps), cases[CASES[1]]),
                  seeds=lab.seeds(size.seeds), settings={"training": to_json(a_run(size.steps)), "prompts":
                                                         prompts_for(lab, LONG), "tau_o": TAU_O, "rho_o": RHO_O},
                  runs=[str(run_id(m.run)) for m in models(lab)], scale=lab.scale,
                  notes=["Condition 1 is meant to fail here: theorem 3 (a) is about that."])
    rows = []
    for i, (name, test) in enumerate(cases.items()):
        errs = [part[:, i, far].mean() for part in (found.icl, found.vote_icl, found.cot)]
        q = quality_of(test)
        rows.append((name, f"{q.tau:.3f}", f"{q.rho:.3f}", f"{q.tau_o:.3f}", f"{q.rho_o:.3f}",
                     "yes" if q.condition_one else "no", *(f"{value:.3f}" for value in errs)))
    icl, vote, weight = found.icl.mean(axis=0), found.vote_icl.mean(axis=0), weight_of_own(models(lab))
    return Outcome(
        shown="Each check with a 95 % interval over seeds; the curves are figure 4.",
        paper="When the likeliest answer of the examples is wrong, ICL errs however many there are; CoT does not.",
        measured=f"Verdict: {claim.verdict}. From 1 to {FAR} examples ICL goes from {icl[1, 0]:.2f} to "
                 f"{icl[1, far]:.2f} without Condition 1 and from {icl[0, 0]:.2f} to {icl[0, far]:.2f} with it. How "
                 "far it fails hangs on which wrong answer is likely: if that is the query's own pattern, the error "
                 f"at {FAR} is {icl[2, far]:.2f}, where the vote errs {vote[2, far]:.2f}. Training never shows a step "
                 "that ends where it began, and the model gives a column whose output is the query "
                 f"{weight.mean():.2f} of the attention that it gives others, which can overturn a small majority. "
                 f"With rho_o {CLEARER:g} instead of {RHO_O:g} ICL errs {icl[3, far]:.2f}, the vote "
                 f"{vote[3, far]:.2f}.",
        tables=[Table("cot.condition1", f"Examples that go wrong, and errors with {FAR} of them",
                      ("examples", "tau", "rho", "tau_o", "rho_o", "Condition 1", "ICL", "vote at once", "CoT"), rows)],
        claim=claim, seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("cot.condition1", "claim", "In-context learning without Condition 1",
              "li2024cot, theorem 3 (a), figure 4", run)
