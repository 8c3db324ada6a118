"""`iclab notation`: the papers' symbols, the public fields that hold them, what they mean."""

from __future__ import annotations

from iclab.commands.options import Parser
from iclab.commands.output import console, to_text
from iclab.notation import NOTATION


def main(arguments: list[str]) -> None:
    """Print the table, or JSON."""
    parser = Parser("notation", "The papers' symbols, the public fields that hold them, and what they mean.")
    parser.add_argument("--json", action="store_true", help="print a JSON list")
    options = parser.parse_args(arguments)
    if options.json:
        print(to_text([symbol._asdict() for symbol in NOTATION]))
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for name in ("symbol", "field", "meaning", "paper"):
        table.add_column(name, no_wrap=name == "field")
    for symbol in NOTATION:
        table.add_row(symbol.symbol, "\n".join(symbol.fields), symbol.meaning, symbol.paper)
    console().print(table)
