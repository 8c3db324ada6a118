"""What a spec is: a frozen dataclass of words and numbers, checked when it is made and never traced.

Programs read its lowered form, made by `lower`: an object with the same methods in which every number is an
array and every encoded word an integer or a table. One compiled program serves all their values, and a stack of lowered
specs is an ensemble. All other fields are structure: they set shapes and code paths.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping
from functools import cache, wraps
from itertools import pairwise
from typing import Any, TypeVar, dataclass_transform, overload

import jax
import numpy as np

from iclab.core import registry
from iclab.core.errors import SpecError, did_you_mean, require, shown
from iclab.core.limits import LARGEST

T = TypeVar("T")


def number(*, default: Any = dataclasses.MISSING) -> Any:
    """A field whose value may vary inside one compiled program."""
    return dataclasses.field(default=default, metadata={"varies": True, "number": True})


def array(*, default: Any = dataclasses.MISSING) -> Any:
    """A field that holds an array of data, which may vary inside one compiled program."""
    return dataclasses.field(default=default, repr=False, metadata={"varies": True})


def rows(*, default: Any = None, varies: bool = True, later: bool = False) -> Any:
    """A field of rows of numbers; lists and arrays become tuples. Programs read a matrix.

    `later`: the field came when results of its spec had been stored. While it has its default, it is no part of the
    spec's identity, so that those results are found again.
    """
    encode = {"encode": _matrix} if varies else {}
    return dataclasses.field(default=default, metadata={"varies": varies, "rows": True, "later": later, **encode})


def later(*, default: Any) -> Any:
    """A field of structure that came when results of its spec had been stored: while it has its default, it is no part
    of the spec's identity, so that those results are found again."""
    return dataclasses.field(default=default, metadata={"later": True})


def encoded(encode: Callable[[Any, Any], Any], *, default: Any) -> Any:
    """A field of words that may vary inside one compiled program, which reads `encode(spec, value)`, an array.

    A value whose code is None is structure.
    """
    return dataclasses.field(default=default, metadata={"varies": True, "encode": encode})


def part(*, default_factory: Callable[[], Any]) -> Any:
    """A field that is itself a spec."""
    return dataclasses.field(default_factory=default_factory, metadata={"varies": True})


def schedule(*, default: Any) -> Any:
    """A field that controls a program from outside: the program cannot read it and is the same for all its values."""
    return dataclasses.field(default=default, metadata={"schedule": True})


def note(*, default: Any = None) -> Any:
    """A field that only describes: programs do not read it, and specs that differ in nothing else are the same."""
    return dataclasses.field(default=default, compare=False, metadata={"schedule": True, "note": True})


def _matrix(spec_: Any, matrix: Any) -> Any:
    return None if matrix is None else np.asarray(matrix, float)


@overload
def spec(cls: type[T]) -> type[T]: ...
@overload
def spec(*, part: str) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, kw_only_default=True,
                     field_specifiers=(number, array, rows, later, encoded, part, schedule, note, dataclasses.field))
def spec(cls: type[T] | None = None, *, part: str | None = None) -> Any:
    """Make a class a frozen keyword-only dataclass; its method `check`, if it has one, runs on every instance.

    `@spec(part="model")` also registers it as a kind of this part of a run: files and options can then
    name it (`iclab.core.registry`).
    """
    if cls is None:
        return lambda cls: _spec_class(cls, part)
    return _spec_class(cls, part)


def _spec_class(cls: type[T], part_: str | None) -> type[T]:
    cls.__post_init__ = _checked  # type: ignore[attr-defined]
    decorated: Any = dataclasses.dataclass(frozen=True, kw_only=True)(cls)
    decorated.__init__ = _naming_faults(decorated.__init__)
    decorated._is_spec = True
    if part_ is not None:
        registry.enter(part_, decorated)
    return decorated


def _naming_faults(init: Callable[..., None]) -> Callable[..., None]:
    """The constructor, which says of a value without a field and of an unknown field what `replace` says."""
    @wraps(init)
    def named(self: Any, *values: Any, **fields: Any) -> None:
        try:
            init(self, *values, **fields)
        except TypeError:
            known = [field.name for field in dataclasses.fields(self)]
            if values:
                raise SpecError(f"{type(self).__name__} takes its fields by name, got {shown(values[0])} without one; "
                                f"it has {', '.join(known)}") from None
            for name in fields:
                if name not in known:
                    raise no_such_field(self, name, known) from None
            raise

    return named


def _checked(self: Any) -> None:
    """Convert the fields of a new spec to their standard form, and check them."""
    for field in dataclasses.fields(self):
        value = getattr(self, field.name)
        if field.metadata.get("number"):
            object.__setattr__(self, field.name, _plain_number(field.name, value))
        elif field.metadata.get("rows") and isinstance(value, (list, np.ndarray)):
            object.__setattr__(self, field.name, tuple(tuple(float(x) for x in row) for row in value))
        elif field.metadata.get("encode") and isinstance(value, (list, tuple, np.ndarray)):
            object.__setattr__(self, field.name, _nested(value))
    if hasattr(self, "check"):
        self.check()


def _plain_number(field: str, value: Any) -> Any:
    """A number from any library as a Python number; traced values and arrays of several numbers are refused."""
    if isinstance(value, (np.generic, np.ndarray, jax.Array)):
        if isinstance(value, jax.core.Tracer) or np.ndim(value) > 0:
            raise SpecError(f"{field} must be one number, known when the spec is made, got {shown(value)}")
        return np.asarray(value).item()
    return value


