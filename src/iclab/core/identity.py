"""What makes two specs the same: one text for equal specs, and names of functions that change with their source."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from iclab.core.errors import SpecError, shown


class UnknownClass(SpecError):
    """A file names the class of a spec, and nothing that is imported defines it."""


def function_name(function: Callable[..., Any]) -> str:
    """`module:name#hash` of a user's function: its name, and the hash of its source and of the values it holds.

    A value without a stable text gives a name that never recurs, so the function is never mistaken for another.
    """
    if isinstance(function, partial):
        held: list[Any] = [function_name(function.func), *function.args, sorted(function.keywords.items())]
        module, name = "functools", "partial"
    else:
        function = inspect.unwrap(function)
        cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
        held = [getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None),
                getattr(function, "__self__", None), *cells]
        module, name = getattr(function, "__module__", "?"), getattr(function, "__qualname__", type(function).__name__)
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        source = repr(function)
    text = source + "".join(json.dumps(to_json(value), default=repr) for value in held)
    return f"{module}:{name}#{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def to_json(value: Any) -> Any:
    """A spec as plain JSON values; each spec carries its class name as `kind_of_spec`, a function its name and hash."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)
                 if not (f.metadata.get("note") or (f.metadata.get("later") and getattr(value, f.name) is f.default))}
        return {"kind_of_spec": type(value).__name__, **named}
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(v) for v in value]
    if isinstance(value, jax.Array):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value.item()
    if isinstance(value, np.ndarray):
        return {"array": list(value.shape), "sha256": hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}
    if isinstance(value, np.generic):
        return value.item()
    if callable(value):
        return function_name(value)
    return value


def from_json(data: Any, kinds: Mapping[str, type]) -> Any:
    """The spec that `to_json` described; `kinds` names the classes that are allowed."""
    if isinstance(data, dict):
        if "sha256" in data:
            raise SpecError("it holds an array, of which a file keeps the digest only")
        fields = {field: from_json(item, kinds) for field, item in data.items()}
        name = fields.pop("kind_of_spec", None)
        if name not in kinds:
            raise UnknownClass(shown(name))
        cls = kinds[name]
        known = {f.name for f in dataclasses.fields(cls)}
        for field in fields:
            if field not in known:
                raise SpecError(f"{name} has no field {field!r}; it has {', '.join(sorted(known))}")
        return cls(**fields)
    if isinstance(data, list):
        return tuple(from_json(item, kinds) for item in data)
    return data


def canonical(value: Any) -> str:
    """One text for equal specs: sorted JSON, numbers as floats where the field is a float."""
    return json.dumps(_plain(to_json(value)), sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
