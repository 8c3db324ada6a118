"""Step by step or at once? What the theorems predict for given transition matrices, and what trained models do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from iclab.core.errors import require
from iclab.lab.laboratory import per_seed
from iclab.papers.cot.settings import a_run
from iclab.probes import UNIT, Interval, seed_interval
from iclab.probes.chains import chain_errors
from iclab.prompts.chain import chain_test
from iclab.prompts.transitions import Quality, as_transitions, matrices, quality, right_targets, whole_chain
from iclab.sweeps.store import as_store
from iclab.theory.cot import Prediction, prediction
from iclab.training import train_many
from iclab.training.trainer import Progress


class Comparison(NamedTuple):
    """A chain of thought (CoT) against the answer given at once (ICL), on the same prompts."""

    quality: Quality
    prediction: Prediction
    """Orders of the number of examples needed, by theorems 2 and 3."""
    cot: Interval
    """Error of CoT, averaged over its steps (eq. 7), over models."""
    cot_answer: Interval
    """Error of CoT's last step, comparable with ICL's."""
    icl: Interval
    """Error of ICL."""
    vote: float
    """Errors of the ideal majority vote: averaged over the steps, in the last step, at once."""
    vote_answer: float
    vote_icl: float
    difference: Interval
    """ICL's error minus that of CoT's last step."""
    notes: tuple[str, ...]

    @property
    def winner(self) -> str:
        """Whose answer errs less: CoT, ICL, or neither if the interval contains 0."""
        if self.difference.low > 0:
            return "CoT"
        return "ICL" if self.difference.high < 0 else "neither"


def compare_reasoning(transitions: Any, *, examples: int = 20, matching_fraction: float = 0.8, noise_norm: float = 0.2,
                      models: int = 4, prompts: int = 1000, training_steps: int = 1000, base_seed: int = 0,
                      store: Any = None, progress: Progress | None = None) -> Comparison:
    """Predict from the theorems, and measure with freshly trained models, whether CoT or ICL wins.

    `transitions` are matrices A_1 .. A_K (see iclab.prompts.transitions); the models are trained on error-free K-step
    chains and kept in `store`. An interval needs at least two models.
    """
    require(models >= 2, "models", models, "be at least 2, to give an interval")
    A = matrices(transitions)
    K, patterns = A.shape[:2]
    trained_patterns = max(20, patterns, K + 1)
    run = a_run(training_steps, reasoning_steps=K, patterns=trained_patterns, dimension=max(30, trained_patterns + 10))
    test = chain_test(run.prompts, patterns=patterns, prompt_length=examples, matching_fraction=matching_fraction,
                      noise_norm=noise_norm or None, transitions=as_transitions(A))
    predicted = prediction(test, trained_patterns)
    runs = per_seed(run, range(base_seed * 1000, base_seed * 1000 + models))
    model_store = as_store(store)
    trained = train_many(runs, progress=progress) if model_store is None else model_store.train(runs, progress)
    errors = chain_errors(trained, [test], [examples], count=prompts)

    def over_models(values: Any, within: tuple[float, float] | None = UNIT) -> Interval:
        return seed_interval(values[:, 0, 0], within=within)

    return Comparison(
        quality(A), predicted, over_models(errors.cot), over_models(errors.cot_answer),
        over_models(errors.icl), float(errors.vote.mean()), float(errors.vote_steps[..., -1].mean()),
        float(errors.vote_icl.mean()), over_models(errors.icl - errors.cot_answer, within=None), tuple(_notes(A)))


def _notes(A: np.ndarray) -> Sequence[str]:
    """Notes on what the theorems ignore: in training, no step and no chain ends where it began."""
    targets, patterns = right_targets(A), np.arange(A.shape[1])
    notes = [f"from pattern {np.flatnonzero(f_k == patterns)[0]} the right outcome of step {k} is that pattern itself; "
             "training has no such step" for k, f_k in enumerate(targets, 1) if (f_k == patterns).any()]
    returns = whole_chain(A).argmax(axis=1) == patterns
    if returns.any() and len(A) > 1:
        notes.append(f"from pattern {np.flatnonzero(returns)[0]} the likeliest answer is that pattern itself; training "
                     "never shows such an answer, and such columns get less attention, which may overturn a small "
                     "majority (cot.condition1)")
    return notes
