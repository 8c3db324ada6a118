"""What a spec is: a frozen dataclass that is also a JAX pytree.

Fields made by `number` are leaves: one compiled program serves all their values, and a stack of specs that differ
only in them is an ensemble. So are fields made by `coded`, which hold names outside of programs and codes inside. All
other fields are structure: they set shapes and code paths.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import pairwise
from typing import Any, TypeVar, dataclass_transform, overload

import jax
import numpy as np

from iclab import registry
from iclab.errors import SpecError, require
from iclab.limits import LARGEST

T = TypeVar("T")


def number(*, default: Any = dataclasses.MISSING) -> Any:
    """A field whose value is a leaf: it may vary inside one compiled program."""
    return dataclasses.field(default=default, metadata={"leaf": True})


def array(*, default: Any = dataclasses.MISSING) -> Any:
    """A field that holds an array of data as a leaf."""
    return dataclasses.field(default=default, metadata={"leaf": True, "array": True})


def rows(*, default: Any = None, leaf: bool = True) -> Any:
    """A field of rows of numbers; lists and arrays become tuples."""
    return dataclasses.field(default=default, metadata={"leaf": leaf, "rows": True})


def coded(encode: Callable[[Any, Any], Any], *, default: Any) -> Any:
    """A field of names that is a leaf all the same: a program reads `encode(spec, value)`, an array, instead of them.

    Where the code is None the value is structure.
    """
    return dataclasses.field(default=default, metadata={"leaf": True, "encode": encode})


def part(*, default_factory: Callable[[], Any]) -> Any:
    """A field that is itself a spec."""
    return dataclasses.field(default_factory=default_factory, metadata={"leaf": True})


@overload
def spec(cls: type[T]) -> type[T]: ...
@overload
def spec(*, part: str) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, kw_only_default=True,
                     field_specifiers=(number, array, rows, coded, part, dataclasses.field))
def spec(cls: type[T] | None = None, *, part: str | None = None) -> Any:
    """Make a class a frozen keyword-only dataclass and a pytree; `check`, if defined, runs on concrete values.

    `@spec(part="model")` also enters it into the registry, as a kind of this part of a run: files and options can then
    name it (`iclab.registry`).
    """
    if cls is None:
        return lambda cls: _made(cls, part)
    return _made(cls, part)


def _made(cls: type[T], part_: str | None) -> type[T]:
    def __post_init__(self: Any) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.metadata.get("rows") and isinstance(value, (list, np.ndarray)):
                object.__setattr__(self, field.name, tuple(tuple(float(x) for x in row) for row in value))
            if field.metadata.get("encode") and isinstance(value, (list, tuple, np.ndarray)):
                object.__setattr__(self, field.name, _nested(value))
        if is_concrete(self) and hasattr(self, "check"):
            self.check()

    cls.__post_init__ = __post_init__  # type: ignore[attr-defined]
    made = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    fields = dataclasses.fields(made)  # type: ignore[arg-type]
    leaves = [f.name for f in fields if f.metadata.get("leaf")]
    structure = [f.name for f in fields if not f.metadata.get("leaf")]
    codes = {f.name: f.metadata["encode"] for f in fields if f.metadata.get("encode")}
    if codes:
        _register_coded(made, leaves, structure, codes)
    else:
        jax.tree_util.register_dataclass(made, data_fields=leaves, meta_fields=structure)
    if part_ is not None:
        registry.enter(part_, made)
    return made


def _nested(value: Any) -> Any:
    """Lists and arrays, of whatever depth, as tuples."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(_nested(item) for item in value) if isinstance(value, (list, tuple)) else value


