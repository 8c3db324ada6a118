"""The page `report.html`: claims first, then every entry with its picture, words, settings and data."""

from __future__ import annotations

import base64
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata, resources
from typing import Any

import jinja2

from iclab.papers.entries import Entry, Outcome


@dataclass(frozen=True)
class Finished:
    """An entry that has been run."""

    entry: Entry
    outcome: Outcome
    seconds: float


def page(finished: Sequence[Finished], scale: str) -> str:
    """The whole page as text; everything that came from a spec is escaped."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["data_url"] = lambda text: "data:text/csv;base64," + base64.b64encode(text.encode()).decode()
    environment.filters["number"] = _number
    environment.filters["pretty"] = lambda value: json.dumps(value, indent=2)
    environment.filters["picture"] = lambda plot: jinja2.utils.markupsafe.Markup(plot.svg)
    template = resources.files("iclab.report").joinpath("page.html.jinja").read_text()
    return environment.from_string(template).render(finished=finished, scale=scale, about=_about())


def _number(value: float) -> str:
    """Four decimals, or powers of ten for what they would show as zero."""
    return f"{value:.1e}" if 0 < abs(value) < 5e-5 else f"{value:.4f}"


def _about() -> dict[str, Any]:
    packages = ("iclab", "jax", "numpy", "optax")
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
            "versions": ", ".join(f"{name} {metadata.version(name)}" for name in packages)}
