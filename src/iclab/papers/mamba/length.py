"""Claim `mamba.length`: the tolerated outlier fraction by p_a and l_ts, compared with min(1, p_a l_tr / l_ts).

Rule, written before the run: at the largest tested fraction below the theorem's bound, among those with a floor of at
most 0.02 (above it, prompts of that length carry too little information), the excess over the floor is at most 0.02,
in every cell. Ours, not judged: how much more is tolerated than promised.
Cost: 16 trainings of 3,000 steps, 0.4 million test prompts, about 15 s.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from iclab.core.identity import to_json
from iclab.core.spec import replace
from iclab.figures.heat import heat_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome, per_seed
from iclab.papers.mamba.settings import attacked_prompts, one_layer_run, training_prompts
from iclab.probes import information_floor, seed_interval
from iclab.probes.by_length import context_errors
from iclab.sweeps.store import run_id
from iclab.theory.mamba import tolerated_fraction_mamba
from iclab.training import Run, Trained

TRAINED = (0.2, 0.4, 0.6, 0.8)
LENGTHS = (10, 20, 40, 80)
FRACTIONS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
EXCESS_ALLOWED, FLOOR_ALLOWED = 0.02, 0.02
SEEDS = {"quick": 4, "full": 4}
STEPS = {"quick": 1_000, "full": 3_000}
PROMPTS = {"quick": 1_000, "full": 2_000}
STATEMENT = "Mamba's error is small for outlier fractions below min(1, p_a l_tr / l_ts)."


def a_run(fraction: float, steps: int) -> Run:
    """Mamba trained with this outlier fraction."""
    base = one_layer_run("mamba", steps)
    return replace(base, prompts=replace(base.prompts, outlier_fraction=fraction))


def measure(models: Sequence[Trained], seeds: Sequence[int], prompts: int
            ) -> Float[np.ndarray, "seeds fractions lengths"]:
    """Errors for every test fraction and prompt length."""
    tests = [attacked_prompts("flip", fraction, prompt_length=max(LENGTHS)) for fraction in FRACTIONS]
    return context_errors(models, tests, LENGTHS, count=prompts, seeds=seeds)


def floors() -> Float[np.ndarray, "fractions lengths"]:
    """The information floor of every test."""
    return np.array([[information_floor(attacked_prompts("flip", fraction, prompt_length=length)) for length in LENGTHS]
                     for fraction in FRACTIONS])


def tolerated(errors: Float[np.ndarray, "seeds fractions lengths"]) -> Float[np.ndarray, "seeds lengths"]:
    """The largest fraction up to which the excess over the floor stays within the limit; 0 if there is none."""
    within = (errors - floors() <= EXCESS_ALLOWED).cumprod(axis=1).astype(bool)
    values = np.concatenate([[0.0], FRACTIONS])
    return values[within.sum(axis=1)]


def promised(fraction: float, length: int) -> float:
    """The fraction below which theorem 2 (c) promises a small error."""
    return tolerated_fraction_mamba(training_prompts(outlier_fraction=fraction),
                                    attacked_prompts("flip", 0.5, prompt_length=length))


def checks(errors: dict[float, Float[np.ndarray, "seeds fractions lengths"]]) -> list[Check]:
    """The rule above: the worst cell for each training fraction."""
    floor, judged = floors(), []
    for training_fraction, cells in errors.items():
        worst: tuple[float, str, np.ndarray] | None = None
        for k, length in enumerate(LENGTHS):
            inside = [i for i, f in enumerate(FRACTIONS)
                      if f < promised(training_fraction, length) - 1e-9 and floor[i, k] <= FLOOR_ALLOWED]
            if inside:
                excess = cells[:, inside[-1], k] - floor[inside[-1], k]
                if worst is None or excess.mean() > worst[0]:
                    worst = excess.mean(), f"l_ts {length}, fraction {FRACTIONS[inside[-1]]:g}", excess
        if worst is not None:
            judged.append(Check.of(
                f"p_a = {training_fraction:g}: excess just inside the bound, worst length ({worst[1]})",
                seed_interval(worst[2]), "<=", EXCESS_ALLOWED))
    return judged


def run(lab: Lab) -> Outcome:
    """Judge the claim and draw the map."""
    seeds, steps, prompts = lab.seeds(SEEDS[lab.scale]), STEPS[lab.scale], PROMPTS[lab.scale]
    models = lab.train([r for fraction in TRAINED for r in per_seed(a_run(fraction, steps), seeds)])

    def compute() -> list:
        return measure(models, seeds * len(TRAINED), prompts).tolist()

    stored = np.array(lab.store.recall("mamba-length", [[m.run for m in models], prompts], compute))
    errors = dict(zip(TRAINED, stored.reshape(len(TRAINED), len(seeds), len(FRACTIONS), len(LENGTHS)), strict=True))
    grid = np.stack([tolerated(errors[fraction]) for fraction in TRAINED], axis=-1)
    bound = np.array([[promised(fraction, length) for fraction in TRAINED] for length in LENGTHS])
    plot = heat_figure("mamba.length", "Tolerated outlier fraction", "Each cell: the largest outlier fraction at which "
                       "Mamba stays within 0.02 of the floor, and in brackets what theorem 2 (c) promises. Left of and "
                       "above the line the promise is below 1.", TRAINED, LENGTHS, grid, bound,
                       "training outlier fraction p_a", "test prompt length l_ts (l_tr = 20)")
    judged = checks(errors)
    margin = grid.mean(axis=0) - np.minimum(bound, 0.95)
    claim = Claim(id="mamba.length", statement=STATEMENT, place="li2025mamba, theorem 2 (c)", checks=judged,
                  conditions=[], settings={"training": to_json(a_run(0.6, steps)), "prompts": prompts}, seeds=seeds,
                  runs=[str(run_id(m.run)) for m in models], scale=lab.scale)
    return Outcome(
        shown="The outlier fraction that Mamba tolerates under flip, for every training fraction and test length.",
        paper="Mamba tolerates fractions below min(1, p_a l_tr / l_ts): less in longer test prompts.",
        measured=f"Verdict: {claim.verdict}. At p_a = 0.6 Mamba tolerates {grid[:, 3, 2].mean():.2f} at l_ts = 80 "
                 f"(promised: {bound[3, 2]:.2f}) and {grid[:, 1, 2].mean():.2f} at l_ts = 20 (promised: "
                 f"{bound[1, 2]:.2f}); the largest margin of a cell over its bound is {margin.max():.2f}. The "
                 "tolerated fraction does not fall with prompt length as the bound does: the gate looks at each "
                 "example, not at how many there are. In prompts shorter than in training the bound promises most, and "
                 "there it is closest to the measured fraction, or above it.",
        plots=[plot], claim=claim, seeds=seeds, settings=claim.settings)


ENTRY = Entry("mamba.length", "claim", "How many outliers are tolerated, by training fraction and test length",
              "li2025mamba, theorem 2 (c)", run)
