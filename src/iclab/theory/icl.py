"""The premises and promises of li2024icl's theorems, evaluated for specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from iclab.theory.setting import algorithm, balanced, orthonormal, plain_patterns, same_patterns
from iclab.theory.statements import Condition, Constant, Law, Statement, at_least, at_most, by_law, is_so, order

EXPONENTS = {"M1": 1.0, "beta": -2 / 3, "eta": -1.0, "alpha": -2 / 3, "delta": -2 / 3, "m": 2 / 3}
"""T = Theta(eta^-1 M1 (alpha beta)^(-2/3) sqrt(log M1)) is theorem 3.3 (iv), which has neither delta, here from
equation 83, nor m, from equation 82. M1 is that of m ~ M1^2; at fixed m it has the exponent `M1_AT_FIXED_WIDTH`."""
M1_AT_FIXED_WIDTH = -1 / 3
"""By equation 82 the output is of order delta^2 beta^2 alpha^2 (eta T)^3 M1 / a^2 with a ~ m. It is of order 1 where
eta T ~ (m^2 / M1)^(1/3) (delta beta alpha)^(-2/3): with m ~ M1^2 that is equation 83. Its other term, linear in eta T,
is of order 1 only later; sqrt(log M1) comes from the attention (below equation 78)."""
IN_DOMAIN_SCALE = 0.5
"""K <= 1/2 of all in-domain data, in training and test (section 3.2)."""
LENGTH_EXPONENT = -1.0
"""l_tr >= Omega(log M1 / alpha) and l_ts >= 1 / alpha', theorem 3.3 (iii)."""


def _steps_order(run: Any, test: Any) -> float:
    eta, alpha = float(run.training.learning_rate), float(run.prompts.decisive_fraction)
    beta, M1 = float(run.prompts.pattern_norm), run.prompts.relevant_patterns
    m, delta = run.model.neurons, float(run.model.init_scale)
    return (m**2 / M1) ** (1 / 3) * np.sqrt(np.log(M1)) * (delta * alpha * beta) ** (-2 / 3) / eta


def first_steps(run: Any) -> float:
    """Iterations that the first steps take, without a constant; ours, beside equations 82 and 83.

    At the start every example has nearly the same attention, and the query's pattern and its partner are equally
    frequent and carry opposite labels: they cancel. What is left is D = alpha l / 2, where l = delta^2 beta^2 is by how
    much equal patterns exceed others before the softmax; equations 44 and 45 have alpha in its place. Let G be |q|
    times the product of W_V's label column and the mean row of W_O, each row with its sign. Label column and sqrt(m)
    times mean row start with squared lengths delta^2 and m_b / m and make each other grow, at the rate |q| D / (2
    sqrt(m)), so at first dG/dt = |q|^2 (delta^2 + m_b / m) D / (2 m); and queries and keys grow as dl/dt = alpha beta^2
    G l / (2 M1). Together l takes off when eta T is of order

        sqrt(m M1) / (alpha beta^2 delta |q| sqrt(delta^2 + m_b / m)).

    Measured by icl.start.
    """
    model, prompts = run.model, run.prompts
    m, M1, delta, beta = model.neurons, prompts.relevant_patterns, float(model.init_scale), float(prompts.pattern_norm)
    eta, alpha = float(run.training.learning_rate), float(prompts.decisive_fraction)
    m_b = model.attention_size or model.embedding.width(prompts.dimension)
    start = np.sqrt(delta**2 + m_b / m)
    return float(np.sqrt(m * M1) / (eta * alpha * beta**2 * delta * float(model.embedding.norm) * start))


ITERATIONS = Law("icl.T", "iterations T (our law from equation 82)",
                 "(m^2 / M1)^(1/3) sqrt(log M1) (delta alpha beta)^(-2/3) / eta", _steps_order,
                 lambda run, test: run.training.steps, "icl.iterations", "a training loss of 0.2", 0.2)
TRAINING_LENGTH = Law("icl.l_tr", "training examples l_tr", "log M1 / alpha",
                      lambda run, test: np.log(run.prompts.relevant_patterns) / float(run.prompts.decisive_fraction),
                      lambda run, test: run.prompts.prompt_length, "icl.alpha", "a training loss of 0.1", 0.1)
EXAMPLES = Law("icl.l_ts", "test examples l_ts", "1 / alpha'", lambda run, test: 1 / float(test.decisive_fraction),
               lambda run, test: test.prompt_length, "icl.context", "an error of 0.05 in domain", 0.05)


def least_pattern_sum(test: Any) -> float:
    """The smallest S_j, the sum of a test pattern's coefficients over the training patterns; 1 in domain."""
    return 1.0 if test.pattern_mixtures is None else float(np.asarray(test.pattern_mixtures).sum(axis=1).min())


def theorem33_conditions(run: Any, test: Any) -> list[Condition]:
    """Numerical premises of theorem 3.3 (in domain)."""
    return [*_common(run, test),
            is_so("Theorem 3.3: test patterns are those of training", test.pattern_mixtures is None),
            at_most("Section 3.2: irrelevant scale K of the test", float(test.irrelevant_scale), IN_DOMAIN_SCALE)]


def _common(run: Any, test: Any) -> list[Condition]:
    return [
        is_so("Condition 3.2: training tasks show every pattern equally often with either label",
              balanced(run.prompts)),
        at_most("Theorem 3.3: step size eta", float(run.training.learning_rate), 1.0),
        at_most("Algorithm 1: starting value delta", float(run.model.init_scale), 0.2),
        at_least("Theorem 3.3 (iii): number of test examples", test.prompt_length, EXAMPLES.order(run, test),
                 "1 / alpha'"),
    ]


