"""Size limits: work that is too large is refused before anything is allocated, with the memory it would take."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from iclab.core.errors import IclabError, SpecError, require

LARGEST = 2**31
"""Sizes stay below this: the compiler counts in 32 bits."""
DEEPEST = 1001
"""Layers of a model stay below this: each is traced separately."""
MOST_PROMPTS = 10**8
"""Most test prompts of one measurement: days of work, and an interval far narrower than any claim needs."""
MEMORY = "ICLAB_MEMORY"
"""The environment variable that overrides the memory limit, by default the machine's memory."""
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def read_bytes(text: str, name: str) -> int:
    """A size such as 512MiB or 2GiB in bytes."""
    match = re.fullmatch(r"([0-9.]+)\s*(KiB|MiB|GiB|TiB)", text)
    try:
        size = int(float(match[1]) * UNITS[match[2]]) if match else 0
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise IclabError(f"{name} must be a size such as 512MiB or 2GiB, got {text!r}")
    return size


def size_words(size: int) -> str:
    """Bytes in the unit that suits them."""
    fits = [unit for unit, least in UNITS.items() if size >= least]
    if not fits:
        return f"{size} bytes"
    number = size / UNITS[fits[-1]]
    return f"{number:,.0f} {fits[-1]}" if number >= 100 else f"{number:.3g} {fits[-1]}"


def memory_limit() -> int:
    """Most bytes that one piece of work may need: `ICLAB_MEMORY`, or all of the machine's memory."""
    given = os.environ.get(MEMORY)
    return _machine_memory() if not given else read_bytes(given, MEMORY)


@cache
def _machine_memory() -> int:
    """Memory of the machine or of the container that this process runs in."""
    try:
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):
        sizes = [2**40]  # unknown: refuse only absurd sizes
    container = Path("/sys/fs/cgroup/memory.max")
    if container.is_file() and (text := container.read_text().strip()).isdigit():
        sizes.append(int(text))
    return min(sizes)


def require_memory(fields: str, work: str, needed: int) -> None:
    """Refuse work that needs more bytes than the limit."""
    limit = memory_limit()
    if needed > limit:
        raise SpecError(f"{fields} must fit into memory: {work} takes about {size_words(needed)}, more than "
                        f"{size_words(limit)} ({MEMORY} sets another limit)")


def require_test_size(prompts: Any, count: Any, batch: int) -> None:
    """Refuse a measurement with too many prompts, or with batches that do not fit into memory."""
    require(1 <= count <= MOST_PROMPTS, "count", count, f"be in [1, {MOST_PROMPTS:,}]")
    require_batch(prompts, batch)


def require_batch(prompts: Any, batch: int) -> None:
    """Refuse a batch of prompts that does not fit into memory."""
    require_memory("prompt_length and dimension", f"a batch of {batch} prompts", batch * prompts.prompt_bytes())
