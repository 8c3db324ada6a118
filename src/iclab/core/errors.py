"""Errors a user can act on: each is one line that names the field, the value and the rule."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

LONGEST = 300
"""Characters of a value that an error shows."""


class IclabError(Exception):
    """Anything the user can put right; the command line prints it as one line and exits with code 2."""


class SpecError(IclabError, ValueError):
    """A field of a spec breaks its rule."""


class CheckpointError(IclabError):
    """A stored model cannot be read: absent, truncated, altered, or of another kind."""


def shown(value: Any) -> str:
    """A value as an error shows it: cut where it is long, by its type where Python cannot write it out."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # more digits or deeper lists than Python writes
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def nearest(name: Any, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one is closest to, if any is close."""
    return next(iter(difflib.get_close_matches(str(name), list(known), 1)), None)


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """`; did you mean X?` if one of the known names is close to it, else nothing."""
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""


def not_a(field: str, value: Any, wanted: str, advice: str = "") -> SpecError:
    """The error that says of what kind a value is, and of what kind it must be."""
    name = type(value).__name__
    article = "an" if name[0] in "AEIOaeiou" else "a"
    got = f"the class {value.__name__}" if isinstance(value, type) else f"{article} {name}"
    return SpecError(f"{field} must be {wanted}, got {got}{advice and '; '}{advice}")


def require(holds: bool, field: str, value: Any, rule: str) -> None:
    """Raise `SpecError` naming the field, the rule and the value unless `holds`."""
    if not holds:
        raise SpecError(f"{field} must {rule}, got {shown(value)}")
