"""What commands print: JSON, tables, damaged files."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from typing import Any


def to_text(value: Any) -> str:
    """Indented JSON, with null for NaN and infinity."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def console() -> Any:
    """A console on standard output: as wide as the terminal, or 140 columns if there is none."""
    from rich.console import Console

    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=140)


def say(first: str, rest: str) -> None:
    """Print a line; on a terminal that is too narrow, what follows `first` is folded beside it."""
    line = f"{first}{rest}"
    if sys.stdout.isatty():
        line = textwrap.fill(rest, shutil.get_terminal_size().columns, initial_indent=first,
                             subsequent_indent=" " * len(first))
    print(line)


def say_damage(store: Any) -> None:
    """Report a store's damaged files, if any, in one line on standard error."""
    from iclab.sweeps.packs import store_at

    file_stores = [store.files, store_at(store.files.address).files]
    broken = list(dict.fromkeys(name for files in file_stores for name in files.damage))
    moved = [name for files in file_stores for name in files.moved]
    if broken:
        count = "1 damaged file" if len(broken) == 1 else f"{len(broken)} damaged files"
        aside = f"; moved aside: {moved[0]}" if moved else ""
        print(f"iclab: {count} left out of {store.files.place}: {broken[0]}"
              f"{' and others' if len(broken) > 1 else ''}{aside}", file=sys.stderr)
