"""What user code depends on: every local module it imports, transitively, and every file it names.

A stored result is reused only while all of these are unchanged:

- the source of the user's module is parsed, and all its imports are followed, including those inside functions;
- files named in a reading call (`np.load("rows.npy")`) are identified by content, installed packages by version;
- files that modules open without naming them in their source (`iclab.sweeps.opened`), code whose name is computed, and
  sources changed after import cannot be traced. Results that depend on these are not stored, and a warning says so.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import logging
import sys
from collections.abc import Iterator
from functools import partial
from types import CodeType, ModuleType
from typing import Any

from iclab.core.identity import to_json
from iclab.sweeps.sources import Trace, Untraceable, follow_module, trace_module
from iclab.sweeps.versions import ROOT

_reasons: set[str] = set()


def say_not_stored(reason: Untraceable) -> None:
    """Warn, once per reason, that a result is not stored."""
    if str(reason) not in _reasons:
        _reasons.add(str(reason))
        logging.getLogger("iclab").warning("iclab: a result is not stored and will be computed again: %s", reason)


def trace(value: Any) -> Trace:
    """What the user's classes and functions in a value depend on; those of iclab are ignored here.

    Refused: a lambda (Python returns the source of its whole line, including neighbours), a method of an object that
    is not a dataclass, and code without source.
    """
    dependencies = Trace()
    if callable(value) and not isinstance(value, (type, partial)):
        value = inspect.unwrap(value)  # undo jax.jit and decorators
    for part in _parts(value):
        dependencies.add(trace(part))
    if (callable(value) or dataclasses.is_dataclass(value)) and not isinstance(value, partial):
        home = value if inspect.isclass(value) or inspect.isroutine(value) else type(value)
        if not _is_package(home):
            dependencies.add(_defined(home))
    return dependencies


def _parts(value: Any) -> list[Any]:
    """The parts of a value that may contain user code."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, type):
        return []
    if dataclasses.is_dataclass(value):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if not callable(value):
        return []
    name = getattr(value, "__qualname__", None)
    if name is None or "<lambda>" in name:
        raise Untraceable("a lambda, or an object with __call__, has no separate source; use a named function")
    owner = getattr(value, "__self__", None)
    if owner is not None and not dataclasses.is_dataclass(owner) and not inspect.ismodule(owner):
        raise Untraceable(f"{name} is a method of an object whose values cannot be read; make it a dataclass")
    cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
    return cells if owner is None or inspect.ismodule(owner) else [*cells, owner]


def _is_package(home: Any) -> bool:
    return (getattr(home, "__module__", None) or "").split(".")[0] == ROOT


def _defined(home: Any) -> Trace:
    """What the module of a class or function depends on; if it has no file (a notebook), the definition itself."""
    module = inspect.getmodule(home)
    path = getattr(module, "__file__", None)
    if module is not None and path is not None:
        if home.__qualname__.split(".")[0] not in vars(module):
            raise Untraceable(f"{home.__qualname__} comes from a script that this process did not run; move it to a "
                              "module")
        return trace_module(module)
    if module is not None and module.__name__ in sys.stdlib_module_names and module.__name__ != "__main__":
        return Trace({"python": sys.version.split()[0]})
    try:
        source = inspect.getsource(home)
    except (OSError, TypeError):
        raise Untraceable(f"{getattr(home, '__qualname__', home)} has no source that can be read") from None
    dependencies = Trace({f"source of {home.__qualname__}": source})
    for name, value in _globals(home):
        if isinstance(value, ModuleType):
            follow_module(value.__name__, dependencies)
        elif callable(value):
            if value is not home and not _is_package(value):
                dependencies.add(trace(value))
        else:
            try:
                dependencies.texts[f"value of {name}"] = json.dumps(to_json(value))
            except TypeError:
                raise Untraceable(f"{home.__qualname__} uses {name}, whose value cannot be read") from None
    return dependencies


def _globals(function: Any) -> Iterator[tuple[str, Any]]:
    """The module globals that a function uses; for a class, those of all its methods."""
    if inspect.isclass(function):
        for method in vars(function).values():
            if inspect.isfunction(method):
                yield from _globals(method)
        return
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        yield from ((name, function.__globals__[name]) for name in code.co_names if name in function.__globals__)
