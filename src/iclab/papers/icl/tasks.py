"""Claim `icl.tasks`: M1 covering tasks suffice, fewer fail, and coverage is what matters (figure 7).

Rule, written before the run, on unseen in-domain tasks at decisive fraction 0.6: with M1 tasks that show every pattern
with both labels, and with two more, the error is at most 0.01; with one task fewer it is at least 0.05. It is also at
least 0.05 for two controls at M1 = 6 that have enough tasks but lack one label of some pattern: 6 random tasks that do
not cover, and 25 tasks in which the first pattern is never -1.
Cost: 40 trainings of 800 steps in 9 programs, about 25 s. Expect: .15 to .2 with one task fewer, .001 with M1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.core.spec import replace
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, Table, per_seed
from iclab.papers.icl.settings import in_domain, one_layer_run
from iclab.probes import UNIT, model_errors, seed_interval
from iclab.prompts.tasks import Task, all_tasks, cyclic_tasks
from iclab.sweeps.store import run_id
from iclab.training import Run, Trained

DECISIVE = 0.6
DIMENSION = 30
PATTERNS = {"quick": (6,), "full": (6, 8)}
AWAY = (-1, 0, 2)
"""Number of training tasks minus M1."""
SEEDS = {"quick": 4, "full": 4}
STEPS = {"quick": 400, "full": 800}
PROMPTS = {"quick": 1_000, "full": 4_000}
ERROR_ALLOWED, FAILS = 0.01, 0.05
STATEMENT = "M1 training tasks that cover every pattern with both labels are enough for all tasks; fewer are not."

Name = tuple[int, str]


def covers(tasks: tuple[Task, ...], patterns: int) -> bool:
    """Whether every pattern occurs with both labels."""
    return {a for a, _ in tasks} == {b for _, b in tasks} == set(range(patterns))


def task_sets(patterns: tuple[int, ...]) -> dict[Name, tuple[Task, ...]]:
    """The training sets, by M1 and name; the controls only for M1 = 6."""
    random, sets = np.random.default_rng(0), {}
    for M1 in patterns:
        cyclic, everything = cyclic_tasks(M1, 1), all_tasks(M1)
        rest = [task for task in everything if task not in cyclic]
        extra = tuple(rest[i] for i in random.permutation(len(rest))[:max(AWAY)])
        for away in AWAY:
            sets[M1, f"{M1 + away} cyclic"] = (*cyclic, *extra)[:M1 + away]
    random_sets = (tuple(all_tasks(6)[i] for i in sorted(random.permutation(30)[:6])) for _ in range(1000))
    sets[6, "6 random, not covering"] = next(tasks for tasks in random_sets if not covers(tasks, 6))
    sets[6, "25, the first pattern never -1"] = tuple(task for task in all_tasks(6) if task[1] != 0)
    return sets


def a_run(M1: int, tasks: tuple[Task, ...], steps: int) -> Run:
    """Training on these tasks; irrelevant patterns fill up the dimension."""
    run = one_layer_run(DECISIVE, steps)
    return replace(run, prompts=replace(run.prompts, relevant_patterns=M1, irrelevant_patterns=DIMENSION - M1,
                                        tasks=tasks))


def test_of(M1: int, tasks: tuple[Task, ...]) -> Any:
    """Test prompts of all tasks outside the training set."""
    rest = tuple(task for task in all_tasks(M1) if task not in tasks)
    return in_domain(DECISIVE, relevant_patterns=M1, irrelevant_patterns=DIMENSION - M1, tasks=rest)


Errors = dict[Name, Float[np.ndarray, " seeds"]]


def trained_models(lab: Lab) -> list[Trained]:
    """All seeds of every training set, grouped by set."""
    return lab.train([run for (M1, _), tasks in task_sets(PATTERNS[lab.scale]).items()
                      for run in per_seed(a_run(M1, tasks, STEPS[lab.scale]), lab.seeds(SEEDS[lab.scale]))])


def measure(lab: Lab) -> Errors:
    """Errors on the tasks outside each training set."""
    sets, seeds, prompts = task_sets(PATTERNS[lab.scale]), lab.seeds(SEEDS[lab.scale]), PROMPTS[lab.scale]
    models = trained_models(lab)

    def compute() -> list:
        return [model_errors(models[i * len(seeds):(i + 1) * len(seeds)], [test_of(M1, tasks)], count=prompts,
                             seeds=seeds)[:, 0].tolist() for i, ((M1, _), tasks) in enumerate(sets.items())]

    stored = lab.store.recall("icl-tasks", [[m.run for m in models], prompts], compute)
    return {name: np.array(values) for name, values in zip(sets, stored, strict=True)}


def checks(errors: Errors) -> list[Check]:
    """The rule above."""
    sets = task_sets(tuple(dict.fromkeys(M1 for M1, _ in errors)))
    return [Check.of(f"M1 = {M1}, {name} tasks: error on the others", seed_interval(values, within=UNIT),
                     *(("<=", ERROR_ALLOWED) if covers(sets[M1, name], M1) else (">=", FAILS)))
            for (M1, name), values in errors.items()]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    sets, errors, models = task_sets(PATTERNS[lab.scale]), measure(lab), trained_models(lab)
    judged, seeds, prompts = checks(errors), lab.seeds(SEEDS[lab.scale]), PROMPTS[lab.scale]
    table = Table("icl.tasks", "Errors on all other tasks", ("M1", "training tasks", "cover", "error"),
                  [(M1, name, "yes" if covers(sets[M1, name], M1) else "no",
                    f"{check.measured:.4f} [{max(check.low, 0):.4f}, {check.high:.4f}]")
                   for (M1, name), check in zip(errors, judged, strict=True)])
    claim = Claim(id="icl.tasks", statement=STATEMENT, place="li2024icl, condition 3.2, figure 7", checks=judged,
                  conditions=[], settings={"training": to_json(a_run(6, sets[6, "6 cyclic"], STEPS[lab.scale])),
                                           "prompts": prompts},
                  seeds=seeds, runs=[str(run_id(m.run)) for m in models], scale=lab.scale)
    errors_text = "; ".join(f"M1 = {M1}, {name}: {values.mean():.3f}" for (M1, name), values in errors.items())
    return Outcome(
        shown="Error on in-domain tasks outside the training set, for sets of several sizes and of equal size but "
              "different coverage; figure 7 shows the curves.",
        paper="The error is significant with fewer than M1 training tasks and about 0 with M1 or more that cover all "
              "patterns and labels.",
        measured=f"Verdict: {claim.verdict}. {errors_text}. What counts is coverage, not number.",
        tables=[table], claim=claim, seeds=seeds, settings=claim.settings)


ENTRY = Entry("icl.tasks", "claim", "How many training tasks are enough", "li2024icl, condition 3.2, figure 7", run)
