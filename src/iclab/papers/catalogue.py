"""All entries: one per module below `papers/`, those that other packages add, and those in a user's own files."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import os
import pkgutil
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from iclab import papers
from iclab.core import registry
from iclab.core.errors import IclabError, did_you_mean, require
from iclab.lab.entries import Entry
from iclab.papers.references import ASKED_FOR, OURS, SOURCES


def all_entries() -> dict[str, Entry]:
    """The `ENTRY` of every module below `papers/`, and of plugins; per paper: figures and tables, ours, then claims."""
    entries = {}
    for module in pkgutil.walk_packages(papers.__path__, papers.__name__ + "."):
        if module.name.count(".") >= 3:
            entry = getattr(importlib.import_module(module.name), "ENTRY", None)
            if entry is not None:
                entries[entry.id] = dataclasses.replace(entry, module=module.name)
    for entry in registry.added_entries():
        if not isinstance(entry, Entry) or entry.id in entries:
            raise IclabError(f"an entry point of the group {registry.ENTRIES} must be an Entry with a new id, got "
                             f"{getattr(entry, 'id', entry)!r}")
        entries[entry.id] = dataclasses.replace(entry, module=entry.run.__module__)
    rooms = [*SOURCES, *OURS, *dict.fromkeys(entry.room for entry in entries.values())]
    return dict(sorted(entries.items(), key=lambda item: (
        rooms.index(item[1].room), item[1].kind == "claim", item[1].place.startswith("ours"), item[0])))


def main_entries() -> list[Entry]:
    """The entries that run when none is named."""
    return [entry for entry in all_entries().values() if entry.room not in ASKED_FOR]


def chosen_entries(ids: Sequence[str]) -> list[Entry]:
    """The entries with these ids or aliases, in these rooms, or in these Python files; if none is named, the main ones.
    """
    if not ids:
        return main_entries()
    entries = all_entries()
    known = entries | {alias: entry for entry in entries.values() for alias in entry.aliases}
    chosen: list[Entry] = []
    for name in ids:
        in_room = [entry for entry in entries.values() if entry.room == name]
        if in_room:
            chosen += in_room
            continue
        if name not in known and not name.endswith(".py"):
            rooms = list(dict.fromkeys(entry.room for entry in entries.values()))
            parts = [id_ for id_ in known if name in id_.split(".")]
            advice = f"; did you mean {' or '.join(parts)}?" if parts else did_you_mean(name, [*known, *rooms])
            raise IclabError(f"id must be one of those that iclab list shows, one of {', '.join(rooms)}, or a Python "
                             f"file with an ENTRY, got {name!r}{advice}")
        entry = known[name] if name in known else own_entry(name)
        if any(entry.id == other.id and entry.path != other.path for other in (*known.values(), *chosen)):
            raise IclabError(f"{name}: id of the entry must be new, got {entry.id!r}, which another entry has")
        chosen.append(entry)
    return list({entry.id: entry for entry in chosen}.values())


def own_entry(path: str) -> Entry:
    """The `ENTRY` of a user's Python file."""
    if not os.access(path, os.R_OK) or not Path(path).is_file():
        raise IclabError(f"id must be a file that can be read, got {path!r}")
    require(path.isprintable(), "id", path, "be a path of printable characters")
    folder = str(Path(path).resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # so that the file can import its neighbours, as a script can
    name = f"iclab_entry_{hashlib.sha256(str(Path(path).resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    except Exception as error:  # a user's file may raise anything
        raise IclabError(f"{path} cannot be imported: {type(error).__name__}: {error}") from None
    entry = getattr(module, "ENTRY", None)
    if not isinstance(entry, Entry):
        raise IclabError(f"{path} must define ENTRY, an iclab.lab.entries.Entry, got {type(entry).__name__}")
    if not isinstance(entry.id, str) or not re.fullmatch(r"[a-z]+\.[a-z0-9_]+", entry.id):
        raise IclabError(f"{path}: id of the entry must be two words such as mine.claim, got {entry.id!r}")
    return dataclasses.replace(entry, module=name, path=path)
