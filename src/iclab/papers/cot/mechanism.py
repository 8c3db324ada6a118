"""Attention by kind of column, recorded during training."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from iclab.papers.cot.settings import default_test, training_prompts
from iclab.probes.reasoning import chain_of_thought
from iclab.training import Setup, Trained

PROMPTS = 50
EXAMPLES = 20
"""Per test prompt, as many as in training."""
SEED = 12345


def inside(setup: Setup, params: Any) -> dict[str, Float[Array, "steps 4"]]:
    """Probe: attention at each step of the chain of thought, by kind of column, on test prompts."""
    prompts, vectors = test_batch(setup.prompts.patterns, setup.prompts.reasoning_steps)
    return {"mass": masses(setup.model, params, prompts, vectors)}


def masses(model: Any, params: Any, prompts: Any, vectors: Any) -> Float[Array, "steps 4"]:
    """Mean attention at each step, by kind of column, using all examples of the prompts."""
    examples = (prompts.x.shape[1] - 1) // (prompts.truth.chain.shape[1] - 1)
    thoughts = jax.vmap(lambda prompt: chain_of_thought(model, params, prompt, vectors, (examples,)))(prompts)
    return thoughts.mass[:, 0].mean(axis=0)


@cache
def test_batch(patterns: int, steps: int) -> tuple[Any, Any]:
    """Test prompts, drawn once and shared by all models trained with these numbers of patterns and steps."""
    def draw() -> tuple[Any, Any]:
        test = default_test(training_prompts(patterns=patterns, reasoning_steps=steps), prompt_length=EXAMPLES)
        return jax.tree.map(np.asarray, (test.sample(SEED, PROMPTS), test.pattern_vectors()))

    # Drawn in a separate thread, they are concrete values even while JAX traces the caller.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(draw).result()


def gathered_at(models: Sequence[Trained], fraction: float, examples: int) -> Float[np.ndarray, "models steps"]:
    """Attention of trained models on columns of the same step and pattern, at this alpha' and number of examples."""
    first = models[0].run
    test = default_test(first.prompts, matching_fraction=fraction, prompt_length=examples)
    prompts, vectors = test.sample(SEED, PROMPTS), test.pattern_vectors()
    look = jax.jit(lambda params: masses(first.model, params, prompts, vectors)[:, 0])
    return np.stack([np.asarray(look(trained.params)) for trained in models])


def along(models: Sequence[Trained], step: int | None = None) -> Float[np.ndarray, "seeds records 4"]:
    """Recorded attention by kind of column, at one step or averaged over all."""
    recorded = np.stack([trained.probes["mass"] for trained in models if trained.probes is not None])
    return recorded.mean(axis=2) if step is None else recorded[:, :, step]
