"""The page `report.html`: claims first, then every entry by paper, disagreements, theory, notation, versions."""

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

from iclab.lab.claims import WORST_FIRST, short
from iclab.lab.outcomes import Finished
from iclab.notation import NOTATION
from iclab.papers.readings import READINGS
from iclab.papers.references import SOURCES, Paper
from iclab.theory import shipped_constants
from iclab.theory.all import LAWS

PACKAGES = ("iclab", "jax", "jaxlib", "numba", "numpy", "optax", "scikit-learn", "scipy", "matplotlib", "polars")


class Page:
    """The page of one run; each entry's part is rendered only once, however often the page is written."""

    def __init__(self, scale: str, base_seed: int = 0):
        self.scale = scale
        self.options = f"--scale {scale}" + (f" --seed {base_seed}" if base_seed else "")
        self._parts: dict[str, Markup] = {}

    @cached_property
    def _environment(self) -> jinja2.Environment:
        loader = jinja2.FunctionLoader(lambda name: resources.files("iclab.report").joinpath(name).read_text())
        environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, loader=loader)
        filters = environment.filters
        filters["data_url"] = lambda text: "data:text/csv;base64," + base64.b64encode(text.encode()).decode()
        filters["number"] = short
        filters["pretty"] = lambda value: json.dumps(value, indent=2)
        filters["safe_svg"] = lambda plot: Markup(own_ids(plot.svg, plot.name))
        return environment

    def render(self, finished: Sequence[Finished], entries: int | None = None, playground: bool = False) -> str:
        """The whole page as text, with everything from a spec escaped. `entries` is how many there are in all;
        `playground` says whether `playground.html` lies beside the page."""
        claims = [(item.entry.id, item.outcome.claim) for item in finished if item.outcome.claim]
        ids = {item.entry.id for item in finished}
        others = {item.entry.paper: Paper(item.entry.paper, item.entry.paper, "Not from the five papers.")
                  for item in finished if item.entry.paper not in SOURCES}
        papers = [(source, [item for item in finished if item.entry.paper == name])
                  for name, source in (SOURCES | others).items()]
        return self._environment.get_template("page.html.jinja").render(
            scale=self.scale, options=self.options, entries=entries, playground=playground, finished=finished,
            claims=claims, papers=[(source, items) for source, items in papers if items],
            counts=[(verdict, sum(claim.verdict == verdict for _, claim in claims)) for verdict in WORST_FIRST[::-1]],
            disagreements=[item for item in finished if item.outcome.claim and item.outcome.claim.verdict != "holds"],
            readings=READINGS, sources=SOURCES, ids=ids, article=self._article, about=about(), notation=NOTATION,
            laws=[(law, fitted, item.entry.id) for law in LAWS for item in finished
                  for fitted in item.outcome.constants if fitted.law == law.key], shipped=shipped_constants())

    def _article(self, item: Finished) -> Markup:
        if item.entry.id not in self._parts:
            html = self._environment.get_template("entry.html.jinja").render(item=item, options=self.options)
            self._parts[item.entry.id] = Markup(html)
        return self._parts[item.entry.id]


def own_ids(svg: str, name: str) -> str:
    """An SVG whose ids are unique on the page."""
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)


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
