"""Claim `cot.dynamics`: attention concentrates on columns of the same step and pattern, in two stages (figure 5).

Rule, written before the run, on test prompts, averaged over the steps of the chain of thought. After training, at least
0.95 of the attention lies on columns of the same step with the query's pattern, and at most 0.02 on other steps. The
first stage ends (other steps below 0.05 for good) before the second does (same step and pattern above 0.9 for good).
Cost: one training of all seeds, about 15 s. Expect: .990 at the end; the stages end at steps 14 and 42 and overlap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, Table
from iclab.papers.cot.mechanism import along
from iclab.papers.cot.settings import SIZES, a_run, default_test
from iclab.papers.cot.trained import models
from iclab.probes import UNIT, seed_interval
from iclab.probes.scaling import first_below
from iclab.sweeps.store import run_id
from iclab.theory.cot import theorem2_conditions
from iclab.training import Trained

GATHERED, ELSEWHERE = 0.95, 0.02
ENDS = (0.05, 0.9)
"""Mass on other steps at which the first stage ends, mass on the same step and pattern at which the second does."""
STATEMENT = "Attention on other steps vanishes first; then that on columns of the same step and pattern tends to 1."


class Stages(NamedTuple):
    """When the two stages of training end, by seed, and how far along the second is when the first ends."""

    first: Float[np.ndarray, " seeds"]
    second: Float[np.ndarray, " seeds"]
    overlap: Float[np.ndarray, " seeds"]
    """Mass on the same step and pattern when the first stage ends."""


def stages(trained: list[Trained]) -> Stages:
    """The ends of the stages, from the recorded masses."""
    masses, steps = along(trained), trained[0].steps
    first = np.array([first_below(steps, rows[:, 2] + rows[:, 3], ENDS[0]) for rows in masses])
    second = np.array([first_below(steps, -rows[:, 0], -ENDS[1]) for rows in masses])
    overlap = np.array([np.interp(end, steps, rows[:, 0]) for end, rows in zip(first, masses, strict=True)])
    return Stages(first, second, overlap)


def checks(final_masses: Float[np.ndarray, "seeds 4"], ends: Stages) -> list[Check]:
    """The rule above."""
    return [Check.of("attention on the same step and pattern", seed_interval(final_masses[:, 0], within=UNIT), ">=",
                     GATHERED),
            Check.of("attention on other steps", seed_interval(final_masses[:, 2] + final_masses[:, 3], within=UNIT),
                     "<=", ELSEWHERE),
            Check.of("end of the first stage over end of the second", seed_interval(ends.first / ends.second), "<",
                     1.0)]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    trained, size = models(lab), SIZES[lab.scale]
    ends, masses = stages(trained), along(trained)
    by_step = np.stack([along(trained, k)[:, -1] for k in range(a_run(1).prompts.reasoning_steps)], axis=1)
    claim = Claim(id="cot.dynamics", statement=STATEMENT, place="li2024cot, proposition 1, figure 5",
                  checks=checks(masses[:, -1], ends), seeds=lab.seeds(size.seeds),
                  conditions=theorem2_conditions(a_run(size.steps), default_test(prompt_length=20)),
                  settings={"training": to_json(a_run(size.steps))}, runs=[str(run_id(m.run)) for m in trained],
                  scale=lab.scale)
    rows = [(f"step {k}", *(f"{value:.4f}" for value in values)) for k, values in enumerate(by_step.mean(axis=0), 1)]
    start = masses[:, 0, 0].mean()
    return Outcome(
        shown="Each check with a 95 % interval over seeds; figure 5 shows the curves.",
        paper="Two stages: attention on other steps falls to 0, then that on the same step and pattern rises to 1.",
        measured=f"Verdict: {claim.verdict}. At the end {masses[:, -1, 0].mean():.3f} of the attention lies on the "
                 f"same step and pattern. The first stage ends at step {ends.first.mean():.0f}, the second at "
                 f"{ends.second.mean():.0f}; but they overlap: when the first ends, the mass on the same step and "
                 f"pattern, {start:.2f} at the first record, has already risen to {ends.overlap.mean():.2f}.",
        tables=[Table("cot.dynamics", "Attention at the end of training, by step of the chain of thought",
                      ("", "same step, same pattern", "same step, other", "other step, same", "other step, other"),
                      rows)],
        claim=claim, seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("cot.dynamics", "claim", "Attention concentrates in two stages",
              "li2024cot, proposition 1, figure 5", run)
