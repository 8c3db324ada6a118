"""Train Mamba and the linear Transformer, poison their prompts, look at Mamba's gates."""

from __future__ import annotations

import sys

from iclab import (
    Classification,
    GatedAttention,
    Run,
    Training,
    gate_profile,
    information_floor,
    measure_error,
    replace,
    train_many,
)

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 3000


def main() -> dict[str, float]:
    prompts = Classification(outlier_fraction=0.6)
    runs = [Run(model=GatedAttention(member=member), prompts=prompts,
                training=Training(steps=STEPS, learning_rate=rate))
            for member, rate in (("mamba", 1.0), ("linear", 0.1))]
    mamba, linear = train_many(runs)

    attack = replace(prompts, label_rule="flip", outlier_scale=6.0)
    errors = {name: measure_error(model, attack).error for name, model in (("mamba", mamba), ("linear", linear))}
    print(f"60 % of the examples flipped: error of Mamba {errors['mamba']:.3f}, of linear attention "
          f"{errors['linear']:.3f}; the floor is {information_floor(attack):.5f}")

    gates = gate_profile(mamba, attack)
    print("gate, nearest five examples: clean", gates.clean[0, :5].round(3), "poisoned", gates.poisoned[0, :5].round(3))
    return errors


if __name__ == "__main__":
    main()
