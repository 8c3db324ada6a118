"""What a user's code depends on: every local module that it imports, at any depth, and every file that it names.

A result is found again only while all of that is unchanged:

- the source of the user's module is parsed, and its imports are followed, wherever in the file they stand;
- files named in a reading call (`np.load("rows.npy")`) count with their content, installed packages with their version;
- a file that the modules opened although their source does not name it (`iclab.sweeps.opened`), code whose name is
  computed, or a source changed after its import cannot be traced. Such a result is not stored, and a line says so.
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
    """Say, once for each reason, that a result is not stored."""
    if str(reason) not in _reasons:
        _reasons.add(str(reason))
        logging.getLogger("iclab").warning("iclab: a result is not stored and will be computed again: %s", reason)


def trace(value: Any) -> Trace:
    """What the user's own classes and functions in a value depend on; the package's own do not count here.

    Refused: a lambda (the source Python gives for it is that of the whole line, its neighbours included), a method of
    an object that is not a dataclass, and code without a source.
    """
    found = Trace()
    if callable(value) and not isinstance(value, (type, partial)):
        value = inspect.unwrap(value)  # what jax.jit or a decorator has wrapped
    for part in _parts(value):
        found.add(trace(part))
    if (callable(value) or dataclasses.is_dataclass(value)) and not isinstance(value, partial):
        home = value if inspect.isclass(value) or inspect.isroutine(value) else type(value)
        if not _is_package(home):
            found.add(_defined(home))
    return found


def _parts(value: Any) -> list[Any]:
    """What a value holds that may be the user's."""
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
        raise Untraceable("a lambda, or an object with __call__, has no source of its own; use a function with a name")
    owner = getattr(value, "__self__", None)
    if owner is not None and not dataclasses.is_dataclass(owner) and not inspect.ismodule(owner):
        raise Untraceable(f"{name} is a method of an object whose values cannot be read; make it a dataclass")
    cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
    return cells if owner is None or inspect.ismodule(owner) else [*cells, owner]


def _is_package(home: Any) -> bool:
    return (getattr(home, "__module__", None) or "").split(".")[0] == ROOT


def _defined(home: Any) -> Trace:
    """What the module of a class or function depends on; where it has no file (a notebook), the definition itself."""
    module = inspect.getmodule(home)
    path = getattr(module, "__file__", None)
    if module is not None and path is not None:
        if home.__qualname__.split(".")[0] not in vars(module):
            raise Untraceable(f"{home.__qualname__} comes from a script that this process did not run; put it into a "
                              "module")
        return trace_module(module)
    if module is not None and module.__name__ in sys.stdlib_module_names and module.__name__ != "__main__":
        return Trace({"python": sys.version.split()[0]})
    try:
        source = inspect.getsource(home)
    except (OSError, TypeError):
        raise Untraceable(f"{getattr(home, '__qualname__', home)} has no source that can be read") from None
    found = Trace({f"source of {home.__qualname__}": source})
    for name, value in _globals(home):
        if isinstance(value, ModuleType):
            follow_module(value.__name__, found)
        elif callable(value):
            if value is not home and not _is_package(value):
                found.add(trace(value))
        else:
            try:
                found.texts[f"value of {name}"] = json.dumps(to_json(value))
            except TypeError:
                raise Untraceable(f"{home.__qualname__} uses {name}, whose value cannot be read") from None
    return found


def _globals(function: Any) -> Iterator[tuple[str, Any]]:
    """The values that a function finds in its module, those of a class for all its methods."""
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
