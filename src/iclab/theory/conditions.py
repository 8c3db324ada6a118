"""One premise of a theorem, and whether the settings meet it."""

from __future__ import annotations

from typing import NamedTuple


class Condition(NamedTuple):
    """A premise that carries a number; those up to unknown constants are left out."""

    name: str
    required: str
    actual: str
    met: bool
