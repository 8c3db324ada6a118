"""Attention by kind of column, recorded along training."""

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
from iclab.training import Run, Trained

PROMPTS = 50
EXAMPLES = 20
"""Of a test prompt, as many as in training."""
SEED = 12345


def inside(run: Run, params: Any) -> dict[str, Float[Array, "steps 4"]]:
    """Probe: attention at each step of the chain of thought, by kind of column, on test prompts."""
    prompts, vectors = test_batch(run.prompts.patterns, run.prompts.reasoning_steps)
    return {"mass": masses(run.model, params, prompts, vectors)}


def masses(model: Any, params: Any, prompts: Any, vectors: Any) -> Float[Array, "steps 4"]:
    """Mean attention at each step, by kind of column, with all examples of some prompts."""
    examples = (prompts.step.shape[1] - 1) // (prompts.chain.shape[1] - 1)
    thoughts = jax.vmap(lambda prompt: chain_of_thought(model, params, prompt, vectors, (examples,)))(prompts)
    return thoughts.mass[:, 0].mean(axis=0)


@cache
def test_batch(patterns: int, steps: int) -> tuple[Any, Any]:
    """Test prompts, drawn once and the same for all models trained on so many patterns and steps."""
    def draw() -> tuple[Any, Any]:
        test = default_test(training_prompts(patterns=patterns, reasoning_steps=steps), prompt_length=EXAMPLES)
        return jax.tree.map(np.asarray, (test.sample(SEED, PROMPTS), test.pattern_vectors()))

    # In a thread of its own they are numbers even when a program that needs them is just being traced.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(draw).result()


def along(models: Sequence[Trained], step: int | None = None) -> Float[np.ndarray, "seeds records 4"]:
    """What a probe recorded: attention by kind, at one step or as a mean over all."""
    found = np.stack([trained.probes["mass"] for trained in models if trained.probes is not None])
    return found.mean(axis=2) if step is None else found[:, :, step]
