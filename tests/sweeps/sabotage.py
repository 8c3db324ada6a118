"""Measures that misbehave, for the tests of the engines; imported by their workers too."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import jax
import optax


def die_once(trained, test, seed):
    """Kill the process that measures, the first time."""
    marker = Path(os.environ["ICLAB_TEST_MARKER"])
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return 1.0
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


def linger(trained, test, seed):
    """Take a while, so that a test can act in the meantime."""
    time.sleep(0.5)
    return 1.0


def refuse_large(trained, test, seed):
    """Fail for one kind of run."""
    if trained.run.prompts.pattern_norm > 2:
        raise ValueError("too large for me")
    return {"norm": trained.run.prompts.pattern_norm}


def no_matrices(rate):
    """An optimizer that fails only on the weights of a real model."""
    plain = optax.sgd(rate)

    def update(updates, state, params=None):
        if any(leaf.shape == (10, 10) for leaf in jax.tree.leaves(updates)):
            raise ValueError("no matrices")
        return plain.update(updates, state, params)

    return optax.GradientTransformation(plain.init, update)
