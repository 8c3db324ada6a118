"""Pages that are made from the code when the site is built: claims, notation, laws, public names."""

from __future__ import annotations

import importlib
import inspect
from collections import Counter
from typing import Any

import iclab
from iclab.commands import COMMANDS
from iclab.lab.claims import KINDS, short
from iclab.lab.verify import shipped_reference
from iclab.notation import NOTATION
from iclab.papers.catalogue import all_entries
from iclab.papers.readings import READINGS
from iclab.papers.references import OURS, SOURCES
from iclab.theory import shipped_constants
from iclab.theory.all import LAWS

ROOMS = ("prompts", "models", "training", "tracking", "probes", "hub", "theory", "sweeps", "figures", "lab", "papers",
         "core")
"""In the order of the data."""


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put what the code says in place of `<!-- made: NAME -->`."""
    for name, make in MADE.items():
        mark = f"<!-- made: {name} -->"
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    return markdown


def claims() -> str:
    """Every entry, with the docstring that holds its rule, cost and expected numbers."""
    parts, entries = [], all_entries()
    for name, source in (SOURCES | OURS).items():
        parts.append(f"### {source.name}\n\n{source.subject}\n")
        for entry in (entry for entry in entries.values() if entry.room == name):
            told = inspect.getdoc(importlib.import_module(entry.module)) or ""
            parts.append(f"#### `{entry.id}` {entry.title}\n\n*{entry.kind}, {entry.place}*\n\n{told}\n\n"
                         f"```bash\niclab reproduce {entry.id}\n```\n")
    return "\n".join(parts)


def verdicts() -> str:
    """Every part of every claim with its verdict and the check that decides, from the reference of this release."""
    rows, counts = [], {kind: Counter() for kind in KINDS}
    for claim in shipped_reference("full")["claims"]:
        for part in claim["parts"]:
            counts[part["kind"]][part["verdict"]] += 1
            rows.append((f"`{claim['id']}`", f"{part['kind']}: {part['place']}", part["says"], f"**{part['verdict']}**",
                         _deciding(part)))
    words = sorted({verdict for counter in counts.values() for verdict in counter})
    total = _table(("kind", *words), [(kind, *(counter[word] or "" for word in words))
                                      for kind, counter in counts.items()])
    return total + "\n\n" + _table(("claim", "part", "it says", "verdict", "what decides"), rows)


def _deciding(part: dict[str, Any]) -> str:
    unmet = [premise for premise in part["premises"] if not premise["met"]]
    if unmet:
        return f"premise not met: {unmet[0]['name']} must be {unmet[0]['required']}, is {unmet[0]['actual']}"
    rank = {"fails": 0, "inconclusive": 1, "holds": 2}
    check = min(part["checks"], key=lambda check: rank[check["verdict"]])
    numbers = [float("nan") if value is None else value for value in (check["measured"], *check["interval"])]
    value, low, high = (short(number) for number in numbers)
    return f"{check['name']}: {value} [{low}, {high}], must be {check['relation']} {check['threshold']:.3g}"


def ours() -> str:
    """What we claim beyond the papers, with its verdict and the check that decides."""
    rows = [(f"`{claim['id']}`", part["says"], f"**{part['verdict']}**", _deciding(part))
            for claim in shipped_reference("full")["claims"] for part in claim["parts"]
            if part["kind"] == "ours" and not part["tight"]]
    return _table(("claim", "it says", "verdict", "what decides"), rows)


def commands() -> str:
    """Every command with what it does."""
    return _table(("command", ""), [(f"`iclab {name}`", text) for name, text in COMMANDS.items()])


def readings() -> str:
    """Where the papers contradict themselves."""
    return _table(("paper", "place", "printed", "in iclab", "shown by"),
                  [(SOURCES[r.paper].key, r.place, r.printed, r.here, f"`{r.evidence}`" if r.evidence else "")
                   for r in READINGS])


def notation() -> str:
    """The table of symbols."""
    return _table(("symbol", "field", "meaning", "paper"),
                  [(f"`{s.symbol}`", ", ".join(f"`{name}`" for name in s.fields), s.meaning, s.paper)
                   for s in NOTATION])


def laws() -> str:
    """Every law with its constant."""
    known = shipped_constants()
    rows = []
    for law in LAWS:
        found = known.get(law.key)
        told = "not fitted" if found is None else f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})"
        rows.append((law.quantity, f"`c * {law.formula}`", told, law.measured_at, f"`{law.entry}`"))
    return _table(("quantity", "law", "c (single settings)", "reached", "fitted in"), rows)


def names() -> str:
    """Every public name with its documentation."""
    rooms: dict[str, list[str]] = {room: [] for room in ROOMS}
    for name in iclab.__all__:
        home = getattr(iclab, name).__module__
        rooms[home.split(".")[1]].append(f"{home}.{name}")
    return "\n".join(f"## {room}\n\n" + "\n".join(f"::: {path}\n" for path in paths)
                     for room, paths in rooms.items() if paths)


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    return "\n".join([line(header), line(("---",) * len(header)), *(line(row) for row in rows)])


MADE = {"claims": claims, "ours": ours, "commands": commands, "verdicts": verdicts, "readings": readings,
        "notation": notation, "laws": laws, "names": names}
