"""Claim `mamba.tasks`: trained on a subset of the tasks, Mamba solves the others.

Rule, written before the run: without outliers the error on tasks outside the training family is at most 0.01 for every
U in 1..4 (cyclic family, 6 U of 30 tasks). Failures are explained by the entries of W_B^T W_C for pairs of patterns
that never met in a task.
Cost: 16 trainings of 4,000 steps (those of U = 1 are figure 2's), about 12 s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.mamba.settings import FEW_TASKS_STEPS, one_layer_run
from iclab.probes import UNIT, seed_interval
from iclab.prompts.tasks import parse_tasks
from iclab.sweeps.results import Results
from iclab.sweeps.sweep import Sweep

ERROR_ALLOWED = 0.01
SHIFTS = {"quick": (1, 4), "full": (1, 2, 3, 4)}
SEEDS = {"quick": 4, "full": 4}
STATEMENT = "Mamba trained on a covering subset of the tasks generalises to tasks outside it."


def pair_scores(trained: Any, test: Any, seed: int) -> dict[str, float]:
    """Mean entries of W_B^T W_C over its diagonal, for pairs of patterns that met in a training task and for others."""
    M1 = trained.run.prompts.relevant_patterns
    met = {frozenset(task) for task in parse_tasks(trained.run.prompts.tasks, M1)}
    W = (np.asarray(trained.params[0].W_B).T @ np.asarray(trained.params[0].W_C))[:M1, :M1]
    pairs = [(a, b) for a in range(M1) for b in range(M1) if a != b]

    def mean(seen: bool) -> float:
        values = [W[a, b] for a, b in pairs if (frozenset((a, b)) in met) == seen]
        return float(np.mean(values) / np.diag(W).mean()) if values else float("nan")

    return {"met": mean(True), "unmet": mean(False)}


def sweep(seeds: list[int], steps: int, shifts: tuple[int, ...]) -> Sweep:
    """Every U, tested on the tasks outside its family."""
    settings = [{"prompts.tasks": f"cyclic:{u}", "test.tasks": f"unseen:{u}"} for u in shifts]
    return Sweep(base=one_layer_run("mamba", steps), settings=settings, seeds=seeds, prompts=10_000, name="mamba.tasks",
                 test={"outlier_fraction": 0.0, "irrelevant_scale": 1.2}, measure=("error", "loss", pair_scores))


def checks(results: Results) -> list[Check]:
    """The rule above."""
    return [Check.of(f"U = {rows['prompts.tasks'][0].split(':')[1]}: error on tasks outside the family",
                     seed_interval(rows["error"].to_numpy(), within=UNIT), "<=", ERROR_ALLOWED)
            for _, rows in results.frame.group_by("prompts.tasks", maintain_order=True)]


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    shifts, seeds = SHIFTS[lab.scale], lab.seeds(SEEDS[lab.scale])
    results = lab.sweep(sweep(seeds, FEW_TASKS_STEPS[lab.scale], shifts))

    def by_shift(name: str) -> np.ndarray:
        return results.frame[name].to_numpy().reshape(len(shifts), len(seeds)).T

    judged = checks(results)
    met, unmet = by_shift("met"), by_shift("unmet")
    plot = curve_figure(
        "mamba.tasks", "Tasks outside the training family",
        "Left: error without outliers. Right: off-diagonal entries of W_B^T W_C over its diagonal. Training pushes "
        "down the entries of pairs that meet in a task; those of pairs that never meet keep their initial value.",
        [Panel("error on unseen tasks", shifts, [Curve("mamba", by_shift("error"))], within=UNIT),
         Panel("score between patterns", shifts, [Curve("pairs that met in a task", met),
                                                  Curve("pairs that never met", unmet)])],
        "U (6 U of 30 tasks are trained)", "", share_y=False)
    claim = Claim(id="mamba.tasks", statement=STATEMENT, place="li2025mamba, theorems 1, 2", checks=judged,
                  conditions=[], settings={"training": to_json(one_layer_run("mamba", FEW_TASKS_STEPS[lab.scale])),
                                           "shifts": shifts},
                  seeds=seeds, runs=results.frame["run"].to_list(), scale=lab.scale,
                  notes=["With U = 5 every task is in the family, so none is outside it. A reversed task counts as "
                         "outside the family too: U = 3 trains every pair of patterns in at least one order."])
    return Outcome(
        shown="Mamba's error on untrained tasks, without outliers, against the size of the training family; and the "
              "scores that it gives to pairs of patterns.",
        paper="Training on a subset of the tasks that covers every pattern with both labels is enough for all tasks.",
        measured=f"Verdict: {claim.verdict}. The error outside the family is " + ", ".join(
            f"{check.measured:.4f} at {check.name.split(':')[0]}" for check in judged)
        + f". At U = {shifts[0]} pairs of patterns that never met in a task keep a positive score, "
          f"{unmet[:, 0].mean():.2f} of the diagonal (those that met {met[:, 0].mean():.2f}): there an example of the "
          "other pattern votes for its own label. From U = 3 every pair has met in at least one order, and that is "
          "enough.",
        plots=[plot], claim=claim, seeds=seeds, settings=claim.settings)


ENTRY = Entry("mamba.tasks", "claim", "Tasks outside the training family", "li2025mamba, theorems 1, 2", run)
