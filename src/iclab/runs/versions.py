"""The version of what computes a result: the source of every module that it uses, and the libraries below them."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import threading
from collections.abc import Iterable
from functools import cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

LIBRARIES = ("jax", "jaxlib", "numpy", "optax")
ROOT = "iclab"


_lock = threading.Lock()


def code_version(*modules: str) -> str:
    """Hash of the source of these modules of the package, of all that they import from it, and of the libraries."""
    with _lock:  # Python's parser is not safe in threads
        return _code_version(modules)


@cache
def _snapshot() -> dict[Path, bytes]:
    """The package's sources as they are now: what is imported later may be edited meanwhile, and counts as it was."""
    return {path: path.read_bytes() for path in Path(__file__).parents[1].rglob("*.py")}


_snapshot()


def _source(module: str) -> bytes:
    path = _file(module)
    return _snapshot().get(path) or path.read_bytes()


def file_version(text: str) -> str:
    """Hash of a user's file and of all that it imports from the package; other files that it imports do not count."""
    return hashlib.sha256(f"{text}\0{code_version(*_imported(text))}".encode()).hexdigest()


@cache
def _code_version(modules: tuple[str, ...]) -> str:
    digest = hashlib.sha256(" ".join(metadata.version(name) for name in LIBRARIES).encode())
    for module in sorted(modules_used(modules)):
        digest.update(module.encode())
        digest.update(_source(module))
    return digest.hexdigest()


def modules_used(modules: Iterable[str]) -> set[str]:
    """These modules and all that they import from the package, directly or not."""
    waiting, seen = list(modules), set()
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += imports(module)
    return seen


@cache
def imports(module: str) -> tuple[str, ...]:
    """The package's modules that a module imports, each name followed to where it is defined."""
    return _imported(_source(module).decode())


def _imported(text: str) -> tuple[str, ...]:
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == ROOT:
            found |= {_home(node.module, alias.name) for alias in node.names}
    return tuple(sorted(found))


def _home(module: str, name: str) -> str:
    if importlib.util.find_spec(module).submodule_search_locations is None:  # type: ignore[union-attr]
        return module
    if importlib.util.find_spec(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    home = getattr(getattr(importlib.import_module(module), name, None), "__module__", None) or module
    return home if home.split(".")[0] == ROOT else module


def _file(module: str) -> Path:
    return Path(importlib.util.find_spec(module).origin)  # type: ignore[union-attr, arg-type]


def modules_of(value: Any) -> list[str]:
    """The package's modules that define a spec and its parts."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return []
    mine = [type(value).__module__] if type(value).__module__.split(".")[0] == ROOT else []
    return mine + [module for field in dataclasses.fields(value) for module in modules_of(getattr(value, field.name))]


def own_source(value: Any) -> list[str] | None:
    """The source of every module that a user's own classes and functions in a value come from.

    None when something in it cannot be told apart by source and values: a lambda (the source Python gives for it is
    that of the whole line, its neighbours included), a method of an object that is not a dataclass, or code without a
    source. What those modules import in turn is not followed.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [getattr(value, field.name) for field in dataclasses.fields(value)]
        home = None if type(value).__module__.split(".")[0] == ROOT else type(value)
    elif isinstance(value, partial):
        parts, home = [value.func, *value.args, *value.keywords.values()], None
    elif callable(value):
        value = inspect.unwrap(value)
        if "<lambda>" in getattr(value, "__qualname__", "<lambda>"):
            return None
        owner = getattr(value, "__self__", None)
        if owner is not None and not dataclasses.is_dataclass(owner) and not inspect.ismodule(owner):
            return None
        parts = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
        parts += [] if owner is None else [owner]
        home = None if value.__module__.split(".")[0] == ROOT else value
    else:
        return []
    found = [] if home is None else _module_source(home)
    for part in parts:
        inner = own_source(part)
        if inner is None or found is None:
            return None
        found += inner
    return found


def _module_source(thing: Any) -> list[str] | None:
    """The text of the module that defines something, or of the thing itself where there is no file (a notebook)."""
    for source in (inspect.getmodule(thing), thing):
        try:
            return [inspect.getsource(source)]  # type: ignore[arg-type]
        except (OSError, TypeError):
            continue
    return None


def precision() -> str:
    """float32, or float64 where JAX is told so."""
    return "float64" if jax.config.values["jax_enable_x64"] else "float32"
