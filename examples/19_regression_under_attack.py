"""Regression with poisoned examples, and an attack of one's own: labels pulled towards a task of the attacker's."""

from __future__ import annotations

import sys

import jax

from iclab import GatedAttention, Regression, Run, Training, huber_predictor, measure_error, replace, train_many

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 3000


def pulled(clean: jax.Array, coin: jax.Array, x: jax.Array) -> jax.Array:
    """Poisoned labels follow the attacker's weights, 2 in every coordinate with a signal."""
    return 2.0 * x[:, :5].sum(axis=1)


def main() -> dict[str, dict[str, float]]:
    prompts = Regression(dimension=8, constant=True, outlier_patterns=2, prompt_length=40, noise=0.3,
                         outlier_fraction=0.4, outlier_label=3.0)
    attacks = {"no poison": replace(prompts, outlier_fraction=0.0), "as in training": prompts,
               "pulled": replace(prompts, label_rule=pulled)}
    training = Training(steps=STEPS, batch_size=64, learning_rate=0.01, optimizer="adam", loss="squared")
    models = {"mamba": GatedAttention(member="mamba"),
              "linear": GatedAttention(member="linear", normalise=True, init_scale=0.5)}
    trained = train_many([Run(model=model, prompts=prompts, training=training) for model in models.values()])
    predictors = dict(zip(models, trained, strict=True)) | {"Huber": huber_predictor(prompts)}
    errors = {name: {attack: measure_error(predictor, test, count=4000).error for attack, test in attacks.items()}
              for name, predictor in predictors.items()}
    for name, by_attack in errors.items():
        print(f"{name:7}", "  ".join(f"{attack}: {error:.3f}" for attack, error in by_attack.items()))
    return errors


if __name__ == "__main__":
    main()