def theorem34_conditions(run: Any, test: Any) -> list[Condition]:
    """Numerical premises of theorem 3.4 (out of domain)."""
    return [*_common(run, test),
            # Written as 1 / K' >= c, so that the larger c the stronger the premise, as in all others.
            order("Section 3.2: 1 / K' of the test, as K' <= O(1)", ">=", 1 / max(float(test.irrelevant_scale), 1e-9),
                  1.0, "1"),
            is_so("Theorem 3.4: new patterns are orthogonal and as long as those of training", orthonormal(test)),
            at_least("Theorem 3.4: least coefficient sum of a new pattern", least_pattern_sum(test), 1.0)]


def domain_conditions(run: Any, test: Any) -> list[Condition]:
    """Premises of statements that hold in and out of domain, for the domain of this test."""
    return theorem33_conditions(run, test) if test.pattern_mixtures is None else theorem34_conditions(run, test)


def statements(run: Any, test: Any, accuracy: float, constants: Mapping[str, Constant] | None = None
               ) -> list[Statement]:
    """Every theorem, corollary and proposition of the paper; `accuracy` is the theorems' epsilon."""
    eps, B, m, M1 = accuracy, run.training.batch_size, run.model.neurons, run.prompts.relevant_patterns
    M2, alpha = run.prompts.irrelevant_patterns, float(run.prompts.decisive_fraction)
    beta, alpha_test, l_tr = float(run.prompts.pattern_norm), float(test.decisive_fraction), run.prompts.prompt_length
    trained = (algorithm(run, "hinge"), *plain_patterns(run.prompts, "Section 3.2"),
               order("Section 3.2: relevant patterns M1, as M2 <= O(M1)", ">=", M1, M2, "M2"),
               is_so("Section 3.2: no outliers", not float(run.prompts.outlier_fraction)
                     and not float(test.outlier_fraction)),
               same_patterns(run.prompts, test, "Section 3.2"),
               order("Theorem 3.3 (i): number of neurons", ">=", m, M1**2 * np.log(M1), "M1^2 log M1"),
               order("Theorem 3.3 (ii): batch size", ">=", B, max(eps**-2, M1) * np.log(M1),
                     "max{eps^-2, M1} log M1"),
               by_law("Theorem 3.3 (iii): length of training prompts", TRAINING_LENGTH, run, test, eps, constants),
               order("Theorem 3.3 (iii): length of training prompts", ">=", l_tr, 1 / (beta**2 * alpha),
                     "1 / (beta^2 alpha)"),
               by_law("Theorem 3.3 (iv), by our law from equation 82: number of iterations", ITERATIONS, run, test, eps,
                      constants))
    small = eps + M1**-0.5
    subject = "softmax Transformer"
    return [
        Statement("icl", "Condition 3.2", subject, "training on these tasks can generalise to all",
                  tuple(theorem33_conditions(run, test)[:1]),
                  silent="M1 tasks can be enough; icl.tasks measures what fewer tasks or uncovered patterns cost."),
        Statement("icl", "Theorem 3.3", subject, f"expected hinge loss of order {eps:g} over all in-domain tasks",
                  (*theorem33_conditions(run, test), *trained), (ITERATIONS, TRAINING_LENGTH, EXAMPLES),
                  "For test examples the premise uses the theorem's constant; icl.context fits the one for an error of "
                  "0.05."),
        Statement("icl", "Theorem 3.4", subject, f"expected hinge loss of order {eps:g} out of domain",
                  (*theorem34_conditions(run, test), *trained), (),
                  "Sufficient, not necessary: in icl.ood errors fall smoothly through a sum of 1, with no cliff."),
        Statement("icl", "Theorem 3.7", subject, "pruning the small neurons leaves a loss of at most c * "
                  f"{small:.3g} [eps + M1^(-1/2)]; pruning a share R of the large ones costs at least c * (R + "
                  f"{1 / (alpha_test * M1):.3g}) [R + 1 / (alpha' M1)]; rows of large ones are at least a constant, of "
                  f"small ones at most {max(M2, 1) ** -0.5:.3g} [M2^(-1/2)]",
                  (*domain_conditions(run, test), *trained,
                   order("Theorem 3.7: decisive fraction of the test", ">=", alpha_test, M1**-0.5, "M1^(-1/2)")), (),
                  "The last premise concerns only the large neurons. The theorem is about the hinge loss; icl.pruning "
                  "finds that the 0-1 error hardly moves."),
        Statement("icl", "Proposition 4.1", subject, "queries and keys grow along their relevant pattern to order "
                  f"{np.sqrt(np.log(M1)):.3g} [sqrt(log M1)]; along all others they stay of order "
                  f"{np.sqrt(np.log(M1)) * (1 / M1 + 1 / max(M2, 1)):.3g} [sqrt(log M1) (1 / M1 + 1 / M2)]",
                  (*domain_conditions(run, test), *trained), (), "Measured by icl.norms."),
        Statement("icl", "Corollary 4.3", subject, "attention on examples with the query's pattern is at least 1 - c "
                  f"M1^-C for any C > 1, so above 1 - c * {1 / M1:.3g}",
                  (*domain_conditions(run, test), *trained), (), "Measured by icl.attention."),
        Statement("icl", "Proposition 4.5", subject, "large neurons read the mean pattern, cosine at least 1 - c * "
                  f"{1 / max(M2, 1):.3g} [1 / M2], and +-q, cosine at least 1 - c * {1 / M1:.3g} [1 / M1]",
                  (*domain_conditions(run, test), *trained), (), "Measured by icl.neurons."),
    ]