def _register_coded(cls: Any, leaves: list[str], structure: list[str], codes: dict[str, Callable[..., Any]]) -> None:
    def flatten(spec_: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        read, plain = {}, {}
        for name, encode in codes.items():
            value = getattr(spec_, name)
            read[name] = value if is_code(value) else encode(spec_, value)
            plain[name] = value if read[name] is None else None
        return (tuple(read.get(name, getattr(spec_, name)) for name in leaves),
                (*plain.values(), *(getattr(spec_, name) for name in structure)))

    def unflatten(plain: tuple[Any, ...], read: tuple[Any, ...]) -> Any:
        made = object.__new__(cls)
        for name, value in (*zip(leaves, read, strict=True), *zip(structure, plain[len(codes):], strict=True)):
            object.__setattr__(made, name, value)
        for name, value in zip(codes, plain[:len(codes)], strict=True):
            if value is not None:
                object.__setattr__(made, name, value)
        return made

    jax.tree_util.register_pytree_node(cls, flatten, unflatten)


def is_code(value: Any) -> bool:
    """Whether a coded field holds what programs read, not what people write."""
    written = value is None or isinstance(value, (str, tuple, int, float)) or callable(value)
    return hasattr(value, "shape") or not written


def is_concrete(spec_: Any) -> bool:
    """Whether the spec's numbers can be judged: false for a stack of specs and inside a traced function."""
    for field in dataclasses.fields(spec_):
        if field.metadata.get("encode") and is_code(getattr(spec_, field.name)):
            return False
        if not field.metadata.get("leaf") or field.metadata.get("array") or field.metadata.get("encode"):
            continue
        for leaf in jax.tree.leaves(getattr(spec_, field.name)):
            if isinstance(leaf, jax.core.Tracer) or not isinstance(leaf, (bool, int, float, str, np.generic, np.ndarray,
                                                                         jax.Array)):
                return False
            # An array inside a part (a user's data) is judged by that part.
            if np.ndim(leaf) > 0 and not dataclasses.is_dataclass(getattr(spec_, field.name)):
                return False
    return True


def require_range(spec_: Any, field: str, low: float, high: float, *, open_low: bool = False,
                  open_high: bool = False) -> None:
    """Require a number field to lie in an interval, closed unless an end is said to be open."""
    value = getattr(spec_, field)
    require(np.ndim(value) == 0 and not isinstance(value, str), field, value, "be a number")
    above = value > low if open_low else value >= low
    below = value < high if open_high else value <= high
    left, right = "(" if open_low else "[", ")" if open_high else "]"
    require(bool(above and below), field, value, f"be in {left}{low:g}, {high:g}{right}")


def require_count(spec_: Any, field: str, least: int, below: int = LARGEST) -> None:
    """Require an integer field to be at least `least`, and of a size that programs can count to."""
    value = getattr(spec_, field)
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    require(whole and value >= least, field, value, f"be a whole number >= {least}")
    require(value < below, field, value, f"be below {below:,}")


def require_choice(spec_: Any, field: str, choices: typing.Iterable[str]) -> None:
    """Require a field to be one of the named choices."""
    value, choices = getattr(spec_, field), tuple(choices)
    require(value in choices, field, value, f"be one of {', '.join(choices)}")


def replace(spec_: T, **changes: Any) -> T:
    """A copy of the spec with some fields changed; an unknown field is refused."""
    known = [f.name for f in dataclasses.fields(spec_)]  # type: ignore[arg-type]
    for name in changes:
        if name not in known:
            raise SpecError(f"{type(spec_).__name__} has no field {name!r}; it has {', '.join(known)}")
    return dataclasses.replace(spec_, **changes)  # type: ignore[type-var]


def function_name(function: Callable[..., Any]) -> str:
    """`module:name#hash` of a user's function: its name, and the hash of its source and of the values it holds.

    A value without a stable text makes a name that is never met again: such a function is not confused with another.
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
        named = {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
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
        data = dict(data)
        name = data.pop("kind_of_spec", None)
        if name not in kinds:
            raise SpecError(f"kind_of_spec must be one of {', '.join(kinds)}, got {name!r}")
        cls = kinds[name]
        known = {f.name for f in dataclasses.fields(cls)}
        for field in data:
            if field not in known:
                raise SpecError(f"{name} has no field {field!r}; it has {', '.join(sorted(known))}")
        return cls(**{field: from_json(item, kinds) for field, item in data.items()})
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


@cache
def field_help(cls: Any) -> dict[str, str]:
    """The docstring that stands under each field of a spec class."""
    import ast
    import textwrap

    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    body = tree.body[0].body  # type: ignore[attr-defined]
    found = {}
    for here, after in pairwise(body):
        if isinstance(here, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[here.target.id] = " ".join(str(after.value.value).split())  # type: ignore[union-attr]
    return found
