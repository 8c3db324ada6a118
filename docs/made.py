"""What pages take from the code when the site is built: claims, notation, laws, public names, and files of examples.

A line `<!-- made: NAME -->` becomes what the function NAME of this module returns, and a line `<!-- file: PATH -->` the
file at that path, seen from the page. What follows such a comment on its line is for readers of the source.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from markupsafe import Markup
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import iclab
from iclab.commands import COMMANDS
from iclab.lab.claims import KINDS, short
from iclab.lab.verify import shipped_reference
from iclab.notation import NOTATION
from iclab.papers.catalogue import all_entries
from iclab.papers.readings import READINGS
from iclab.papers.references import OURS, SOURCES
from iclab.report.mathml import typeset
from iclab.theory import shipped_constants
from iclab.theory.all import LAWS

HERE = Path(__file__).parent
ROOMS = ("prompts", "models", "training", "tracking", "probes", "hub", "theory", "sweeps", "figures", "lab", "papers",
         "report", "core")
"""In the order of the data."""
COMMENT = re.compile(r"^<!-- (made|file): (\S+) -->.*$", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls this when it loads the extension."""
    app.add_config_value("navigation", {}, "env")
    app.connect("source-read", lambda app, page, source: source.append(filled(source.pop(), app.config.navigation)))
    app.connect("env-get-outdated", lambda app, env, *changes: [
        page for page in env.found_docs if COMMENT.search(Path(env.doc2path(page)).read_text())])
    app.connect("autodoc-process-docstring", _as_restructured_text)
    return {"parallel_read_safe": True}


def filled(text: str, navigation: dict[str, tuple[str, ...]]) -> str:
    """The text of a page with everything in it that is made."""
    def put(comment: re.Match[str]) -> str:
        kind, name = comment.groups()
        if kind == "file":
            path = (HERE / name).resolve()
            return f"```{path.suffix.removeprefix('.')}\n{path.read_text().rstrip()}\n```"
        if name == "navigation":
            return trees(navigation)
        if name not in MADE:
            raise ExtensionError(f"made must be one of navigation, {', '.join(MADE)}, got {name!r}")
        return MADE[name]()

    return COMMENT.sub(put, text)


