"""Claim `mamba.tasks`: trained on a subset of the tasks, Mamba solves the others.

Rule, written before the run: without outliers the error on tasks outside the training family is at most 0.01 for every
U in 1..4 (cyclic family, 6 U of 30 tasks). Drawn beside it: the entries of W_B^T W_C for pairs of patterns that met in
a training task and for the others.
Cost: 32 trainings of 4,000 steps, of which those of U = 1 are figure 2's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Findings, Note, Part
from iclab.lab.estimates import Rate
from iclab.lab.laboratory import Lab
from iclab.lab.regions import Axis, Region
from iclab.papers.mamba.settings import FEW_TASKS_STEPS, one_layer_run, sizes, training_prompts
from iclab.probes import UNIT
from iclab.prompts import Classification
from iclab.prompts.tasks import parse_tasks
from iclab.training import Trained

ERROR_ALLOWED = 0.01


class Errors(NamedTuple):
    """Errors outside the family of every U."""

    shifts: tuple[int, ...]
    values: Float[np.ndarray, "seeds shifts"]
    prompts: int


def test_of(shifts: int) -> Classification:
    """Prompts without outliers, of the tasks outside the family."""
    return training_prompts(outlier_fraction=0.0, irrelevant_scale=1.2, tasks=f"unseen:{shifts}")


def pair_scores(trained: Trained) -> tuple[float, float]:
    """Mean entries of W_B^T W_C over its diagonal, for pairs of patterns that met in a training task and for others."""
    M1 = trained.run.prompts.relevant_patterns
    met = {frozenset(task) for task in parse_tasks(trained.run.prompts.tasks, M1)}
    W = (np.asarray(trained.params[0].W_B).T @ np.asarray(trained.params[0].W_C))[:M1, :M1]
    pairs = [(a, b) for a in range(M1) for b in range(M1) if a != b]

    def mean(seen: bool) -> float:
        values = [W[a, b] for a, b in pairs if (frozenset((a, b)) in met) == seen]
        return float(np.mean(values) / np.diag(W).mean()) if values else float("nan")

    return mean(True), mean(False)


def region(errors: Errors) -> Region:
    """The rule at every U."""
    return Region("error on tasks outside the family", Axis("U", errors.shifts), Axis("M1", (6,)),
                  [[Rate(values, errors.prompts) for values in errors.values.T]], "<=", ERROR_ALLOWED)


def run(lab: Lab) -> Findings:
    """Train on every family, test outside it."""
    shifts, runs = lab.size.shifts, [one_layer_run("mamba", FEW_TASKS_STEPS[lab.scale], u) for u in lab.size.shifts]
    models = [lab.train_seeds(run) for run in runs]
    values = np.concatenate([lab.errors(of, [test_of(u)]) for of, u in zip(models, shifts, strict=True)], axis=1)
    met, unmet = np.array([[pair_scores(model) for model in of] for of in models]).transpose(2, 1, 0)
    errors = Errors(shifts, values, lab.size.prompts)
    plot = curve_figure(
        "mamba.tasks", "Tasks outside the training family",
        "Left: error without outliers. Right: off-diagonal entries of W_B^T W_C over its diagonal.",
        [Panel("error on unseen tasks", shifts, [Curve("mamba", values)], within=UNIT),
         Panel("score between patterns", shifts, [Curve("pairs that met in a task", met),
                                                  Curve("pairs that never met", unmet)])],
        "U (6 U of 30 tasks are trained)", "", share_y=False)
    return Findings(
        shown="Mamba's error on untrained tasks, without outliers, against the size of the training family; and the "
              "scores that it gives to pairs of patterns.",
        measured=errors, numbers="The error outside the family is " + ", ".join(
            f"{error:.4f} at U = {u}" for u, error in zip(shifts, values.mean(axis=0), strict=True))
        + f". {region(errors).sentence} At U = {shifts[0]} the mean score of pairs that met in a task is "
          f"{met[:, 0].mean():.2f} of the diagonal, of pairs that never met {unmet[:, 0].mean():.2f}.",
        plots=[plot], specs=[(run, test_of(u)) for run, u in zip(runs, shifts, strict=True)])


ENTRY = Entry(
    "mamba.tasks", "Tasks outside the training family", "li2025mamba, theorems 1, 2", run,
    says="Training on a subset of the tasks that covers every pattern with both labels is enough for all tasks.",
    sizes=sizes(seeds=(2, 4, 8), prompts=(500, 10_000, 10_000), shifts=((1,), (1, 4), (1, 2, 3, 4))), parts=(
        Part("theorem", "theorem 2", "The error is small on every task, trained or not, for every covering family.",
             lambda errors: region(errors).checks(), theory=("Theorem 2",)),),
    notes=(Note("2026-11-18", "With U = 5 every task is in the family, so none is outside it. A reversed task counts "
                "as outside the family too: U = 3 trains every pair of patterns in at least one order."),
           Note("2026-11-18", "Entries of W_B^T W_C for two different patterns start at 0: a positive score of a pair "
                "that never met is learnt, not left over from the start.")))
