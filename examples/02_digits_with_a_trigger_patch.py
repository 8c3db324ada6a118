"""Your own data: handwritten digits as prompts, a bright patch in the corner as the poison.

The model trains on digits 0 to 6; 7 to 9 are held out, so every test task is new to it. Poisoned examples carry
the patch and, at test, the wrong label. Mamba learns to shut the patch out; linear attention cannot.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_digits

from iclab import GatedAttention, Run, Training, from_labelled, measure_error, replace, train_many

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 1500


def patch(pixels: np.ndarray) -> np.ndarray:
    """A bright 2 x 2 square in the upper left corner."""
    pixels[:, [0, 1, 8, 9]] += 2.0
    return pixels


def main() -> dict[str, list[float]]:
    images, digits = load_digits(return_X_y=True)
    inputs = images / 16.0
    inputs = 3.0 * (inputs - inputs.mean(0)) / np.linalg.norm(inputs - inputs.mean(0), axis=1, keepdims=True)
    training = from_labelled(inputs, digits, classes=range(7), perturb=patch, outlier_fraction=0.5)
    unseen = from_labelled(inputs, digits, classes=range(7, 10), perturb=patch, label_rule="flip")

    runs = [Run(model=GatedAttention(init_scale=0.1, member=member, normalise=member == "linear"), prompts=training,
                training=Training(steps=STEPS, optimizer="adam", learning_rate=0.001))
            for member in ("mamba", "linear")]
    errors: dict[str, list[float]] = {}
    for trained in train_many(runs):
        rates = [measure_error(trained, replace(unseen, outlier_fraction=f), count=2000) for f in (0.0, 0.3, 0.6, 0.8)]
        errors[trained.run.model.member] = [rate.error for rate in rates]
        print(f"{trained.run.model.member:8} error on unseen digits at 0, 30, 60, 80 % poison:",
              "  ".join(f"{rate.error:.3f}" for rate in rates))
    return errors


if __name__ == "__main__":
    main()
