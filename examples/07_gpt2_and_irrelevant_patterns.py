"""Can any setting make GPT-2 ignore irrelevant patterns ten times as large as in training (K' 5 against K 0.5)?

The icl paper's figure 3 is at K' = 5; it does not give d_model, step size, optimiser, batch size or T. On unseen tasks,
the settings below (one to four seeds each) had errors from 0 to .08 at K' 0.5 and from .07 to .29 at K' 5. Running all
of them takes about 6 minutes.
"""

import sys

import optax

from iclab import GPT2, Run, Sweep, Training
from iclab.papers.icl.settings import in_domain, training_prompts, warmed_adam

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 800
few = steps < 100


def decayed_adam(learning_rate):
    """Adam with weight decay, which shrinks weights that training does not use."""
    return optax.adamw(learning_rate, weight_decay=0.1)


def main():
    """Train every setting and print its errors; return the errors of all settings and seeds by K'."""
    base = Run(model=GPT2(layers=1, size=32) if few else GPT2(), prompts=training_prompts(tasks="cyclic:4"),
               training=Training(steps=steps, batch_size=32, learning_rate=2e-3, optimizer=warmed_adam, clip_norm=1.0))
    settings = [{}, {"training.optimizer": "adam", "training.learning_rate": 1e-3},
                {"training.optimizer": decayed_adam, "training.learning_rate": 1e-3}, {"training.loss": "squared"},
                {"training.batch_size": 64}, {"model.size": 128}, {"model.heads": 4},
                {"prompts.decisive_fraction": 0.6}]
    sweep = Sweep(base=base, settings=settings[1:2] if few else settings, grid={"test.irrelevant_scale": [0.5, 5.0]},
                  test=in_domain(tasks="unseen:4"), prompts=1000, seeds=1 if few else 2)
    results = sweep.run()
    for row in results.frame.select(*results.axes, "seed", "loss", "error").iter_rows(named=True):
        print({name: value for name, value in row.items() if value is not None})
    errors = {0.5: [], 5.0: []}
    for scale, error in results.frame.select("test.irrelevant_scale", "error").iter_rows():
        errors[scale].append(error)
    return errors


if __name__ == "__main__":
    main()
