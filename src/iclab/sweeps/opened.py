"""Which files a user's modules actually open, observed by a Python audit hook.

File names written in the source are found by parsing it (`iclab.sweeps.tracing`); computed ones are seen only here.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Collection
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import jax

PACKAGE = os.path.realpath(Path(__file__).parents[1]) + os.sep
SYSTEM = tuple(os.path.realpath(place) + os.sep
               for place in {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"),
                             "/usr", "/etc", "/proc", "/sys", "/dev"})
CACHES = {".cache", ".config", "__pycache__"}
NOT_READING = os.O_WRONLY | os.O_CREAT


class Opened(NamedTuple):
    """A file that a user's module opened for reading."""

    by: str
    path: str
    importing: bool
    """Whether the module was being imported at the time, so that any of its values may depend on the file."""


_numbers: dict[Opened, int] = {}
_clock = itertools.count(1)
_imported_at: dict[str, float] = {}
_began = time.time()
_lab_folders: set[str] = set()
_hook_state = threading.local()


@cache
def is_installed(path: str) -> bool:
    """Whether a file belongs to Python, to an installed package or to the system, not to the user."""
    real = os.path.realpath(path)
    return real.startswith(SYSTEM) or bool({"site-packages", "dist-packages"} & set(Path(real).parts))


@cache
def is_own(path: str) -> bool:
    """Whether a source file is the user's."""
    return not path.startswith("<") and not is_installed(path) and not os.path.realpath(path).startswith(PACKAGE)


def ignore_folder(folder: str | Path) -> None:
    """Ignore reads in this folder: it is a store, so they reveal nothing about the user's code."""
    _lab_folders.add(os.path.realpath(folder) + os.sep)


def imported_at(path: str) -> float:
    """When a module's source was last imported; if before the hook was installed, the time of installation."""
    return _imported_at.get(path, _began)


def now() -> int:
    """The current position in the sequence of reads, for `unnamed_reads`."""
    return next(_clock)


def unnamed_reads(known: Collection[str], since: int) -> list[Opened]:
    """Files outside `known` that modules in it opened while being imported, or since a given `now()`."""
    ignored = (*_lab_folders, *(os.path.realpath(place) + os.sep for place in
                                [jax.config.values["jax_compilation_cache_dir"]] if place))
    return [opened for opened, number in list(_numbers.items())
            if opened.by in known and opened.path not in known and (opened.importing or number > since)
            and not opened.path.startswith(ignored)]


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or getattr(_hook_state, "active", False):
        return
    _hook_state.active = True
    try:
        _note(sys._getframe(1), *arguments)
    except Exception:  # an audit hook must never break what it watches
        pass
    finally:
        _hook_state.active = False


def _note(frame: FrameType | None, path: Any, mode: Any, flags: Any) -> None:
    reading = "r" in mode or "+" in mode if isinstance(mode, str) else not flags & NOT_READING
    if not reading or not isinstance(path, (str, bytes)):
        return
    name = os.path.realpath(_source(os.fsdecode(path)))
    if name.endswith(".py") and frame is not None and "importlib" in frame.f_code.co_filename:
        _imported_at[name] = time.time()
    by, importing = None, False
    while frame is not None:
        source = frame.f_code.co_filename
        if by in (None, source) and is_own(source):
            by, importing = source, importing or frame.f_code.co_name == "<module>"
        frame = frame.f_back
    if by is None or is_installed(name) or CACHES & set(Path(name).parts):
        return
    if name.startswith(PACKAGE) or not os.path.isfile(name):
        return
    _numbers[Opened(os.path.realpath(by), name, importing)] = next(_clock)


def _source(path: str) -> str:
    """The source of a compiled module; any other path unchanged."""
    try:
        return importlib.util.source_from_cache(path) if path.endswith(".pyc") else path
    except ValueError:
        return path


sys.addaudithook(_hook)