def _as_restructured_text(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with `code` and indented blocks of code; what else has a meaning is escaped."""
    blocks = re.split(r"\n(?:[ ]*\n)+", "\n".join(lines))
    for i, block in enumerate(blocks):
        if not block.startswith("    "):
            blocks[i] = re.sub(r"(`[^`]*`)|([*|\\]|_\b(?!\w))", lambda found: found[1] or f"\\{found[2]}", block)
        elif i and not blocks[i - 1].startswith("    "):
            blocks[i] = f"::\n\n{block}"
    lines[:] = "\n\n".join(blocks).split("\n")


def trees(navigation: dict[str, tuple[str, ...]]) -> str:
    """The tables of contents, of the pages that are there."""
    return "\n\n".join("\n".join([
        "```{toctree}", ":hidden:", f":caption: {caption}", "",
        *(page for page in pages if (HERE / f"{page}.md").exists()), "```"]) for caption, pages in navigation.items())


def claims() -> str:
    """Every entry, with the docstring that holds its rule, cost and expected numbers."""
    parts, entries = [], all_entries()
    for name, source in (SOURCES | OURS).items():
        parts.append(f"### {source.name}\n\n{_paragraph(source.subject)}\n")
        for entry in (entry for entry in entries.values() if entry.room == name):
            told = inspect.getdoc(importlib.import_module(entry.module)) or ""
            parts.append(f"({entry.id})=\n#### `{entry.id}` {entry.title}\n\n*{entry.kind}, {entry.place}*\n")
            parts += [_paragraph(" ".join(paragraph.split())) + "\n" for paragraph in told.split("\n\n")]
            parts.append(f"```bash\niclab reproduce {entry.id}\n```\n")
    return "\n".join(parts)


def counts() -> str:
    """How many parts of each kind have each verdict, in the reference of this release."""
    numbers = {kind: Counter[str]() for kind in KINDS}
    for claim in shipped_reference("full")["claims"]:
        for part in claim["parts"]:
            numbers[part["kind"]][part["verdict"]] += 1
    words = sorted({verdict for counter in numbers.values() for verdict in counter})
    return _table(("kind", *words), [(kind, *(counter[word] or "" for word in words))
                                     for kind, counter in numbers.items()], stacks=False)


def verdicts() -> str:
    """Every part of every claim with its verdict and the check that decides, from the reference of this release."""
    return _table(("claim and part", "it says", "verdict", "what decides"), [
        (Markup("{}<br>{}").format(_link(claim["id"]), typeset(f"{part['kind']}: {part['place']}")), part["says"],
         _bold(part["verdict"]), _deciding(part))
        for claim in shipped_reference("full")["claims"] for part in claim["parts"]])


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
    return _table(("claim", "it says", "verdict", "what decides"), [
        (_link(claim["id"], "claims.html"), part["says"], _bold(part["verdict"]), _deciding(part))
        for claim in shipped_reference("full")["claims"] for part in claim["parts"]
        if part["kind"] == "ours" and not part["tight"]])


def commands() -> str:
    """Every command with what it does."""
    return _table(("command", ""), [(f"`iclab {name}`", text) for name, text in COMMANDS.items()])


def readings() -> str:
    """Where the papers contradict themselves."""
    return _table(("paper", "place", "printed", "in iclab", "shown by"),
                  [(SOURCES[r.paper].key, r.place, r.printed, r.here, _link(r.evidence, "claims.html"))
                   for r in READINGS])


def notation() -> str:
    """The table of symbols."""
    return _table(("symbol", "field", "meaning", "paper"),
                  [(s.symbol, ", ".join(f"`{name}`" for name in s.fields), s.meaning, s.paper) for s in NOTATION])


def laws() -> str:
    """Every law with its constant."""
    known = shipped_constants()
    rows = []
    for law in LAWS:
        found = known.get(law.key)
        told = "not fitted" if found is None else f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g})"
        rows.append((law.quantity, f"c * {law.formula}", told, law.measured_at, _link(law.entry, "claims.html")))
    return _table(("quantity", "law", "c (single settings)", "reached", "fitted in"), rows)


def speed() -> str:
    """What `iclab bench` measured once."""
    recorded = json.loads((HERE.parent / "benchmarks" / "recorded.json").read_text())
    shown = {"eager": "eager PyTorch", "compile": "`torch.compile`", "single": "iclab, one model",
             "independent_32": "iclab, 32 models", "shared_32": "iclab, 32 models on the same batches"}
    rows = [(words, recorded["microseconds_per_model_step"][name],
             *(recorded[f"speedup_vs_{reference}"].get(name, "") for reference in ("eager", "compile")))
            for name, words in shown.items()]
    header = ("", "\u00b5s per model-step", "times faster than eager", "than `torch.compile`")
    return (_table(header, rows, stacks=False)
            + f"\n*{recorded['machine']}, median of {recorded['rounds']} rounds.*\n")


def names() -> str:
    """Every public name with its documentation."""
    rooms: dict[str, list[str]] = {room: [] for room in ROOMS}
    for name in iclab.__all__:
        public = getattr(iclab, name)
        kind = "autoclass" if inspect.isclass(public) else "autofunction"
        options = "\n   :members:\n   :undoc-members:" if kind == "autoclass" else ""
        rooms[public.__module__.split(".")[1]].append(f".. {kind}:: {public.__module__}.{name}{options}\n")
    return "\n".join(f"## {room}\n\n```{{eval-rst}}\n" + "\n".join(directives) + "```\n"
                     for room, directives in rooms.items() if directives)


def _paragraph(text: str) -> str:
    return f"<p>{typeset(text)}</p>\n"


def _bold(text: str) -> Markup:
    return Markup("<strong>{}</strong>").format(text)


def _link(entry: str, page: str = "") -> Markup:
    anchor = re.sub(r"[^a-z0-9]+", "-", entry.lower())
    return Markup('<a href="{}#{}"><code>{}</code></a>').format(page, anchor, entry) if entry else Markup("")


def _table(header: tuple[str, ...], rows: list[tuple[Any, ...]], stacks: bool = True) -> str:
    """A table whose formulas are typeset; as HTML, so that nothing in it is taken for Markdown. On narrow screens the
    cells of a row stand below each other if it `stacks`."""
    head = Markup("").join(Markup("<th>{}</th>").format(typeset(title)) for title in header)
    body = Markup("").join(Markup("<tr>{}</tr>").format(Markup("").join(
        Markup('<td data-title="{}">{}</td>').format(title, cell if isinstance(cell, Markup) else typeset(cell))
        for title, cell in zip(header, row, strict=True))) for row in rows)
    return (f'<div class="table-wrapper docutils container"><table class="docutils{" stacks" * stacks}">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n")


MADE = {"claims": claims, "counts": counts, "ours": ours, "commands": commands, "verdicts": verdicts,
        "readings": readings, "notation": notation, "laws": laws, "speed": speed, "names": names}
