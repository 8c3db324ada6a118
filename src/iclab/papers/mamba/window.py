"""Claim `mamba.window`: Mamba trains inside a window of outlier scale, batch size and prompt length.

Rule, written before the full run. Error on fresh prompts of the training distribution (20 examples, outlier fraction
0.6, random labels); a diverged model has error 1. Theorem 1 bounds kappa_a from both sides: Mamba's error at the
smallest and at the largest kappa_a tried exceeds that at 2 by at least 0.01. Theorem 3 has no lower bound: the linear
Transformer's error at the smallest exceeds that at 2 by at most 0.01. B_M >= B_T: the smallest batch with an error
within 0.01 of that at 128 is at least as large for Mamba. Only Mamba has an upper bound on l_tr: its error at the
longest tried exceeds that at 20 by at least 0.01. (The theorems' conditions are sufficient; not seeing a bound is a
finding, not a contradiction.) At quick scale only kappa_a is varied.
Cost: 96 trainings of 1,000 steps, 5 extra programs to compile, about 20 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, per_seed
from iclab.papers.mamba.settings import one_layer_run, training_prompts
from iclab.probes import UNIT, information_floor, model_errors, seed_interval
from iclab.sweeps.store import run_id
from iclab.training import Run

AXES: dict[str, dict[str, dict[str, Sequence[float]]]] = {
    "quick": {"kappa_a": {"mamba": (0.02, 2.0, 128.0), "linear": (0.02, 2.0)}},
    "full": {"kappa_a": {"mamba": (0.02, 0.05, 0.1, 0.5, 2.0, 8.0, 32.0, 128.0),
                         "linear": (0.02, 0.05, 0.1, 0.5, 2.0, 8.0)},
             "B": {"mamba": (8, 32, 128), "linear": (8, 32, 128)}, "l_tr": {"mamba": (10, 20, 40, 80)}},
}
USUAL = {"kappa_a": 2.0, "B": 128, "l_tr": 20}
DIFFERENCE = 0.01
SEEDS = {"quick": 4, "full": 4}
STEPS = {"quick": 400, "full": 1_000}
PROMPTS = {"quick": 2_000, "full": 4_000}
STATEMENT = ("Mamba needs an outlier scale that is neither too small nor too large, at least the linear Transformer's "
             "batch size, and prompts that are not too long.")


@dataclass(frozen=True)
class Window:
    """Errors along each axis, of shape (seeds, values), by axis and model."""

    errors: dict[str, dict[str, Float[np.ndarray, "seeds values"]]]
    axes: dict[str, dict[str, Sequence[float]]]

    def at(self, axis: str, model: str, value: float) -> Float[np.ndarray, " seeds"]:
        """Errors over seeds at one value."""
        return self.errors[axis][model][:, list(self.axes[axis][model]).index(value)]

    def excess(self, axis: str, model: str, value: float) -> Float[np.ndarray, " seeds"]:
        """Errors above those at the usual value."""
        return self.at(axis, model, value) - self.at(axis, model, USUAL[axis])


def a_run(member: str, axis: str, value: float, steps: int) -> Run:
    """The base run with one setting changed."""
    run = one_layer_run(member, steps)
    if axis == "B":
        return replace(run, training=replace(run.training, batch_size=int(value)))
    field = {"outlier_scale": float(value)} if axis == "kappa_a" else {"prompt_length": int(value)}
    return replace(run, prompts=replace(run.prompts, **field))


def test_of(axis: str, value: float) -> Any:
    """Prompts of the training distribution, with 20 examples."""
    return training_prompts(outlier_scale=float(value) if axis == "kappa_a" else USUAL["kappa_a"])


def measure(lab: Lab) -> tuple[Window, list[str]]:
    """Train along every axis; errors on fresh prompts, and the ids of the runs."""
    axes, seeds, prompts = AXES[lab.scale], lab.seeds(SEEDS[lab.scale]), PROMPTS[lab.scale]
    points = [(axis, member, value) for axis, models in axes.items() for member, values in models.items()
              for value in values]
    models = lab.train([run for axis, member, value in points
                        for run in per_seed(a_run(member, axis, value, STEPS[lab.scale]), seeds)])

    def compute() -> list:
        return [model_errors(models[i * len(seeds):(i + 1) * len(seeds)], [test_of(axis, value)], count=prompts,
                             seeds=seeds)[:, 0].tolist() for i, (axis, _, value) in enumerate(points)]

    errors_by_point = lab.store.recall("mamba-window", [[m.run for m in models], prompts], compute)
    errors: dict[str, dict[str, Any]] = {axis: {} for axis in axes}
    for (axis, member, _), row in zip(points, errors_by_point, strict=True):
        errors[axis].setdefault(member, []).append(row)
    arrays = {axis: {member: np.array(rows).T for member, rows in by_member.items()}
              for axis, by_member in errors.items()}
    return Window(arrays, axes), [str(run_id(m.run)) for m in models]


def least_batch(window: Window, member: str) -> Float[np.ndarray, " seeds"]:
    """Per seed, the smallest batch from which on the error stays within 0.01 of that at 128."""
    values = np.array(window.axes["B"][member])
    within = window.errors["B"][member] - window.at("B", member, USUAL["B"])[:, None] <= DIFFERENCE
    return values[len(values) - within[:, ::-1].cumprod(axis=1).sum(axis=1)]


def checks(window: Window) -> list[Check]:
    """The rule above, for the axes that were varied."""
    scales = window.axes["kappa_a"]["mamba"]
    judged = [Check.of(f"Mamba: excess error at kappa_a = {value:g}",
                       seed_interval(window.excess("kappa_a", "mamba", value)), ">=", DIFFERENCE)
              for value in (scales[0], scales[-1])]
    judged.append(Check.of(f"linear Transformer: excess error at kappa_a = {scales[0]:g}",
                           seed_interval(window.excess("kappa_a", "linear", scales[0])), "<=", DIFFERENCE))
    if "B" in window.axes:
        judged.append(Check.of("least batch: Mamba less linear Transformer", seed_interval(
            least_batch(window, "mamba") - least_batch(window, "linear")), ">=", 0.0))
    if "l_tr" in window.axes:
        longest = window.axes["l_tr"]["mamba"][-1]
        judged.append(Check.of(f"Mamba: excess error at l_tr = {longest:g}",
                               seed_interval(window.excess("l_tr", "mamba", longest)), ">=", DIFFERENCE))
    return judged


def run(lab: Lab) -> Outcome:
    """Judge the claim and draw the window."""
    window, runs = measure(lab)
    names = {"kappa_a": "outlier scale kappa_a in training", "B": "batch size B", "l_tr": "training length l_tr"}
    panels = []
    for axis, models in window.axes.items():
        x = sorted({value for values in models.values() for value in values})
        curves = []
        for member, values in models.items():
            row = np.full((SEEDS[lab.scale], len(x)), np.nan)
            row[:, [x.index(value) for value in values]] = window.errors[axis][member]
            curves.append(Curve(member, row))
        panels.append(Panel(axis, x, curves, floor=[information_floor(test_of(axis, value)) for value in x],
                            x_label=names[axis]))
    plot = curve_figure("mamba.window", "Where training succeeds",
                        "Error on fresh training prompts (20 examples, outlier fraction 0.6, random labels) after "
                        f"{STEPS[lab.scale]:,} steps, one setting varied at a time; a diverged model has error 1.",
                        panels, "", "error", log_x=True, y_range=(-0.03, 1.03), within=UNIT)
    judged, largest_scale = checks(window), window.axes["kappa_a"]["mamba"][-1]
    claim = Claim(id="mamba.window", statement=STATEMENT, place="li2025mamba, theorems 1, 3", checks=judged,
                  conditions=[], settings={"training": to_json(one_layer_run("mamba", STEPS[lab.scale])),
                                           "prompts": PROMPTS[lab.scale]},
                  seeds=lab.seeds(SEEDS[lab.scale]), runs=runs, scale=lab.scale,
                  notes=["The theorems' conditions are sufficient: not seeing a bound contradicts nothing.",
                         f"At kappa_a = {largest_scale:g} some seeds train and others do not: "
                         f"{', '.join(f'{e:.2f}' for e in window.at('kappa_a', 'mamba', largest_scale))}. This spread, "
                         "not a lack of test prompts, may leave its check inconclusive."])

    def mean_errors(axis: str, model: str) -> str:
        return ", ".join(f"{window.at(axis, model, value).mean():.3f} at {value:g}"
                         for value in window.axes[axis][model])

    batch_and_length = ""
    if "B" in window.axes:
        least = [int(np.median(least_batch(window, member))) for member in ("mamba", "linear")]
        batch_and_length = (
            f" The smallest sufficient batch is {least[0]} for Mamba and {least[1]} for the linear Transformer, each "
            "at its own learning rate. Mamba's error by training length: " + mean_errors("l_tr", "mamba")
            + (": no upper bound is seen." if judged[-1].verdict == "fails" else "."))
    return Outcome(
        shown="Error after training, against the scale of the training outliers, the batch size and the prompt length.",
        paper="Mamba needs outliers neither too small to be detected nor so large that they drown the patterns, a "
              "batch size at least that of the linear Transformer, and prompts below a length bound; the linear "
              "Transformer needs neither a lower bound on the outliers nor an upper bound on the length.",
        measured=f"Verdict: {claim.verdict}. Mamba's error by kappa_a: {mean_errors('kappa_a', 'mamba')}; the linear "
                 f"Transformer's: {mean_errors('kappa_a', 'linear')}.{batch_and_length}",
        plots=[plot], claim=claim, seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("mamba.window", "claim", "The window of outlier scale, batch size and length in which Mamba trains",
              "li2025mamba, theorems 1, 3", run)
