"""What li2024cot's theorems ask for and promise, given specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from iclab.prompts.transitions import Quality, exact_transitions, quality
from iclab.theory.setting import algorithm
from iclab.theory.statements import Condition, Constant, Law, Statement, at_most, below, by_law, is_so, order

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
        informed = np.float64(alpha * tau * rho)
        with np.errstate(over="ignore"):
            return float(informed**EXAMPLES_EXPONENT * np.log(trained_patterns)) if informed > 0 else float("inf")

    return Prediction(order(found.tau, found.rho),
                      order(found.tau_o, found.rho_o) if found.condition_one else float("inf"))


def _steps_order(run: Any, test: Any) -> float:
    K, M = run.prompts.reasoning_steps, run.prompts.patterns
    return (K**3 + M * K) / (float(run.training.learning_rate) * float(run.prompts.matching_fraction))


ITERATIONS = Law("cot.T", "iterations T", "(K^3 + M K) / (eta alpha)", _steps_order,
                 lambda run, test: run.training.steps, "cot.iterations", "a training loss of 0.05", 0.05)
"""The terms of theorem 1 (ii) with alpha, at a fixed eps, without its log(K / eps)."""
TRAINING_LENGTH = Law("cot.l_tr", "training examples l_tr", "1 / alpha",
                      lambda run, test: 1 / float(run.prompts.matching_fraction),
                      lambda run, test: run.prompts.prompt_length, "cot.iterations", "a training loss of 0.05",
                      0.05)
EXAMPLES = {
    "cot": Law("cot.l_ts", "test examples l_ts", "log M / (alpha' tau rho)^2",
               lambda run, test: prediction(test, run.prompts.patterns).cot, lambda run, test: test.prompt_length,
               "cot.examples", "an error of 0.05", 0.05),
    "icl": Law("cot.l_ts_icl", "test examples l_ts", "log M / (alpha' tau_o rho_o)^2",
               lambda run, test: prediction(test, run.prompts.patterns).icl, lambda run, test: test.prompt_length,
               "cot.icl", "an error of 0.05", 0.05),
}


def theorem2_conditions(run: Any, test: Any) -> list[Condition]:
    """Premises of theorem 2 (chain of thought) that carry numbers."""
    within = len(test.pattern_mixtures[0]) if test.pattern_mixtures is not None else test.patterns
    return [
        below("Theorem 1: step size eta", float(run.training.learning_rate), 1.0),
        at_most("Theorem 2, eq. 22: dimension of the test patterns", within, run.prompts.patterns,
                "the span of the trained ones"),
        at_most("Eq. 14: length of the noise", float(test.noise_norm or 0.0), LARGEST_NOISE, "sqrt(1/2)"),
        at_most("Section 2.2: number of test examples", test.prompt_length, run.prompts.prompt_length,
                "that of training"),
    ]


def theorem3_conditions(run: Any, test: Any) -> list[Condition]:
    """Premises of theorem 3 (b) (in-context learning) that carry numbers."""
    return [*theorem2_conditions(run, test), condition_one(test)]


def condition_one(test: Any) -> Condition:
    """Condition 1."""
    return is_so("Condition 1: the most likely answer of an example is the right one", quality_of(test).condition_one)


def statements(run: Any, test: Any, accuracy: float, constants: Mapping[str, Constant] | None = None
               ) -> list[Statement]:
    """Every theorem, proposition and condition of the paper; `accuracy` is the theorems' epsilon."""
    eps, M, K, speaks = accuracy, run.prompts.patterns, run.prompts.reasoning_steps, "attention with chains"
    eta, alpha = float(run.training.learning_rate), float(run.prompts.matching_fraction)
    rest = M * K / (eta * eps)
    trained = (algorithm(run, "squared"), below("Theorem 1: step size eta", eta, 1.0),
               below("Section 2.2: fraction alpha of matching examples", alpha, 1.0),
               by_law("Theorem 1 (i): length of training prompts", TRAINING_LENGTH, run, test, eps, constants),
               by_law("Theorem 1 (ii): number of iterations", ITERATIONS, run, test, eps, constants),
               order("Theorem 1 (ii): number of iterations", ">=", run.training.steps, rest, "M K / (eta eps)"),
               order("Theorem 1 (iii): batch size", ">=", run.training.batch_size, max(eps**-2, M) * np.log(M),
                     "max{eps^-2, M} log M"))
    tested = (is_so("Section 2: tests have as many steps as training", test.reasoning_steps == K),
              *theorem2_conditions(run, test)[1:])
    found, met = quality_of(test), condition_one(test)
    enough = by_law("Theorem 2 (v): number of test examples", EXAMPLES["cot"], run, test, eps, constants)
    described = (f"tau {found.tau:.3g}, rho {found.rho:.3g}, tau_o {found.tau_o:.3g}, rho_o {found.rho_o:.3g}")
    return [
        Statement("cot", "Theorem 1", speaks, f"loss of order {eps:g} on training tasks", trained,
                  (ITERATIONS, TRAINING_LENGTH),
                  "The law has the terms with alpha: measured T falls like 1 / alpha (cot.iterations), which the term "
                  "without it would hide. A step size of 1 does in ten times as many steps what 10 does."),
        Statement("cot", "Condition 1", speaks, "direct prompting can be right", (met,),
                  silent="Not needed by chain of thought."),
        Statement("cot", "Theorem 2", speaks, f"chain of thought makes no error ({described})",
                  (*trained, *tested, enough), (EXAMPLES["cot"],),
                  "The order is enough, not necessary: fewer examples do (cot.examples). More test examples than in "
                  "training are outside the theorem; measured, they help."),
        Statement("cot", "Theorem 3 (a)", speaks, "direct prompting errs, however many examples there are",
                  (*trained, *tested, is_so("Theorem 3 (a): Condition 1 does not hold", not met.met)), (),
                  "A promise of failure. cot.condition1 measures it."),
        Statement("cot", "Theorem 3 (b)", speaks, f"direct prompting makes no error ({described})",
                  (*trained, *tested, met, by_law("Theorem 3 (b): number of test examples", EXAMPLES["icl"], run, test,
                                                  eps, constants)), (EXAMPLES["icl"],),
                  "At a large share of matching examples an untrained model does almost as well (cot.icl)."),
        Statement("cot", "Proposition 1", speaks, f"attention on examples of the same step and pattern is at least "
                  f"{1 - eps:g}, and every step is right", (*trained, *tested, enough), (),
                  "Measured by cot.dynamics."),
    ]
