"""What a model of Markov chains does along training: how far its predictions are from those of counting, and where its
heads look.

    models = train_many(runs, probe=phase_probe(prompts))
    models[0].probes["from unigram"]                # one number per record

`from unigram` is the mean KL divergence of the model's predictions from those of the unigram estimator, `from order k`
from those of the Bayes predictor, both `KL(estimator | model)` in nats and over the last half of the tokens, where the
two differ most. A model with sites named `attention` also shows, for every layer and head, how much of the attention of
a token is on the token before it (`previous`), and how much on tokens that stand right after an earlier occurrence of
the same token (`induction`), both means over tokens.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from iclab.core.errors import require
from iclab.models.intervened import recording
from iclab.probes.token_floors import dirichlet_logs
from iclab.probes.watched import watched_prompts
from iclab.prompts.labels import token_losses
from iclab.prompts.markov import MarkovChain
from iclab.training.sgd import Probe

WATCHED = 100
"""Prompts that the probe looks at."""


def divergence(first: Float[Array, "*s classes"], second: Float[Array, "*s classes"]) -> Float[Array, "*s"]:
    """`KL(first | second)` of distributions given by their logarithms."""
    return (jnp.exp(first) * (first - second)).sum(axis=-1)


def attention_scores(weights: Float[Array, "heads tokens tokens"], tokens: Int[Array, " tokens"]
                     ) -> tuple[Float[Array, " heads"], Float[Array, " heads"]]:
    """Attention on the token before, and on tokens that followed an earlier occurrence of the same one."""
    place = jnp.arange(len(tokens))
    previous = place[:, None] - place == 1
    # The token at s follows one equal to that at t; the first token follows none.
    after_same = (jnp.roll(tokens, 1)[None] == tokens[:, None]) & (place > 0) & (place[None] <= place[:, None])
    on_previous, on_after = ((weights * chosen).sum(axis=2)[:, 1:].mean(axis=1) for chosen in (previous, after_same))
    return on_previous, on_after


def _seen(model: Any, params: Any, columns: Float[Array, "tokens width"], tokens: Int[Array, " tokens"]
          ) -> tuple[Float[Array, "tokens classes"], dict[str, Float[Array, "layers heads"]]]:
    """The output, and attention scores of every layer and head; none for a model without attention."""
    output, recorded = recording(model, params, columns)
    layers = [attention_scores(recorded[key][1], tokens) for key in sorted(recorded) if key[0] == "attention"]
    if not layers:
        return output, {}
    previous, induction = (jnp.stack(scores) for scores in zip(*layers, strict=True))
    return output, {"previous": previous, "induction": induction}


@lru_cache(maxsize=64)
def phase_probe(prompts: MarkovChain, count: int = WATCHED) -> Probe:
    """A probe of the phases; one object for equal arguments, so that it is compiled once."""
    require(isinstance(prompts, MarkovChain), "prompts", type(prompts).__name__, "be a MarkovChain")
    concentration, states = float(prompts.concentration), prompts.dimension

    def phases(setup: Any, params: Any) -> dict[str, Array]:
        batch = watched_prompts(prompts, count)
        tokens = jnp.argmax(batch.x, axis=-1)
        columns = jax.vmap(setup.model.embedding.columns)(batch)
        outputs, heads = jax.vmap(lambda *one: _seen(setup.model, params, *one))(columns, tokens)
        logs, late = jax.nn.log_softmax(outputs), slice(tokens.shape[1] // 2, None)
        seen = {"loss": jax.vmap(token_losses)(outputs, batch.label).mean(axis=0)}
        for name, order in (("from unigram", 0), (f"from order {prompts.order}", prompts.order)):
            estimator = jax.vmap(lambda one, order=order: dirichlet_logs(one, states, order, concentration))(tokens)
            seen[name] = divergence(estimator, logs)[:, late].mean()
        return seen | {name: values.mean(axis=0) for name, values in heads.items()}

    return phases
