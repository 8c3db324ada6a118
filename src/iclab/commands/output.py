"""JSON as the commands print and write it."""

from __future__ import annotations

import json
import math
import sys
from typing import Any


def to_text(value: Any) -> str:
    """Indented JSON; null stands for what is not a number."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def console() -> Any:
    """Standard output as wide as the terminal, or as wide as a table needs where there is none."""
    from rich.console import Console

    made = Console()
    return made if made.is_terminal else Console(width=140)


def say_damage(store: Any) -> None:
    """One line on standard error about broken files of a store, if there are any."""
    from iclab.runs.packs import store_at

    seen = [store.files, store_at(store.files.address).files]
    broken = list(dict.fromkeys(name for files in seen for name in files.damage))
    moved = [name for files in seen for name in files.moved]
    if broken:
        files = "1 damaged file" if len(broken) == 1 else f"{len(broken)} damaged files"
        aside = f"; moved aside: {moved[0]}" if moved else ""
        print(f"iclab: {files} left out of {store.files.place}: {broken[0]}"
              f"{' and others' if len(broken) > 1 else ''}{aside}", file=sys.stderr)


def duration(seconds: float) -> str:
    """Seconds in words that suit their size."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.1f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
