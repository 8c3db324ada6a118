"""Claim `cot.condition1`: without Condition 1 in-context learning fails however many examples there are; CoT does not.

Rule, written before the run. Examples have tau_o 0.4 and rho_o 0.1; all steps are alike, with one rival. At 256
examples: without Condition 1 the ICL error exceeds 0.5 and is at most 0.05 below that with one example; with it, the
ICL error is at least 0.2 below that with one example; the CoT error is below 0.01 in both cases. Reported but not
judged: a rival placed so that one wrong turn leads back to the query's pattern. Cost: no extra training, about 15 s.
Expect: ICL .73 without (rising), .28 with; .20 when the wrong answer is the query itself, which reverses the figure
unless rho_o is larger.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, Table
from iclab.papers.cot.settings import LONG, SIZES, a_run, default_test
from iclab.papers.cot.trained import asked, errors, models, prompts_for
from iclab.probes import UNIT, seed_interval
from iclab.probes.chains import ChainErrors
from iclab.prompts.chain import Chain
from iclab.prompts.transitions import own_pattern_distance, same_steps
from iclab.sweeps.store import run_id
from iclab.theory.cot import quality_of, theorem3_conditions
from iclab.training import Trained

TAU_O, RHO_O = 0.4, 0.1
CASES = ("with Condition 1", "without Condition 1", "without, wrong answer = query", "the same, rho_o 0.3")
CLEARER = 0.3
"""rho_o of the last case."""
FAR, LARGE, SMALL, FALL, RISE = 256, 0.5, 0.01, 0.2, -0.05
STATEMENT = "Without Condition 1 in-context learning errs with any number of examples; a chain of thought does not."


def tests() -> dict[str, Chain]:
    """The two cases of figure 4, and two in which the likeliest wrong answer is the query's pattern."""
    length = max(LONG)
    default = default_test(prompt_length=length)
    back = own_pattern_distance(default.reasoning_steps, default.patterns)
    matrices = (same_steps(TAU_O, RHO_O, condition_one=True), same_steps(TAU_O, RHO_O, condition_one=False),
                same_steps(TAU_O, RHO_O, condition_one=False, distance=back),
                same_steps(TAU_O, CLEARER, condition_one=False, distance=back))
    return {name: default_test(transitions=transitions, prompt_length=length)
            for name, transitions in zip(CASES, matrices, strict=True)}


def measure(lab: Lab) -> ChainErrors:
    """Errors in all cases; the second axis is `CASES`."""
    return errors(lab, "condition1", [asked(lab, models(lab), list(tests().values()), LONG)])[0]


def weight_of_own(trained_models: Sequence[Trained]) -> Float[np.ndarray, " models"]:
    """Attention on a column whose output is the query's pattern, relative to a column with another output: exp of the
    difference in what W adds, averaged over the training patterns."""
    d, M = a_run(1).prompts.dimension, a_run(1).prompts.patterns
    blocks = np.stack([np.asarray(trained.params.W)[d:d + M, :M] for trained in trained_models])
    diagonal = np.trace(blocks, axis1=1, axis2=2) / M
    off_diagonal = (blocks.sum(axis=(1, 2)) - diagonal * M) / (M * (M - 1))
    return np.exp(diagonal - off_diagonal)


def checks(chain_errors: ChainErrors) -> list[Check]:
    """The rule above."""
    far = LONG.index(FAR)
    with_condition, without = chain_errors.icl[:, 0], chain_errors.icl[:, 1]
    judged = [
        Check.of(f"ICL without Condition 1, {FAR} examples", seed_interval(without[:, far], within=UNIT), ">", LARGE),
        Check.of("the same less that with 1 example", seed_interval(without[:, far] - without[:, 0]), ">=", RISE),
        Check.of(f"ICL with Condition 1: error with 1 example less that with {FAR}",
                 seed_interval(with_condition[:, 0] - with_condition[:, far]), ">=", FALL)]
    for i, name in enumerate(CASES[:2]):
        judged.append(Check.of(f"CoT {name}, {FAR} examples",
                               seed_interval(chain_errors.cot[:, i, far], within=UNIT), "<", SMALL))
    return judged


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    chain_errors, size = measure(lab), SIZES[lab.scale]
    cases, far = tests(), LONG.index(FAR)
    claim = Claim(id="cot.condition1", statement=STATEMENT, place="li2024cot, theorem 3 (a), figure 4",
                  checks=checks(chain_errors), conditions=theorem3_conditions(a_run(size.steps), cases[CASES[1]]),
                  seeds=lab.seeds(size.seeds), settings={"training": to_json(a_run(size.steps)), "prompts":
                                                         prompts_for(lab, LONG), "tau_o": TAU_O, "rho_o": RHO_O},
                  runs=[str(run_id(m.run)) for m in models(lab)], scale=lab.scale,
                  notes=["Condition 1 fails here on purpose: that is the case of theorem 3 (a)."])
    rows = []
    for i, (name, test) in enumerate(cases.items()):
        means = [values[:, i, far].mean() for values in (chain_errors.icl, chain_errors.vote_icl, chain_errors.cot)]
        q = quality_of(test)
        rows.append((name, f"{q.tau:.3f}", f"{q.rho:.3f}", f"{q.tau_o:.3f}", f"{q.rho_o:.3f}",
                     "yes" if q.condition_one else "no", *(f"{value:.3f}" for value in means)))
    icl, vote, weight = chain_errors.icl.mean(axis=0), chain_errors.vote_icl.mean(axis=0), weight_of_own(models(lab))
    return Outcome(
        shown="Each check with a 95 % interval over seeds; figure 4 shows the curves.",
        paper="When the likeliest answer of the examples is wrong, ICL errs however many there are; CoT does not.",
        measured=f"Verdict: {claim.verdict}. From 1 to {FAR} examples ICL goes from {icl[1, 0]:.2f} to "
                 f"{icl[1, far]:.2f} without Condition 1 and from {icl[0, 0]:.2f} to {icl[0, far]:.2f} with it. How "
                 "badly it fails depends on which wrong answer is likely: if that is the query's pattern, the error "
                 f"at {FAR} is {icl[2, far]:.2f}, and the vote's is {vote[2, far]:.2f}. Training never shows a step "
                 "that ends where it began, and a column whose output is the query gets only "
                 f"{weight.mean():.2f} of the attention of other columns, which can overturn a small majority. With "
                 f"rho_o {CLEARER:g} instead of {RHO_O:g}, ICL's error is {icl[3, far]:.2f} and the vote's "
                 f"{vote[3, far]:.2f}.",
        tables=[Table("cot.condition1", f"Quality of the examples, and errors with {FAR} of them",
                      ("examples", "tau", "rho", "tau_o", "rho_o", "Condition 1", "ICL", "vote at once", "CoT"), rows)],
        claim=claim, seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("cot.condition1", "claim", "In-context learning without Condition 1",
              "li2024cot, theorem 3 (a), figure 4", run)
