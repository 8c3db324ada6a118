"""Compile kernels ahead of their use, in a process of its own, while a long job is busy with other things.

    python -m iclab.kernels.ahead

Numba compiles one kernel at a time and holds the interpreter's lock meanwhile. The training of the gated family is
compiled where it is used: it is the first kernel that the papers' entries need.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
from pathlib import Path
from typing import Any

from iclab.core.parallel import cores
from iclab.kernels.fitting import numba_fault
from iclab.models import ChainAttention, GatedAttention, SoftmaxMLP

DONE = "complete"
"""The file among the compiled kernels that says that these are there."""
_processes: list[subprocess.Popen[bytes]] = []


def start_compiling() -> None:
    """Compile what is not yet on disk, in the background; nothing where there is only one core."""
    if _processes or cores() < 2 or numba_fault():
        return
    from iclab.kernels.compiling import cache_folder

    if not (Path(cache_folder()) / DONE).exists():
        _processes.append(subprocess.Popen([sys.executable, "-m", __name__], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        atexit.register(stop_compiling)


def wait_until_compiled(model: Any) -> None:
    """Wait for the background process, if there is one, before a model of these kinds is used."""
    if type(model) in (SoftmaxMLP, ChainAttention):
        for process in _processes:
            process.wait()


def stop_compiling() -> None:
    """End the background process."""
    for process in _processes:
        process.kill()


def compile_kernels() -> None:
    """Compile kernels in single precision, by training small models for no steps."""
    import jax
    import numpy as np

    from iclab.kernels.chain_answers import answers_of
    from iclab.kernels.compiling import cache_folder
    from iclab.kernels.fitting import kernel_pack
    from iclab.prompts import Chain, Classification
    from iclab.prompts.chain import chain_test
    from iclab.training.run import Run, Training
    from iclab.training.sgd import begin

    def pack(model: Any, prompts: Any, loss: str) -> Any:
        run = Run(model=model, prompts=prompts, training=Training(batch_size=8, loss=loss))
        return kernel_pack(model)([run], [jax.tree.map(np.asarray, begin(run).params)], True)

    no_keys = np.zeros(0, np.uint32), np.zeros(0, np.uint32)
    pack(GatedAttention(), Classification(), "hinge").trace(no_keys)
    softmax = pack(SoftmaxMLP(), Classification(), "hinge")
    softmax.advance(no_keys)
    softmax.trace(no_keys)
    chains = pack(ChainAttention(), Chain(), "squared")
    chains.advance(no_keys)
    answers_of(ChainAttention(), chains.params()[0].W, chain_test(Chain()), (1,), no_keys, 1)
    (Path(cache_folder()) / DONE).touch()


if __name__ == "__main__":
    compile_kernels()
