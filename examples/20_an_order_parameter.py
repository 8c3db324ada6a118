"""Follow a number of your own through training: as the expected gradient predicts it, and as SGD does it.

Trained on tasks that pair every pattern with the next one, Mamba also learns about pairs that it never sees together.
"""

import sys

import numpy as np

from iclab import Classification, GatedAttention, Run, Training, order_probe, population_dynamics, train_many

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000


def mine(weights):
    """Scores of pairs that met, and of pairs that never did, over those of equal patterns; and the gate's logits."""
    equal, met, never = (weights.between(weights.scores, shift) for shift in (0, 1, 2))
    clean = 3.0 * weights.mean_gate("relevant")
    return {"met": met / equal, "never met": never / equal, "w.p, clean": clean,
            "w.p, poisoned": clean + 2.0 * weights.mean_gate("outlier")}


def main():
    """Predict, train on four seeds, print both; return them by name."""
    run = Run(model=GatedAttention(), prompts=Classification(outlier_fraction=0.6, tasks="cyclic:1"),
              training=Training(steps=steps, learning_rate=0.2, record_every=max(1, steps // 5)))
    predicted = population_dynamics(run, order=mine)
    models = train_many([run.seeded(seed) for seed in range(4)], probe=order_probe(run.prompts, mine))
    followed = {"loss": (predicted.loss, np.mean([model.loss for model in models], axis=0))}
    for name in predicted.order:
        followed[name] = predicted.order[name], np.mean([model.probes[name] for model in models], axis=0)
    print("step".ljust(28), *(f"{step:>7}" for step in predicted.steps))
    for name, both in followed.items():
        for how, values in zip(("predicted", "SGD, 4 seeds"), both, strict=True):
            print(f"{name}, {how}".ljust(28), *(f"{value:7.3f}" for value in values))
    return followed


if __name__ == "__main__":
    main()
