"""The program that trains a pack: by the fused kernels where they can, else compiled by XLA."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from iclab.training.fused import FusedProgram, backend_of
from iclab.training.packing import Pack, cut_packs, shards_for
from iclab.training.program import PackProgram, Program
from iclab.training.run import Run
from iclab.training.sgd import Probe


@lru_cache(maxsize=64)
def program_of(backend: str, structure: Any, shared: bool, shards: int, probe: Probe | None) -> PackProgram:
    """The program of a structure; training the same shapes again compiles nothing."""
    return (FusedProgram if backend == "fused" else Program)(shared, shards, probe)


def pack_program(pack: Pack, probe: Probe | None) -> PackProgram:
    """The program that trains a pack."""
    backend = backend_of(pack.runs[0])
    # A kernel is the same for all structures; only a probe is compiled for one.
    structure = None if backend == "fused" and probe is None else pack.structure
    return program_of(backend, structure, pack.shared, pack.shards, probe)


def pack_bytes(runs: list[Run], shared: bool) -> int:
    """Bytes that the program for a pack of these runs needs (XLA compiles it)."""
    width = -(-len(runs) // shards_for(len(runs)))
    pack = cut_packs(runs, [None] * len(runs), list(range(len(runs))), width, shared)[0]
    return pack_program(pack, None).bytes(pack)
