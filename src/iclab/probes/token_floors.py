"""What token prompts allow: predictions from Dirichlet counts, and the least cross-entropy at every token.

For a Markov chain of order k whose rows are draws of Dirichlet(a, ..., a), the posterior predictive given the tokens so
far is `(a + n(v)) / (a V + sum_u n(u))`, with n(v) the number of times that v followed the last k tokens before. The
same with fewer tokens of context is the estimator of a lower order: of order 0 the unigram estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from iclab.core.errors import SpecError, require
from iclab.core.limits import require_test_size
from iclab.probes.error_rate import TEST_BATCH, batch_keys
from iclab.prompts.labels import UNASKED
from iclab.prompts.markov import MarkovChain
from iclab.prompts.prompt import Prompt
from iclab.prompts.randomness import Key
from iclab.prompts.token_family import TokenFamily


@runtime_checkable
class KnowsEntropy(Protocol):
    """A family that knows in closed form what cannot be known."""

    def unknown(self) -> Float[np.ndarray, " tokens"]:
        """The entropy of each label given all tokens up to it; NaN where nothing is asked."""


class Floor(NamedTuple):
    """The least cross-entropy at every token, in nats; NaN where nothing is asked."""

    bayes: Float[np.ndarray, " tokens"]
    """Without knowing how the prompt was made: that of the Bayes predictor."""
    known: Float[np.ndarray, " tokens"]
    """Knowing the prompt's own transition table: the entropy of the chain."""
    deviation: Float[np.ndarray, " tokens"]
    """Standard errors of `bayes`, where prompts were drawn to compute it; else 0."""

    @property
    def mean(self) -> float:
        """Of the Bayes predictor, over all tokens at which something is asked."""
        return float(np.nanmean(self.bayes))


def dirichlet_logs(tokens: Int[Array, " tokens"], states: int, order: int, concentration: float
                   ) -> Float[Array, "tokens states"]:
    """Logarithms of the posterior predictive of the token after each; uniform while the context is shorter than
    `order`."""
    count = len(tokens)
    place, context = jnp.arange(count + 1), jnp.zeros(count + 1, jnp.int32)
    padded = jnp.concatenate([jnp.zeros(order, jnp.int32), tokens])
    for back in range(order):  # the context of the token at each place, and of the one after the last
        context = context * states + padded[back:back + count + 1]
    seen = (place[None] <= place[:-1, None]) & (place[None] >= order)
    same = (context[None] == context[1:, None]) & seen & (place[1:, None] >= order)
    followers = same[:, :-1].astype(float) @ (tokens[:, None] == jnp.arange(states)).astype(float)
    total = followers.sum(axis=1, keepdims=True)
    return jnp.log(concentration + followers) - jnp.log(states * concentration + total)


def dirichlet_predictor(prompts: MarkovChain, *, order: int | None = None) -> Callable[[Prompt], np.ndarray]:
    """The Bayes predictor of a chain whose table is unknown; with another `order` the estimator that counts what
    followed as many tokens. It returns logarithms of probabilities."""
    require(isinstance(prompts, MarkovChain), "prompts", type(prompts).__name__, "be a MarkovChain")
    used = prompts.order if order is None else order
    require(used >= 0, "order", used, "be a whole number >= 0")
    concentration, states = float(prompts.concentration), prompts.dimension

    @jax.jit
    def logs(tokens: Int[Array, "batch tokens"]) -> Float[Array, "batch tokens states"]:
        return jax.vmap(lambda one: dirichlet_logs(one, states, used, concentration))(tokens)

    def predict(batch: Prompt) -> np.ndarray:
        return np.asarray(logs(np.argmax(batch.x, axis=-1).astype(np.int32)))

    return predict


