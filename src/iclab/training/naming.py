"""What tells runs apart: the fields in which they differ, in a few characters each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iclab.core.identity import to_json
from iclab.training.run import Run

Fields = Mapping[str, Any]
"""The fields of a run by their paths."""
LONGEST_TEXT = 24
"""Characters of a value."""


def fields_of(run: Run) -> Fields:
    """All fields of a run, those of its parts by their paths, as JSON values."""
    return _leaves(to_json(run))


def differences(mine: Fields, runs: Sequence[Fields], parts: tuple[str, ...] = ("",), skip: Sequence[str] = ()
                ) -> list[tuple[str, str]]:
    """The fields of a run that are not the same in all these runs, and its values."""
    return [(name.split(".")[-1], value_text(value)) for name, value in mine.items()
            if name.startswith(parts) and name not in skip and any(other.get(name) != value for other in runs)
            and not name.endswith("kind_of_spec")]


def value_text(value: Any) -> str:
    """A value in a few characters."""
    text = f"{value:g}" if isinstance(value, float) else str(value).partition("#")[0]
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT - 3]}..."


def _leaves(spec: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(spec, dict):
        return {prefix[:-1]: spec}
    return {name: leaf for key, value in spec.items() for name, leaf in _leaves(value, f"{prefix}{key}.").items()}
