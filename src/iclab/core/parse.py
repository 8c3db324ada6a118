"""Fields by path, such as `prompts.outlier_fraction`: check values from files by type and set them in nested specs."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Mapping
from datetime import date, time
from functools import cache, partial
from typing import Any

import jax
import numpy as np

from iclab.core import registry
from iclab.core.errors import IclabError, SpecError, shown
from iclab.core.identity import to_json
from iclab.core.spec import no_such_field, replace

KIND = "kind"
"""The last word of a path that chooses a part's class, as in `model.kind`."""


def kinds(hint: Any) -> tuple[Any, ...]:
    """The alternatives of a type hint."""
    return typing.get_args(hint) if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union \
        else (hint,)


def import_function(text: str, name: str) -> Callable[..., Any]:
    """The user's function that `module:name` names; its module may lie in the working directory."""
    module, _, attribute = text.partition(":")
    builtin = IclabError(f"{name} must be a function of your own or of a package, got {text!r}, which is Python's own")
    if _is_standard(module):
        raise builtin
    rule = "be a function that can be imported as module:name"
    function: Any = import_module(module, name, text, rule)
    try:
        for part in attribute.split("."):
            function = getattr(function, part)
    except AttributeError as error:
        raise IclabError(f"{name} must {rule}, got {text!r} (AttributeError: {error})") from None
    if not callable(function):
        raise IclabError(f"{name} must {rule}, got {text!r}, which is not one")
    if _of_python(function):
        raise builtin
    return function


def import_module(module: str, name: str, text: str | None = None, rule: str = "be a module that can be imported"
                  ) -> types.ModuleType:
    """A user's module, which may lie in the working directory; `name`, `text` and `rule` are for errors."""
    try:
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # as with python -m
        return importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's module may fail in any way while it is imported, or call exit()
        raise IclabError(f"{name} must {rule}, got {text or module!r} ({type(error).__name__}: {error})") from None


def _of_python(function: Callable[..., Any]) -> bool:
    """Whether a function belongs to Python itself: some of those end the process when called."""
    function = inspect.unwrap(function.func if isinstance(function, partial) else function)
    # exit and quit are objects: their class says where they are from.
    owner = function if inspect.isroutine(function) or isinstance(function, type) else type(function)
    return _is_standard(getattr(owner, "__module__", None) or "builtins")


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def hint_of(spec: Any, path: str) -> Any:
    """The type hint of the field at a path; an unknown field is refused."""
    name, _, rest = path.partition(".")
    kind: Any = type(spec)
    hints = _hints(kind)
    known = [field.name for field in dataclasses.fields(spec)]
    if name not in known:
        raise no_such_field(spec, name, known)
    if not rest:
        return hints[name]
    inner = getattr(spec, name)
    if not dataclasses.is_dataclass(inner):
        raise SpecError(f"{path}: {name} has no fields of its own")
    return hint_of(inner, rest)


def typed(hint: Any, value: Any, name: str) -> Any:
    """A value from a file as the field wants it: `none` for nothing, lists for rows and tasks, `module:name` for code.

    Values that only Python has (functions, specs, arrays) pass as they are; the spec itself judges them.
    """
    allowed = kinds(hint)
    refused = SpecError(f"{name} must be {_words(allowed)}, got {shown(value)}")
    if isinstance(value, (np.generic, np.ndarray, jax.Array)) and np.ndim(value) == 0:
        value = value.item()
    if isinstance(value, (dict, date, time)):
        raise refused
    if isinstance(value, (np.ndarray, jax.Array)) and {int, float} & set(allowed):
        raise refused
    if not isinstance(value, (bool, int, float, str, list)) or Any in allowed:
        return value
    if isinstance(value, str) and value == "none" and type(None) in allowed:
        return None
    if isinstance(value, list):
        return _rows(allowed, value, name)
    if isinstance(value, str):
        if str not in allowed:
            raise refused
        wants_code = any(typing.get_origin(kind) is Callable for kind in allowed)
        return import_function(value, name) if wants_code and ":" in value else value
    if isinstance(value, bool) or not {int, float} & set(allowed):
        if bool not in allowed or not isinstance(value, bool):
            raise refused
        return value
    try:
        number = float(value)
    except OverflowError:
        raise refused from None
    if float in allowed:
        return number
    if not number.is_integer():
        raise refused
    return int(value)


def _rows(allowed: tuple[Any, ...], value: list[Any], name: str) -> tuple[Any, ...]:
    if not any(typing.get_origin(kind) is tuple for kind in allowed):
        raise SpecError(f"{name} must be {_words(allowed)}, got {shown(value)}")
    if not all(isinstance(row, list) and all(is_number(x) for x in row) for row in value):
        raise SpecError(f"{name} must be a list of rows of numbers, got {shown(value)}")
    return tuple(tuple(row) for row in value)


def is_number(value: Any) -> bool:
    """Whether a value is a number that fits into 64 bits; true and false are not."""
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)
                                        and -(2**63) <= value < 2**63)


def _words(allowed: tuple[Any, ...]) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", type(None): "'none'"}
    alternatives = [names[kind] for kind in allowed if kind in names]
    alternatives += ["a list of rows"] if any(typing.get_origin(kind) is tuple for kind in allowed) else []
    return " or ".join(alternatives) or "a value of its type"


def with_fields(spec: Any, changes: Mapping[str, Any], prefix: str = "") -> Any:
    """The spec with the fields at these paths changed, each checked; an error names the whole path.

    `part.kind` replaces the part by a new spec of the registered kind of that name.
    """
    new_fields: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        name, _, rest = path.partition(".")
        if rest:
            inner.setdefault(name, {})[rest] = value
            continue
        new_fields[name] = typed(hint_of(spec, name), value, prefix + name)
        if dataclasses.is_dataclass(getattr(spec, name)) and not dataclasses.is_dataclass(new_fields[name]):
            raise SpecError(f"{prefix}{name} must be a spec (in a file, name its fields: {prefix}{name}.FIELD), got "
                            f"{value!r}")
    for name, below in inner.items():
        hint_of(spec, name)
        part = new_fields.get(name, getattr(spec, name))
        if KIND in below:
            part = of_kind(name, below.pop(KIND), f"{prefix}{name}.{KIND}")
        if not dataclasses.is_dataclass(part):
            raise SpecError(f"{prefix}{name}.{next(iter(below))}: {name} has no fields of its own")
        new_fields[name] = with_fields(part, below, f"{prefix}{name}.")
    try:
        return replace(spec, **new_fields)
    except SpecError as error:
        raise SpecError(f"{prefix}{error}" if not str(error).startswith(prefix) else str(error)) from None


def of_kind(part: str, name: Any, path: str) -> Any:
    """A spec of the registered kind of that name, every field at its default; `path` is what an error calls it."""
    if part not in registry.GROUPS:
        raise SpecError(f"{path}: {part} has one kind only")
    cls = registry.kind(part, name, path)
    try:
        return cls()
    except TypeError:
        raise SpecError(f"{path} must be a kind whose fields all have defaults, got {name!r}") from None


def flat(spec: Any, prefix: str = "") -> dict[str, Any]:
    """Every field of a spec by its path, as plain values; `part.kind` names the class of each part."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(spec):
        value, path = getattr(spec, field.name), prefix + field.name
        if dataclasses.is_dataclass(value):
            values[f"{path}.{KIND}"] = registry.word(type(value))
            values |= flat(value, f"{path}.")
        else:
            values[path] = to_json(value)
    return values
