"""What pages take from the code: tables of claims, notation, laws, public names; and files of examples.

    <!-- made: NAME -->      the table NAME of `TABLES`, which stands in the file up to `<!-- end -->`
    <!-- made: NAME -->      what NAME of `SITE` returns, on the site only
    <!-- file: PATH -->      the file at that path, seen from the page, which stands there up to `<!-- end -->` too

`python docs/made.py` writes tables and files into the pages; a test compares them with what the code says. The site
makes them again and typesets the formulas of the tables.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

import iclab
from iclab.commands import COMMANDS
from iclab.core.errors import IclabError
from iclab.core.formulas import one_line, pieces
from iclab.lab.claims import KINDS, short
from iclab.lab.verify import shipped_beyond, shipped_reference
from iclab.notation import NOTATION
from iclab.papers.catalogue import all_entries
from iclab.papers.readings import READINGS
from iclab.papers.references import OURS, SOURCES
from iclab.report.mathml import typeset
from iclab.theory import shipped_constants
from iclab.theory.all import LAWS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
ROOMS = ("prompts", "models", "training", "tracking", "probes", "hub", "theory", "sweeps", "figures", "lab", "papers",
         "report", "core")
"""In the order of the data."""
COMMENT = re.compile(r"^<!-- (made|file): (\S+) -->$(?:\n(?:(?!<!-- ).*\n)*<!-- end -->$)?", re.MULTILINE)


class Link(NamedTuple):
    """A cell that leads to an entry: on the site to what it measures, in a file of Markdown to its module."""

    entry: str


class Strong(NamedTuple):
    """A cell in bold."""

    text: str


class Table(NamedTuple):
    """A table for both; a cell is a text with formulas, a number, a link, bold, or a tuple of such, line by line."""

    header: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    stacks: bool = True
    """On narrow screens the cells of a row stand below each other."""
    note: str = ""

    def html(self) -> str:
        """With typeset formulas; as HTML, so that nothing in it is taken for Markdown."""
        head = Markup("").join(Markup("<th>{}</th>").format(typeset(title)) for title in self.header)
        body = Markup("").join(Markup("<tr>{}</tr>").format(Markup("").join(
            Markup('<td data-title="{}">{}</td>').format(title, _html(cell))
            for title, cell in zip(self.header, row, strict=True))) for row in self.rows)
        return (f'<div class="table-wrapper docutils container"><table class="docutils{" stacks" * self.stacks}">'
                f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n\n{self.note}\n")

    def markdown(self) -> str:
        """With formulas on one line."""
        rows = [self.header, ("---",) * len(self.header), *(map(_markdown, row) for row in self.rows)]
        lines = [" ".join(f"| {' | '.join(row)} |".split()) for row in rows]
        return "\n".join(lines) + (f"\n\n{self.note}" if self.note else "")


def _html(cell: Any) -> Markup:
    match cell:
        case Link(entry):
            anchor = re.sub(r"[^a-z0-9]+", "-", entry.lower())
            return Markup('<a href="claims.html#{}"><code>{}</code></a>').format(anchor, entry)
        case Strong(text):
            return Markup("<strong>{}</strong>").format(text)
        case tuple():
            return Markup("<br>").join(map(_html, cell))
    return typeset(cell)


def _markdown(cell: Any) -> str:
    match cell:
        case Link(entry):
            return f"[`{entry}`](../src/{all_entries()[entry].module.replace('.', '/')}.py)"
        case Strong(text):
            return f"**{text}**"
        case tuple():
            return "<br>".join(map(_markdown, cell))
    words = "".join(f"`{piece}`" if isinstance(piece, Markup) else _plain(piece if isinstance(piece, str) else
                    one_line(piece)) for piece in pieces(str(cell)))
    return words.replace("|", r"\|")


def _plain(text: str) -> str:
    """The text with nothing in it that Markdown takes for more."""
    return re.sub(r"([*<\\\[\]]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls this when it loads the extension."""
    app.add_config_value("navigation", {}, "env")
    app.connect("source-read", lambda app, page, source: source.append(filled(source.pop(), app.config.navigation)))
    app.connect("env-get-outdated", lambda app, env, *changes: [
        page for page in env.found_docs if COMMENT.search(Path(env.doc2path(page)).read_text())])
    app.connect("autodoc-process-docstring", _as_restructured_text)
    return {"parallel_read_safe": True}


def filled(text: str, navigation: dict[str, tuple[str, ...]]) -> str:
    """The text of a page for the site, with everything in it that is made."""
    def put(comment: re.Match[str]) -> str:
        kind, name = comment.groups()
        if kind == "file":
            return _file(name)
        if name == "navigation":
            return trees(navigation)
        return SITE[name]() if name in SITE else _table(name).html()

    return COMMENT.sub(put, text)


def written(text: str) -> str:
    """The text of a page for its file, with its tables and files."""
    def put(comment: re.Match[str]) -> str:
        kind, name = comment.groups()
        if kind == "made" and (name == "navigation" or name in SITE):
            return comment[0]
        content = _file(name) if kind == "file" else _table(name).markdown()
        return f"<!-- {kind}: {name} -->\n\n{content}\n\n<!-- end -->"

    return COMMENT.sub(put, text)


def _file(name: str) -> str:
    """A file as a block of code."""
    path = (HERE / name).resolve()
    return f"```{path.suffix.removeprefix('.')}\n{path.read_text().rstrip()}\n```"


