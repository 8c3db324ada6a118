"""What hurts a trained model most? Search for the attack within a budget, then measure it like any other.

Mamba filters poison along the training outliers; the same outliers reversed open its gate.
"""

import sys

from iclab import Budget, Classification, GatedAttention, Run, Training, measure_error, replace, train, worst_attack

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1500


def main():
    """Train both models, search, print; return the errors by model and budget."""
    prompts = Classification(outlier_fraction=0.6)
    rates = {"mamba": 1.0, "linear": 0.1}
    models = {name: train(Run(model=GatedAttention(member=name), prompts=prompts,
                              training=Training(steps=steps, learning_rate=rate))) for name, rate in rates.items()}
    test = replace(prompts, outlier_fraction=0.3, outlier_scale=6.0, label_rule="flip")
    budgets = {"inside theorem 2": Budget(largest=6.0, smallest=2.0, least_sum=0.3),
               "any combination of the training outliers": Budget(largest=6.0)}
    errors = {}
    for name, model in models.items():
        print(f"{name}: error {measure_error(model, test).error:.3f} under flipped training outliers")
        for description, budget in budgets.items():
            worst = worst_attack(model, test, budget, starts=2, steps=15)
            errors[name, description] = worst.error
            print(f"  worst, {description}: {worst.error:.3f} ({worst.rule}, {worst.placement}, norm {worst.norm:.1f}, "
                  f"coefficient sum {worst.coefficient_sum:.2f})")
    return errors


if __name__ == "__main__":
    main()
