"""The version of the code behind a result: the source of every iclab module it uses, and the library versions."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib
import importlib.util
import os
import threading
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

from iclab.kernels.fitting import numba_version

LIBRARIES = ("jax", "jaxlib", "numpy", "optax")
ROOT = "iclab"


_lock = threading.Lock()


def code_version(*modules: str) -> str:
    """Hash of the source of these iclab modules and all iclab modules they import, and of the library versions."""
    with _lock:  # Python's parser is not thread-safe
        return _code_version(modules)


@cache
def _snapshot() -> dict[Path, bytes]:
    """The package's sources at import time, so that later edits do not change the version of a running process."""
    return {path: path.read_bytes() for path in Path(__file__).parents[1].rglob("*.py")}


_snapshot()


def _source(module: str) -> bytes:
    path = _file(module)
    return _snapshot().get(path) or path.read_bytes()


@cache
def _code_version(modules: tuple[str, ...]) -> str:
    digest = hashlib.sha256(" ".join(metadata.version(name) for name in LIBRARIES).encode())
    for module in sorted(modules_used(modules)):
        digest.update(module.encode())
        digest.update(_source(module))
    return digest.hexdigest()


def modules_used(modules: Iterable[str]) -> set[str]:
    """These modules and all package modules they import, directly or indirectly."""
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
    return imported_from_package(ast.parse(_source(module)))


def imported_from_package(tree: ast.AST) -> tuple[str, ...]:
    """The package's modules that a source imports."""
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and str(node.module).split(".")[0] == ROOT:
            modules |= {_home(str(node.module), alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names if alias.name.split(".")[0] == ROOT}
    return tuple(sorted(modules))


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
    homes = [type(value).__module__] if type(value).__module__.split(".")[0] == ROOT else []
    return homes + [module for field in dataclasses.fields(value) for module in modules_of(getattr(value, field.name))]


USUAL = {"jax_threefry_partitionable": True, "jax_default_prng_impl": "threefry2x32",
         "jax_default_matmul_precision": None, "jax_numpy_dtype_promotion": "standard"}
"""Defaults of the JAX settings that affect numerical results."""


def precision() -> str:
    """float32 or float64, what trains where `backend` is `auto`, and any non-default JAX settings that affect numerical
    results."""
    options = [f"{name}={jax.config.values[name]}" for name, usual in USUAL.items() if jax.config.values[name] != usual]
    options += sorted(flag for flag in os.environ.get("XLA_FLAGS", "").split() if "fast_math" in flag)
    kernels = f"numba {numba_version()}" if numba_version() else "no kernels"
    return " ".join(["float64" if jax.config.values["jax_enable_x64"] else "float32", kernels, *options])