def _nested(value: Any) -> Any:
    """Lists and arrays of any depth as tuples."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(_nested(item) for item in value) if isinstance(value, (list, tuple)) else value


def is_spec(value: Any) -> bool:
    """Whether a value is a spec, as a person writes it."""
    return hasattr(type(value), "_is_spec") and not hasattr(type(value), "_lowered_from")


def spec_class(value: Any) -> type:
    """The class of a spec, lowered or not."""
    return getattr(type(value), "_lowered_from", type(value))


def lower(tree: T) -> T:
    """What programs read: `tree` with every spec in it, at any depth, in its lowered form."""
    return jax.tree.map(lambda leaf: _lowered(leaf) if is_spec(leaf) else leaf, tree)


def _lowered(spec_: Any) -> Any:
    varying, structure = {}, {}
    for field in dataclasses.fields(spec_):
        value = getattr(spec_, field.name)
        encode = field.metadata.get("encode")
        code = value if encode is None else encode(spec_, value)
        if field.metadata.get("varies") and not (encode is not None and code is None):
            varying[field.name] = lower(code)
        elif not field.metadata.get("schedule"):
            structure[field.name] = value
    cls: Any = type(spec_)
    return _filled(_lowered_class(cls), varying, structure)


def _filled(lowered: type, varying: Mapping[str, Any], structure: Mapping[str, Any]) -> Any:
    instance: Any = object.__new__(lowered)
    for name, value in (*varying.items(), *structure.items()):
        object.__setattr__(instance, name, value)
    object.__setattr__(instance, "_varying", tuple(varying))
    object.__setattr__(instance, "_fixed", tuple(structure))
    return instance


@cache
def _lowered_class(cls: type) -> type:
    """The class of lowered specs: a subclass of the spec's, so that methods run on both, created only by `lower`."""
    def refuse(self: Any, *args: Any, **fields: Any) -> None:
        raise SpecError(f"a {cls.__name__} inside a program cannot be made or changed; change the spec it comes from")

    def unread(name: str) -> property:
        def read(self: Any) -> Any:
            raise AttributeError(f"{cls.__name__}.{name} is not known inside a program, which serves all its values")

        return property(read)

    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    body = {"__init__": refuse, "__repr__": lambda self: f"<{cls.__name__} inside a program>", "_lowered_from": cls,
            "__module__": cls.__module__, "__qualname__": f"{cls.__qualname__}.lowered",
            **{field.name: unread(field.name) for field in fields if field.metadata.get("schedule")}}
    lowered = type(cls.__name__, (cls,), body)

    def flatten(value: Any) -> tuple[tuple[Any, ...], Any]:
        varying, fixed = value._varying, value._fixed
        return tuple(getattr(value, name) for name in varying), (varying, fixed, tuple(getattr(value, name)
                                                                                       for name in fixed))

    def unflatten(structure: Any, leaves: Any) -> Any:
        varying, fixed, values = structure
        return _filled(lowered, dict(zip(varying, leaves, strict=True)), dict(zip(fixed, values, strict=True)))

    jax.tree_util.register_pytree_node(lowered, flatten, unflatten)
    return lowered


def with_structure(value: T, **fields: Any) -> T:
    """The same spec or lowered spec with other values of fields that are structure or parts, unchecked."""
    changed = copy.copy(value)
    for name, item in fields.items():
        object.__setattr__(changed, name, item)
    return changed


def require_range(spec_: Any, field: str, low: float, high: float, *, open_low: bool = False,
                  open_high: bool = False) -> None:
    """Require a number field to lie in an interval, closed unless an end is declared open."""
    value = getattr(spec_, field)
    require(np.ndim(value) == 0 and not isinstance(value, str), field, value, "be a number")
    above = value > low if open_low else value >= low
    below = value < high if open_high else value <= high
    left, right = "(" if open_low else "[", ")" if open_high else "]"
    require(bool(above and below), field, value, f"be in {left}{low:g}, {high:g}{right}")


def require_count(spec_: Any, field: str, least: int, below: int = LARGEST) -> None:
    """Require an integer field to be at least `least`, and small enough for programs to count to."""
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
            raise no_such_field(spec_, name, known)
    return dataclasses.replace(spec_, **changes)  # type: ignore[type-var]


@typing.runtime_checkable
class SetElsewhere(typing.Protocol):
    """A spec that knows where things are set that are no fields of its own."""

    def elsewhere(self, name: str) -> str | None:
        """What to do in order to set this, if it is known."""


def no_such_field(spec_: Any, name: str, known: typing.Iterable[str]) -> SpecError:
    """The error that names an unknown field, and what may have been meant."""
    known = list(known)
    advice = spec_.elsewhere(name) if isinstance(spec_, SetElsewhere) else None
    return SpecError(f"{type(spec_).__name__} has no field {name!r}" + (
        f"; {advice}" if advice else f"{did_you_mean(name, known)}; it has {', '.join(known)}"))


@cache
def field_help(cls: Any) -> dict[str, str]:
    """The docstring that stands under each field of a spec class, those of the specs it derives from included."""
    import ast
    import textwrap

    help_texts = {name: text for base in cls.__bases__ if hasattr(base, "_is_spec")
                  for name, text in field_help(base).items()}
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    body = tree.body[0].body  # type: ignore[attr-defined]
    for field, doc in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant):
            help_texts[field.target.id] = " ".join(str(doc.value.value).split())  # type: ignore[union-attr]
    return help_texts
