"""Prompts that a probe looks at along training: the same at every record, drawn once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import jax

from iclab.prompts.prompt import Family, Prompt


def watched_prompts(prompts: Family, count: int) -> Prompt:
    """A fixed batch, for a probe that is being traced: its program contains the prompts, not the drawing of them."""
    return _drawn(prompts, count, bool(jax.config.values["jax_enable_x64"]))


@lru_cache(maxsize=16)
def _drawn(prompts: Family, count: int, double: bool) -> Prompt:
    def draw() -> Prompt:
        with jax.enable_x64(double):
            return prompts.sample(0, count)

    # In a thread of its own: in one that traces a program, JAX would compile each operation of the drawing by itself.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(draw).result()
