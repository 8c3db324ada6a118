"""The premises and promises of li2024selectors' theorems, evaluated for specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from iclab.theory.setting import algorithm, balanced, orthonormal, same_patterns, task_count
from iclab.theory.statements import (
    Condition,
    Constant,
    Law,
    Statement,
    above,
    at_least,
    at_most,
    below,
    by_law,
    is_so,
    order,
)

EXPONENTS = {"lam*": -1.0, "M": 0.5}
"""T = Theta(sqrt(M) / (lam* eta) (1 - eps_m - tau M1)^(-1/2) / (C - 1 / alpha)), theorem 1."""


def noise_factor(tau: float, M1: int) -> float:
    """(1 - tau M1)^(-1/2): how much longer training takes with noise (eps_m left out); infinite for tau >= 1 / M1."""
    return float((1 - tau * M1) ** -0.5) if tau * M1 < 1 else float("inf")


def _steps_order(run: Any, test: Any) -> float:
    prompts = run.prompts
    M1, M = prompts.relevant_patterns, prompts.relevant_patterns + prompts.irrelevant_patterns
    lam, tau = float(prompts.coefficient_low), float(prompts.noise_norm or 0.0)
    return np.sqrt(M) / (lam * float(run.training.learning_rate)) * noise_factor(tau, M1)


ITERATIONS = Law("selectors.T", "iterations T", "sqrt(M) / (lam* eta sqrt(1 - tau M1)), eps_m = 0", _steps_order,
                 lambda run, test: run.training.steps, "selectors.noise", "a training loss of 0.2", 0.2)


def statements(run: Any, test: Any, accuracy: float, constants: Mapping[str, Constant] | None = None
               ) -> list[Statement]:
    """Every theorem, corollary and proposition of the paper."""
    prompts, subject = run.prompts, "softmax Transformer"
    M1, M = prompts.relevant_patterns, prompts.relevant_patterns + prompts.irrelevant_patterns
    tau, alpha, alpha_test = (float(prompts.noise_norm or 0.0), float(prompts.decisive_fraction),
                              float(test.decisive_fraction))
    beta, loglog = float(prompts.pattern_norm), float(np.log(np.log(M1))) if M1 > 1 else -np.inf
    # The least eps_m that the number of neurons allows.
    eps_m = float(M1 * np.sqrt(np.log(max(run.training.batch_size * run.training.steps, 2)) / run.model.neurons))
    mixtures = np.eye(M1) if test.pattern_mixtures is None else np.asarray(test.pattern_mixtures)
    setting = (is_so("Section 3.3: training tasks show every pattern equally often with either label",
                     balanced(prompts)),
               algorithm(run, "hinge"),
               below("Section 2: starting value delta", float(run.model.init_scale), 0.1),
               at_most("Section 3.2: scale of the irrelevant patterns", float(prompts.irrelevant_scale), 1.0),
               at_least("Section 3.2: number of patterns M", M, M1**2, "M1^2"),
               # beta = Theta(log log M1), each way as a premise that is the stronger the larger its constant.
               order("Section 3.2: pattern norm beta", ">=", beta, loglog, "log log M1"),
               order("Section 3.2: log log M1, as beta <= O(log log M1)", ">=", loglog, beta, "beta"),
               below("Section 3.2: decisive fraction alpha", alpha, 1.0),
               is_so("Section 3.2: q is as long as the patterns",
                     bool(np.isclose(float(run.model.embedding.norm), float(prompts.pattern_norm)))))
    trained = (*setting,
               above("Theorem 1: number of neurons", run.model.neurons, 4 * M1**2 * np.log(
                   run.training.batch_size * run.training.steps), "M1^2 log N / eps_m^2, eps_m < 1/2"),
               order("Theorem 1: batch size", ">=", run.training.batch_size, M1 * np.log(M1), "M1 log M1"),
               order("Theorem 1: length of training prompts", ">=", prompts.prompt_length, 2 * np.log(M) / alpha,
                     "2 log M / alpha"),
               order("Theorem 1: noise", "<=", tau, 1 / M1, "1 / M1"),
               below("Theorem 1, eq. 6: eps_m + tau M1", eps_m + tau * M1, 1.0),
               by_law("Theorem 1: number of iterations", ITERATIONS, run, test, accuracy, constants))
    domain: tuple[Condition, ...] = (
        at_least("Theorem 2: least coefficient of a new pattern", float(mixtures.min()), 0.0),
        is_so("Section 3.5: new patterns are orthonormal", orthonormal(test)),
        same_patterns(prompts, test, "Section 3.5, new patterns apart"),
        at_most("Section 3.5: noise of the test", float(test.noise_norm or 0.0), tau, "that of training"),
        at_most("Theorem 2: number of new patterns", len(mixtures), M1),
        at_least("Theorem 2: number of test examples", test.prompt_length, 2 / alpha_test, "2 / alpha'"))
    return [
        Statement("selectors", "Lemma 1", subject, "fewer tasks cannot show every pattern with both labels",
                  (at_least("Lemma 1: number of training tasks", task_count(prompts), M1, "M1"),)),
        Statement("selectors", "Theorem 1", subject, "no error on the training tasks", trained, (ITERATIONS,),
                  "In the proof the root of M is that of the number of neurons; the constant is fitted with m in "
                  "proportion to M. The factor 1 / (C - 1 / alpha), whose C is open, and eps_m are left out."),
        Statement("selectors", "Theorem 2", subject, "no error with new patterns that are positive combinations of the "
                  "training ones", (*trained, *domain), (),
                  "Sufficient by the introduction, necessary by the abstract: selectors.noise measures combinations "
                  "with coefficient sum 0."),
        Statement("selectors", "Proposition 1", subject, "queries and keys of relevant patterns grow to order "
                  f"{np.sqrt(np.log(M)):.3g} [sqrt(log M)], those of irrelevant ones stay of order 1; attention on the "
                  "query's pattern goes to 1 as 1/T", trained, (),
                  "Measured by selectors.features and selectors.attention."),
        Statement("selectors", "Proposition 2", subject, "in a constant share of the neurons the label part exceeds "
                  "the feature part; the others stay small", trained, (), "Measured by selectors.decode."),
        Statement("selectors", "Corollary 1", subject, "attention on examples with the query's pattern is at least "
                  f"1 - c * {1 / M:.3g} [1 / M], out of domain too", (*trained, *domain), (),
                  "Measured by selectors.attention."),
    ]
