"""The page `report.html`: what was found in ten lines, every entry by paper, folded, then tables across entries."""

from __future__ import annotations

import base64
import json
import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata, resources
from typing import Any

import jinja2
from markupsafe import Markup

from iclab.core.formulas import spelled
from iclab.figures.recipes import Plot
from iclab.lab.claims import KINDS, short
from iclab.lab.outcomes import Finished
from iclab.notation import NOTATION
from iclab.papers.readings import READINGS
from iclab.papers.references import OURS, SOURCES, Paper
from iclab.report import growth, opening, summary
from iclab.report.mathml import typeset
from iclab.theory import shipped_constants
from iclab.theory.all import LAWS

PACKAGES = ("iclab", "jax", "jaxlib", "numba", "numpy", "optax", "scikit-learn", "scipy", "matplotlib", "polars")
UNCONFIRMED = ("fails", "inconclusive", "outside")
"""Verdicts of parts that the section on disagreements lists, in its order."""
SPEAKERS = {"papers": "the paper says, in our words", "ours": "we asked whether"}
"""Whose statements its two tables hold, and the heading above them."""


class Page:
    """The page of one run; each entry's part is rendered only once, however often the page is written."""

    def __init__(self, scale: str, base_seed: int = 0, claims_file: str = "claims.json"):
        self.scale, self.claims_file = scale, claims_file
        self.options = f"--scale {scale}" + (f" --seed {base_seed}" if base_seed else "")
        self._articles: dict[tuple[str, bool], Markup] = {}

    @cached_property
    def _environment(self) -> jinja2.Environment:
        loader = jinja2.FunctionLoader(lambda name: resources.files("iclab.report").joinpath(name).read_text())
        environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=loader)
        environment.filters |= {
            "data_url": lambda text: "data:text/csv;base64," + base64.b64encode(text.encode()).decode(),
            "label": summary.label, "math": typeset, "number": number, "of_paper": summary.of_paper,
            "pretty": lambda value: json.dumps(value, indent=2), "spelled": spelled, "svg": inline_svg,
            "thumbnail": thumbnail, "verdict_words": summary.verdict_words,
        }
        environment.globals |= {"symbols": summary.SYMBOLS, "kinds": KINDS,
                                "who_says": lambda item: opening.who_says(item, SOURCES)}
        return environment

    def render(self, finished: Sequence[Finished], entries: int | None = None, playground: bool = False,
               opened: str | None = None) -> str:
        """The whole page as text, with everything from a spec escaped. `entries` is how many there are in all;
        `playground` says whether `playground.html` lies beside the page. `opened` is the only entry that was run: it
        is not folded, and papers without entries are left out."""
        judged = [item for item in finished if item.outcome.claim]
        claims = [item.outcome.claim for item in finished if item.outcome.claim]
        others = {item.entry.room: Paper(item.entry.room, item.entry.room, "Not from the five papers.")
                  for item in finished if item.entry.room not in SOURCES | OURS}
        papers = [(source, sorted((item for item in finished if item.entry.room == name),
                                  key=lambda item: item.outcome.claim is None))
                  for name, source in (SOURCES | OURS | others).items()]
        totals = summary.totals_by_group(claims)
        unconfirmed = [item for verdict in UNCONFIRMED for item in summary.parts_of(claims)
                       if item.part.verdict == verdict and item.group != "bound"]
        return self._environment.get_template("page.html.jinja").render(
            scale=self.scale, options=self.options, entries=entries, playground=playground, finished=finished,
            judged=judged, claims=claims, totals=totals,
            opening=opening.opening_lines(finished, self.scale, self.options, self.claims_file),
            first_totals=summary.totals_by_group(claims, first=True),
            columns=summary.columns(totals), groups=summary.GROUPS, meanings=summary.MEANINGS,
            papers=[(source, items) for source, items in papers if items or (source.references and opened is None)],
            changed_rules=sum(bool(part.earlier) for claim in claims for part in claim.parts),
            growth=growth.of_entries(finished), readings=READINGS, sources=SOURCES,
            unconfirmed=[(whose, says, [item for item in unconfirmed if (item.group == "ours") == (whose == "ours")])
                         for whose, says in SPEAKERS.items()],
            ids={item.entry.id for item in finished},
            article=lambda item: self._article(item, item.entry.id == opened),
            about=about(), notation=NOTATION, shipped=shipped_constants(),
            laws=[(law, fitted, item.entry.id) for law in LAWS for item in finished
                  for fitted in item.outcome.constants if fitted.law == law.key])

    def _article(self, item: Finished, is_open: bool) -> Markup:
        key = (item.entry.id, is_open)
        if key not in self._articles:
            html = self._environment.get_template("entry.html.jinja").render(
                item=item, options=self.options, numbers=numbers(item), is_open=is_open)
            self._articles[key] = Markup(html)
        return self._articles[key]


def numbers(item: Finished) -> str:
    """What was measured, without the sentences of the parts, which stand beside their verdicts."""
    claim = item.outcome.claim
    sentences = " ".join(part.sentence for part in claim.parts) if claim else ""
    return item.outcome.measured.removeprefix(sentences).strip()


def number(value: float) -> str:
    """Three significant digits, without powers of ten up to a million; `none` if it is not a number."""
    if value != value:
        return "none"
    if 1000 <= abs(value) < 1e6:
        return f"{float(f'{value:.3g}'):,.0f}"
    return short(value)


def inline_svg(plot: Plot) -> Markup:
    """A plot for the page: its ids unique there, without Matplotlib's metadata."""
    return Markup(re.sub(r"<metadata>.*?</metadata>", "", own_ids(plot.svg, plot.name), flags=re.DOTALL))


def own_ids(svg: str, name: str) -> str:
    """An SVG whose ids are unique on the page."""
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)


def thumbnail(plot: Plot) -> Markup:
    """A small copy of a plot that is on the page: it only refers to it, so it costs no bytes."""
    box = re.search(r'viewBox="([-\d. ]+)"', plot.svg)
    if box is None or 'id="figure_1"' not in plot.svg:
        return Markup("")
    return Markup('<svg class="thumbnail" viewBox="{}" preserveAspectRatio="xMinYMin slice" role="img" '
                  'aria-label="{}"><use href="#{}-figure_1"/></svg>').format(box[1], spelled(plot.title), plot.name)


def about() -> dict[str, Any]:
    """Date, machine and versions."""
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
                       f"Python {platform.python_version()}",
            "versions": [(name, _version(name)) for name in PACKAGES]}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
