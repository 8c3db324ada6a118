"""Can adversarial training keep Mamba's gate shut? Find the worst attack, train against it, search again.

The attack becomes one more outlier of the training prompts. The gate then shuts on it, and opens on what points the
other way: a fresh search gets through again (`iclab reproduce mamba.adversarial` measures it on 16 seeds).
"""

from __future__ import annotations

import sys

from iclab import Budget, Classification, GatedAttention, Run, Training, measure_error, replace, train, worst_attack

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
ROUNDS = 2


def main() -> list[dict[str, float]]:
    """Train, search, add the attack, as often as there are rounds; return the errors after each training."""
    prompts = Classification(outlier_fraction=0.6)
    flipped = replace(prompts, outlier_fraction=0.3, outlier_scale=6.0, label_rule="flip")
    tests = {"clean": replace(flipped, outlier_fraction=0.0), "training outliers, flipped": flipped}
    rounds = []
    for number in range(ROUNDS + 1):
        model = train(Run(model=GatedAttention(), prompts=prompts, training=Training(steps=STEPS)))
        if number > 0:
            tests["attack it was trained on"] = attack.on(flipped)
        attack = worst_attack(model, flipped, Budget(largest=6.0, rules=("flip",)), starts=2, steps=15)
        tests["worst attack on it"] = attack.on(flipped)
        print(f"{number} attacks in training; the worst attack now has coefficient sum {attack.coefficient_sum:.2f}")
        errors = {}
        for name, test in tests.items():
            rate = measure_error(model, test, count=4000)
            errors[name] = rate.error
            print(f"  {name:28} {rate.error:.3f} [{rate.low:.3f}, {rate.high:.3f}]")
        rounds.append(errors)
        prompts = attack.added_to(prompts)
    return rounds


if __name__ == "__main__":
    main()
