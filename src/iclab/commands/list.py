"""`iclab list`: what can be reproduced."""

from __future__ import annotations

import json

from iclab.commands.options import Parser
from iclab.papers.entries import all_entries


def main(arguments: list[str]) -> None:
    """Print one line an entry, or JSON."""
    parser = Parser("list", "List every figure, table and claim that can be reproduced.")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    options = parser.parse_args(arguments)
    entries = all_entries().values()
    if options.json:
        print(json.dumps([{"id": e.id, "kind": e.kind, "title": e.title, "place": e.place} for e in entries], indent=2))
        return
    for entry in entries:
        print(f"{entry.id:18} {entry.kind:7} {entry.title}  ({entry.place})")
