"""Errors a user can act on: each is one line that names the field, the value and the rule."""

from __future__ import annotations

from typing import Any


class IclabError(Exception):
    """Anything the user can put right; the command line prints it as one line and exits with code 2."""


class SpecError(IclabError, ValueError):
    """A field of a spec breaks its rule."""


class CheckpointError(IclabError):
    """A stored model cannot be read: absent, truncated, altered, or of another kind."""


def require(holds: bool, field: str, value: Any, rule: str) -> None:
    """Raise `SpecError` naming the field, the rule and the value unless `holds`."""
    if not holds:
        raise SpecError(f"{field} must {rule}, got {value!r}")
