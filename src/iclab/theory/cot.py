"""What li2024cot's theorems ask for and promise, given specs. Premises up to unknown constants are left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from iclab.prompts.transitions import Quality, exact_transitions, quality
from iclab.theory.conditions import Condition

EXAMPLES_EXPONENT = -2.0
"""l_ts >= Omega((alpha' tau rho)^-2 log M), theorem 2; the same in tau_o, rho_o for ICL, theorem 3 (b)."""
ITERATION_EXPONENTS = {"M": 1.0, "alpha": -1.0, "K": 3.0}
"""T >= Omega(eta^-1 alpha^-1 K^3 log(K / eps) + eta^-1 M K (alpha^-1 + eps^-1)), theorem 1 (ii): its largest powers."""
LENGTH_EXPONENT = -1.0
"""l_tr >= Omega(1 / alpha), theorem 1 (i)."""
LARGEST_NOISE = float(np.sqrt(0.5))


class Prediction(NamedTuple):
    """What theorems 2 and 3 say about a test."""

    cot: float
    """(alpha' tau rho)^-2 log M: the order of the examples that a chain of thought needs."""
    icl: float
    """(alpha' tau_o rho_o)^-2 log M; infinite without Condition 1."""

    @property
    def winner(self) -> str:
        """Which needs fewer examples, in order: CoT, ICL, or neither."""
        if np.isclose(self.cot, self.icl):
            return "neither"
        return "CoT" if self.cot < self.icl else "ICL"


def quality_of(test: Any) -> Quality:
    """tau, rho and so on of a test's examples."""
    exact = test.transitions is None
    return quality(exact_transitions(test.reasoning_steps, test.patterns) if exact else test.transitions)


def prediction(test: Any, trained_patterns: int) -> Prediction:
    """Orders of the examples that are needed; the theorems leave their constants open."""
    found, alpha = quality_of(test), float(test.matching_fraction)

    def order(tau: float, rho: float) -> float:
        informed = alpha * tau * rho
        return float(informed**EXAMPLES_EXPONENT * np.log(trained_patterns)) if informed > 0 else float("inf")

    return Prediction(order(found.tau, found.rho),
                      order(found.tau_o, found.rho_o) if found.condition_one else float("inf"))


def theorem2_conditions(run: Any, test: Any) -> list[Condition]:
    """Premises of theorem 2 (chain of thought)."""
    rate, noise = float(run.training.learning_rate), float(test.noise_norm or 0.0)
    longest = run.prompts.prompt_length
    within = len(test.pattern_mixtures[0]) if test.pattern_mixtures is not None else test.patterns
    return [
        Condition("Theorem 1: step size eta", "< 1", f"{rate:g}", rate < 1),
        Condition("Theorem 2, eq. 22: test patterns in the span of the trained ones", f"<= {run.prompts.patterns}",
                  f"{within}", within <= run.prompts.patterns),
        Condition("Eq. 14: length of the noise", f"<= {LARGEST_NOISE:.3f}", f"{noise:g}", noise <= LARGEST_NOISE),
        Condition("Section 2.2: test examples, no more than in training", f"<= {longest}", f"{test.prompt_length}",
                  test.prompt_length <= longest),
    ]


def theorem3_conditions(run: Any, test: Any) -> list[Condition]:
    """Premises of theorem 3 (b) (in-context learning)."""
    met = quality_of(test).condition_one
    return [*theorem2_conditions(run, test),
            Condition("Condition 1: the most likely answer of an example is the right one", "yes",
                      "yes" if met else "no", met)]
