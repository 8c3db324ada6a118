"""Train attention on Markov chains that it has never seen: it counts tokens first, then transitions."""

import sys

from iclab import (
    MarkovChain,
    Run,
    SoftmaxAttention,
    TokenEmbedding,
    Training,
    dirichlet_predictor,
    measure_error,
    token_floor,
    train_many,
)
from iclab.probes.token_phases import phase_probe

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300


def main():
    """Train one and two layers; print how far they are from counting, and return their errors by depth."""
    prompts = MarkovChain(dimension=3, prompt_length=31, concentration=0.5)
    training = Training(steps=steps, batch_size=32, learning_rate=0.01, optimizer="adam", clip_norm=1.0,
                        loss="token_cross_entropy", record_every=max(1, steps // 10))
    attention = [SoftmaxAttention(layers=depth, heads=2, reach=8, embedding=TokenEmbedding()) for depth in (1, 2)]
    models = train_many([Run(model=model, prompts=prompts, training=training) for model in attention],
                        probe=phase_probe(prompts))
    for model in models:
        print(f"{model.run.model.layers} layers, distance from the unigram estimator:",
              model.probes["from unigram"].round(3), "from the Bayes predictor:", model.probes["from order 1"].round(3))
    unigram = measure_error(dirichlet_predictor(prompts, order=0), prompts, count=4000).error
    errors = {model.run.model.layers: measure_error(model, prompts, count=4000).error for model in models}
    print(f"cross-entropy: {errors}, unigram {unigram:.3f}, floor {token_floor(prompts).mean:.3f}")
    return errors, unigram


if __name__ == "__main__":
    main()
