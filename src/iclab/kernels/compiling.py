"""How kernels are compiled: by Numba, without the interpreter's lock, and kept on disk between processes.

Numba's own cache notices a change in a function's file only, not in the functions that it calls. So compiled kernels
are kept in a folder named after a hash of the sources of all of them and of the prompts and models that they compute:
after a change in any of these files, everything is compiled again. They are kept in the user's cache folder, or in
`NUMBA_CACHE_DIR` if that is set.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.registry import CPUDispatcher

SETTINGS: Any = numba.config
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": False}


@cache
def cache_folder() -> str:
    """Where kernels compiled from these sources are kept; a temporary folder where none can be written."""
    package = Path(__file__).parents[1]
    sources = sorted(path for room in ("kernels", "models", "prompts") for path in (package / room).glob("*.py"))
    name = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    for place in (SETTINGS.CACHE_DIR, Path(user) / "iclab"):
        folder = Path(place) / "kernels" / name if place else None
        try:
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                if os.access(folder, os.W_OK):
                    return str(folder)
        except OSError:
            continue
    return tempfile.mkdtemp(prefix="iclab-kernels-")


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and keep it on disk."""
    before, SETTINGS.CACHE_DIR = SETTINGS.CACHE_DIR, cache_folder()
    try:
        dispatcher: Any = numba.njit(cache=True, **OPTIONS)(function)
    finally:
        SETTINGS.CACHE_DIR = before
    _pass_over_damage(dispatcher._cache)
    return dispatcher


def _pass_over_damage(files: Any) -> None:
    """Let a cache whose files cannot be read be emptied and filled again, instead of ending the program."""
    load = files.load_overload

    def load_or_empty(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:  # what a damaged file does to the reader depends on the damage
            files.flush()
            return None

    files.load_overload = load_or_empty


class KernelPart(CPUDispatcher):
    """A function that only kernels call. It has no entry for Python, which takes a fifth of the time to compile it."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is a part of kernels; only compiled code can call it")


NO_ENTRY: dict[str, Any] = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _part(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher: Any = numba.njit(**NO_ENTRY, **options)(function)
        dispatcher.__class__ = KernelPart  # without an entry, a call from Python would end the process
        return dispatcher

    return decorate


compiled = _part()
"""Compile a part of kernels; its arithmetic is done in the order in which it is written."""
FREE = {"reassoc", "contract", "nsz", "arcp"}
reordered = _part(fastmath=FREE)
"""Compile a part of kernels; its sums may be reordered, as vector instructions need, but NaN stays NaN."""
inlined = _part(fastmath=FREE, forceinline=True)
"""The same for the inside of a loop: a call hands over every field of every tuple of arrays."""
