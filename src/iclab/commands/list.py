"""`iclab list`: what can be reproduced."""

from __future__ import annotations

from iclab.commands.options import Parser
from iclab.commands.output import say, to_text
from iclab.papers.catalogue import all_entries


def main(arguments: list[str]) -> None:
    """Print one line per entry, on a terminal folded where it is too long, or JSON."""
    parser = Parser("list", "List every figure, table and claim that can be reproduced.")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    options = parser.parse_args(arguments)
    entries = all_entries().values()
    if options.json:
        print(to_text([{"id": e.id, "kind": e.kind, "title": e.title, "place": e.place} for e in entries]))
        return
    widest = max(len(entry.id) for entry in entries)
    for entry in entries:
        say(f"{entry.id:{widest}} {entry.kind:6} ", f"{entry.title}  ({entry.place})")
