"""The premises and promises of li2024cot's theorems, evaluated for specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from iclab.prompts.transitions import Quality, exact_transitions, quality
from iclab.theory.setting import algorithm
from iclab.theory.statements import (
    Condition,
    Constant,
    Law,
    Statement,
    above,
    at_most,
    below,
    by_law,
    is_so,
    order,
)

EXAMPLES_EXPONENT = -2.0
"""l_ts >= Omega((alpha' tau rho)^-2 log M), theorem 2; the same in tau_o, rho_o for ICL, theorem 3 (b)."""
ITERATION_POWERS = {"M": 1.0, "alpha": -1.0, "K": 3.0, "eps": -1.0}
"""The largest powers in theorem 1 (ii), not the slopes of its law, which has several terms: see `iteration_terms`."""
LENGTH_EXPONENT = -1.0
"""l_tr >= Omega(1 / alpha), theorem 1 (i)."""
LARGEST_NOISE = float(np.sqrt(0.5))


class Prediction(NamedTuple):
    """What theorems 2 and 3 say about a test."""

    cot: float
    """(alpha' tau rho)^-2 log M: the number of examples that a chain of thought needs, up to a constant."""
    icl: float
    """(alpha' tau_o rho_o)^-2 log M; infinite without Condition 1."""

    @property
    def winner(self) -> str:
        """Which needs fewer examples, up to constants: CoT, ICL, or neither."""
        if np.isclose(self.cot, self.icl):
            return "neither"
        return "CoT" if self.cot < self.icl else "ICL"


def quality_of(test: Any) -> Quality:
    """tau, rho, tau_o, rho_o and Condition 1 of a test's examples."""
    exact = test.transitions is None
    return quality(exact_transitions(test.reasoning_steps, test.patterns) if exact else test.transitions)


def prediction(test: Any, trained_patterns: int) -> Prediction:
    """How many examples CoT and ICL need, up to constants that the theorems leave open."""
    test_quality, alpha = quality_of(test), float(test.matching_fraction)

    def order(tau: float, rho: float) -> float:
        informed = np.float64(alpha * tau * rho)
        with np.errstate(over="ignore"):
            return float(informed**EXAMPLES_EXPONENT * np.log(trained_patterns)) if informed > 0 else float("inf")

    return Prediction(order(test_quality.tau, test_quality.rho),
                      order(test_quality.tau_o, test_quality.rho_o) if test_quality.condition_one else float("inf"))


def iteration_terms(run: Any, eps: float) -> tuple[float, float, float]:
    """The terms of theorem 1 (ii): T >= Omega(eta^-1 alpha^-1 K^3 log(K / eps) + eta^-1 M K (alpha^-1 + eps^-1)).

    Differs from the paper: its proof has alpha^-2 in the first (eq. 34), its sum alpha^-1 (eq. 57), as the theorem.
    """
    K, M, alpha = run.prompts.reasoning_steps, run.prompts.patterns, float(run.prompts.matching_fraction)
    eta = float(run.training.learning_rate)
    return K**3 * float(np.log(K / eps)) / (eta * alpha), M * K / (eta * alpha), M * K / (eta * eps)


LOSS = 0.1
"""The training loss at which the laws of theorem 1 are measured, which is its epsilon."""
ITERATIONS = Law("cot.T", "iterations T", "(K^3 log(K / eps) / alpha + M K (1 / alpha + 1 / eps)) / eta",
                 lambda run, test: sum(iteration_terms(run, LOSS)), lambda run, test: run.training.steps,
                 "cot.iterations", f"a training loss of {LOSS}", LOSS)
TRAINING_LENGTH = Law("cot.l_tr", "training examples l_tr", "1 / alpha",
                      lambda run, test: 1 / float(run.prompts.matching_fraction),
                      lambda run, test: run.prompts.prompt_length, "cot.iterations", f"a training loss of {LOSS}",
                      LOSS)
EXAMPLES = {
    "cot": Law("cot.l_ts", "test examples l_ts", "log M / (alpha' tau rho)^2",
               lambda run, test: prediction(test, run.prompts.patterns).cot, lambda run, test: test.prompt_length,
               "cot.examples", "an error of 0.05", 0.05),
    "icl": Law("cot.l_ts_icl", "test examples l_ts", "log M / (alpha' tau_o rho_o)^2",
               lambda run, test: prediction(test, run.prompts.patterns).icl, lambda run, test: test.prompt_length,
               "cot.icl", "an error of 0.05", 0.05),
}


def theorem2_conditions(run: Any, test: Any) -> list[Condition]:
    """Numerical premises of theorem 2 (chain of thought)."""
    span = len(test.pattern_mixtures[0]) if test.pattern_mixtures is not None else test.patterns
    return [
        below("Theorem 1: step size eta", float(run.training.learning_rate), 1.0),
        at_most("Theorem 2, eq. 22: dimension of the test patterns", span, run.prompts.patterns,
                "the span of the trained ones"),
        at_most("Eq. 14: length of the noise", float(test.noise_norm or 0.0), LARGEST_NOISE, "sqrt(1/2)"),
        at_most("Section 2.2: number of test examples", test.prompt_length, run.prompts.prompt_length,
                "that of training"),
    ]


def theorem3_conditions(run: Any, test: Any) -> list[Condition]:
    """Numerical premises of theorem 3 (b) (in-context learning)."""
    return [*theorem2_conditions(run, test), condition_one(test)]


def condition_one(test: Any) -> Condition:
    """Condition 1: the most likely final answer of an example is the right one."""
    return is_so("Condition 1: the most likely answer of an example is the right one", quality_of(test).condition_one)


def statements(run: Any, test: Any, accuracy: float, constants: Mapping[str, Constant] | None = None
               ) -> list[Statement]:
    """Every theorem, proposition and condition of the paper; `accuracy` is the theorems' epsilon."""
    eps, M, K, subject = accuracy, run.prompts.patterns, run.prompts.reasoning_steps, "attention with chains"
    eta, alpha = float(run.training.learning_rate), float(run.prompts.matching_fraction)
    trained = (algorithm(run, "squared"), below("Theorem 1: step size eta", eta, 1.0),
               below("Section C.1: fraction alpha of matching examples", alpha, 1.0),
               by_law("Theorem 1 (i): length of training prompts", TRAINING_LENGTH, run, test, eps, constants),
               by_law("Theorem 1 (ii): number of iterations", ITERATIONS, run, test, eps, constants),
               order("Theorem 1 (ii): number of iterations", ">=", run.training.steps, sum(iteration_terms(run, eps)),
                     f"{ITERATIONS.formula}, eps here"),
               order("Theorem 1 (iii): batch size", ">=", run.training.batch_size, max(eps**-2, M) * np.log(M),
                     "max{eps^-2, M} log M"))
    in_lemmas = (*trained[:4], order("Lemma F.5: batch size", ">=", run.training.batch_size, M * np.log(M), "M log M"))
    enough_patterns = order("Lemma F.6, eq. 163: number of patterns M", ">=", M, K**4 / alpha, "K^4 / alpha")
    test_quality, condition = quality_of(test), condition_one(test)
    tested = (is_so("Section 2: tests have as many steps as training", test.reasoning_steps == K),
              at_most("Section C.1: number of test patterns", test.patterns, M, "M"),
              above("Section C.1, eq. 15: primacy rho of the examples' steps", test_quality.rho, 0.0),
              *theorem2_conditions(run, test)[1:])
    enough = by_law("Theorem 2 (v): number of test examples", EXAMPLES["cot"], run, test, eps, constants)
    described = (f"tau {test_quality.tau:.3g}, rho {test_quality.rho:.3g}, tau_o {test_quality.tau_o:.3g}, "
                 f"rho_o {test_quality.rho_o:.3g}")
    return [
        Statement("cot", "Theorem 1", subject, f"loss of order {eps:g} on training tasks", trained,
                  (ITERATIONS, TRAINING_LENGTH),
                  "The law takes one constant for all its terms, and its epsilon is the loss at which it was "
                  "measured; a finer accuracy adds M K / (eta eps). Step sizes of 1 and more are not covered."),
        Statement("cot", "Equation 34", subject, "attention on other steps vanishes in the first stage",
                  (*trained, enough_patterns), (), "Neither theorem 1 nor the paper's experiments have that number of "
                  "patterns. Measured by cot.iterations."),
        Statement("cot", "Lemmas F.5 and F.7", subject, "bounds on the gradient between columns in the two stages",
                  in_lemmas, (), "Measured by cot.stages."),
        Statement("cot", "Lemma F.6", subject, f"attention on other steps at most {eps:g} after the first stage",
                  (*in_lemmas, enough_patterns), (), "Equation 34 without the batch that theorem 1 asks for. Measured "
                  "by cot.stages."),
        Statement("cot", "Condition 1", subject, "direct prompting can be right", (condition,),
                  silent="Chain of thought does not need it."),
        Statement("cot", "Theorem 2", subject, f"chain of thought makes no error ({described})",
                  (*trained, *tested, enough), (EXAMPLES["cot"],),
                  "The order is sufficient, not necessary: fewer examples are enough (cot.examples). The theorem does "
                  "not cover more test examples than in training; in measurements they help."),
        Statement("cot", "Theorem 3 (a)", subject, "direct prompting errs, however many examples there are",
                  (*trained, *tested, is_so("Theorem 3 (a): Condition 1 does not hold", not condition.met)), (),
                  "A promise of failure. cot.condition1 measures it."),
        Statement("cot", "Theorem 3 (b)", subject, f"direct prompting makes no error ({described})",
                  (*trained, *tested, condition,
                   by_law("Theorem 3 (b): number of test examples", EXAMPLES["icl"], run, test, eps, constants)),
                  (EXAMPLES["icl"],),
                  "At a large share of matching examples an untrained model does almost as well (cot.icl)."),
        Statement("cot", "Proposition 1", subject, f"attention on examples of the same step and pattern is at least "
                  f"{1 - eps:g}, and every step is right", (*trained, *tested, enough), (),
                  "Measured by cot.dynamics."),
    ]