def token_floor(prompts: TokenFamily, *, count: int = 4000, seed: int = 0) -> Floor:
    """The least cross-entropy at every token.

    Where it is known in closed form, that. For a Markov chain the mean, over drawn prompts, of the entropy of the
    posterior predictive: the conditional expectation of its loss, which varies less than the loss itself.
    """
    if isinstance(prompts, KnowsEntropy):
        unknown = prompts.unknown()
        return Floor(unknown, unknown, np.where(np.isnan(unknown), np.nan, 0.0))
    if not isinstance(prompts, MarkovChain):
        raise SpecError("prompts must be a MarkovChain, or tell by a method unknown() what cannot be known, got "
                        f"{type(prompts).__name__}")
    predict, unsure, known = dirichlet_predictor(prompts), [], []
    for batch in drawn_batches(prompts, count, seed):
        unsure.append(_entropy(np.exp(predict(batch).astype(float))))
        rows = np.where((batch.truth.context >= 0)[..., None],
                        np.take_along_axis(batch.truth.table, np.maximum(batch.truth.context, 0)[..., None], axis=1),
                        1.0 / prompts.dimension)
        known.append(_entropy(rows.astype(float)))
    bayes = np.concatenate(unsure)
    return Floor(bayes.mean(axis=0), np.concatenate(known).mean(axis=0), bayes.std(axis=0) / np.sqrt(len(bayes)))


def _entropy(chances: Float[np.ndarray, "*s states"]) -> Float[np.ndarray, "*s"]:
    """In nats."""
    return -(chances * np.log(np.maximum(chances, 1e-30))).sum(axis=-1)


def drawn_batches(prompts: TokenFamily, count: int, seed: int) -> list[Prompt]:
    """At least `count` test prompts, in whole batches."""
    require_test_size(prompts, count, TEST_BATCH)
    keys = batch_keys(seed, -(-count // TEST_BATCH))
    return [prompts.sample(Key(*words), TEST_BATCH).numpy() for words in zip(*keys, strict=True)]


class ByToken(NamedTuple):
    """How a predictor errs at every token; NaN where nothing is asked."""

    loss: Float[np.ndarray, " tokens"]
    """Cross-entropy, in nats."""
    wrong: Float[np.ndarray, " tokens"]
    """Share of prompts in which the likeliest class is not the label."""


def errors_by_token(predictor: Callable[[Prompt], np.ndarray], prompts: TokenFamily, *, count: int = 4000, seed: int = 0
                    ) -> ByToken:
    """Cross-entropy and share of wrong answers of any predictor at every token of fresh prompts."""
    losses, wrong = [], []
    for batch in drawn_batches(prompts, count, seed):
        scores = np.asarray(predictor(batch), float)
        top = scores.max(axis=-1, keepdims=True)
        logs = scores - top - np.log(np.exp(scores - top).sum(axis=-1, keepdims=True))
        asked = batch.label != UNASKED
        chosen = np.take_along_axis(logs, np.maximum(batch.label, 0)[..., None], axis=-1)[..., 0]
        losses.append(np.where(asked, -chosen, np.nan))
        wrong.append(np.where(asked, scores.argmax(axis=-1) != batch.label, np.nan))
    return ByToken(np.concatenate(losses).mean(axis=0), np.concatenate(wrong).mean(axis=0))


def write_out(predictor: Callable[[Prompt], np.ndarray], batch: Prompt, start: int) -> np.ndarray:
    """The likeliest class at every token from `start` on, each written down as the next token before the next answer:
    what a model says when nobody corrects its steps."""
    tokens, states = batch.x.shape[1:]
    require(0 <= start < tokens, "start", start, f"be a token, in [0, {tokens})")
    x: Any = np.array(batch.x)
    answers: list[Any] = []
    for place in range(start, tokens):
        answers.append(np.asarray(predictor(batch._replace(x=x)))[:, place].argmax(axis=-1))
        if place + 1 < tokens:
            x[:, place + 1] = np.eye(states, dtype=x.dtype)[answers[-1]]
    return np.stack(answers, axis=1)