def _table(name: str) -> Table:
    if name not in TABLES:
        raise IclabError(f"made must be one of navigation, {', '.join([*SITE, *TABLES])}, got {name!r}")
    return TABLES[name]()


def _as_restructured_text(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text with `code` and indented blocks of code; what else has a meaning is escaped."""
    blocks = re.split(r"\n(?:[ ]*\n)+", "\n".join(lines))
    for i, block in enumerate(blocks):
        if not block.startswith("    "):
            blocks[i] = re.sub(r"(`[^`]*`)|([*|\\]|_\b(?!\w))", lambda match: match[1] or f"\\{match[2]}", block)
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


def counts() -> Table:
    """How many parts of each kind have each verdict, in the reference of this release."""
    numbers = {kind: Counter[str]() for kind in KINDS}
    for claim in shipped_reference("full")["claims"]:
        for part in claim["parts"]:
            numbers[part["kind"]][part["verdict"]] += 1
    words = sorted({verdict for counter in numbers.values() for verdict in counter})
    return Table(("kind", *words), [(kind, *(counter[word] or "" for word in words))
                                     for kind, counter in numbers.items()], stacks=False)


def verdicts() -> Table:
    """Every part of every claim with its verdict and the check that decides, from the reference of this release."""
    return _judged(shipped_reference("full"))


def beyond() -> Table:
    """The same for the entries that run only when they are named."""
    return _judged(shipped_beyond())


def _judged(reference: dict[str, Any]) -> Table:
    return Table(("claim and part", "it says", "verdict", "what decides"), [
        ((Link(claim["id"]), f"{part['kind']}: {part['place']}"), part["says"], Strong(part["verdict"]),
         _deciding(part))
        for claim in reference["claims"] for part in claim["parts"]])


def _deciding(part: dict[str, Any]) -> str:
    unmet = [premise for premise in part["premises"] if not premise["met"]]
    if unmet:
        return f"premise not met: {unmet[0]['name']} must be {unmet[0]['required']}, is {unmet[0]['actual']}"
    rank = {"fails": 0, "inconclusive": 1, "holds": 2}
    check = min(part["checks"], key=lambda check: rank[check["verdict"]])
    numbers = [float("nan") if value is None else value for value in (check["measured"], *check["interval"])]
    value, low, high = (short(number) for number in numbers)
    return f"{check['name']}: {value} [{low}, {high}], must be {check['relation']} {check['threshold']:.3g}"


def ours() -> Table:
    """What we claim beyond the papers, with its verdict and the check that decides."""
    return Table(("claim", "it says", "verdict", "what decides"), [
        (Link(claim["id"]), part["says"], Strong(part["verdict"]), _deciding(part))
        for claim in shipped_reference("full")["claims"] for part in claim["parts"]
        if part["kind"] == "ours" and not part["tight"]])


def commands() -> Table:
    """Every command with what it does."""
    return Table(("command", ""), [(f"`iclab {name}`", text) for name, text in COMMANDS.items()])


def readings() -> Table:
    """Where the papers contradict themselves."""
    return Table(("paper", "place", "printed", "in iclab", "shown by"),
                  [(SOURCES[r.paper].key, r.place, r.printed, r.here, Link(r.evidence) if r.evidence else "")
                   for r in READINGS])


def notation() -> Table:
    """The table of symbols."""
    return Table(("symbol", "field", "meaning", "paper"),
                  [(s.symbol, ", ".join(f"`{name}`" for name in s.fields), s.meaning, s.paper) for s in NOTATION])


def laws() -> Table:
    """Every law with its constant."""
    fitted = shipped_constants()
    rows = []
    for law in LAWS:
        c = fitted.get(law.key)
        range_ = "not fitted" if c is None else f"{c.value:.3g} ({c.low:.3g} to {c.high:.3g})"
        rows.append((law.quantity, f"c * {law.formula}", range_, law.measured_at, Link(law.entry) if law.entry else ""))
    return Table(("quantity", "law", "c (single settings)", "reached", "fitted in"), rows)


def speed() -> Table:
    """What `iclab bench` measured once."""
    recorded = json.loads((HERE.parent / "benchmarks" / "recorded.json").read_text())
    shown = {"eager": "eager PyTorch", "compile": "`torch.compile`", "single": "iclab, one model",
             "independent_32": "iclab, 32 models", "shared_32": "iclab, 32 models on the same batches"}
    rows = [(words, recorded["microseconds_per_model_step"][name],
             *(recorded[f"speedup_vs_{reference}"].get(name, "") for reference in ("eager", "compile")))
            for name, words in shown.items()]
    header = ("", "\u00b5s per model-step", "times faster than eager", "than `torch.compile`")
    return Table(header, rows, stacks=False, note=f"*{recorded['machine']}, median of {recorded['rounds']} rounds.*")


def index() -> Table:
    """Every public name in one line."""
    return Table(("name", ""), [(f"`{name}`", _summary(getattr(iclab, name))) for name in sorted(iclab.__all__)])


def _summary(public: Any) -> str:
    return " ".join((inspect.getdoc(public) or "").split("\n\n")[0].split())


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


SITE = {"claims": claims, "names": names}
TABLES = {"counts": counts, "ours": ours, "commands": commands, "verdicts": verdicts, "beyond": beyond,
          "readings": readings, "notation": notation, "laws": laws, "speed": speed, "index": index}

if __name__ == "__main__":
    for page in sorted(HERE.glob("*.md")):
        page.write_text(written(page.read_text()))
