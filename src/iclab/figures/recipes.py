"""Plots as recipes: the name of a drawing and its data, from which any format is made, fresh or read from a store."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from iclab.core.errors import IclabError, did_you_mean, require
from iclab.core.files import write_whole
from iclab.figures.style import style

DRAWINGS = {"curves": "plots:draw_curves", "gates": "bars:draw_gates", "heat": "heat:draw_heat",
            "verdicts": "heat:draw_verdicts", "paths": "paths:draw_paths", "phase": "phase:draw_phase"}
"""Every drawing: the module of `iclab.figures` and its function, `(title, **data) -> Figure`."""
FORMATS = ("svg", "pdf", "png", "csv")
"""Formats that a plot can be saved in."""


def require_name(kind: str, name: Any) -> None:
    """Refuse a name that is not a valid file name or that leads to another folder."""
    plain = isinstance(name, str) and re.fullmatch(r"\w[\w.+-]{,99}", name, re.ASCII) is not None
    require(plain, f"name of the {kind}", name,
            "be at most 100 letters, digits and . _ + - only, and begin with a letter or digit")


@dataclass(frozen=True)
class Plot:
    """A picture as SVG, its numbers as CSV, and the recipe from which it is drawn again."""

    name: str
    title: str
    caption: str = field(repr=False)
    svg: str = field(repr=False)
    csv: str = field(repr=False)
    drawing: str = ""
    """A name in `DRAWINGS`; empty for a picture that another program made."""
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What the drawing reads, as JSON values."""

    def __post_init__(self) -> None:
        require_name("plot", self.name)

    def figure(self) -> Any:
        """The plot as a Matplotlib figure, to be changed or put into a document."""
        with style():
            figure = self._drawn()
            figure.draw_without_rendering()  # ticks and layout are made in this style, not in that of a later caller
        return figure

    def save(self, path: str | Path) -> Path:
        """Write the plot as .svg, .pdf or .png, or its numbers as .csv; the name's ending decides."""
        path = Path(path)
        kind = path.suffix[1:].lower()
        require(kind in FORMATS, "path", str(path), f"end in {', '.join(f'.{name}' for name in FORMATS)}")
        write_whole(path, self._bytes(kind))
        return path

    def write(self, folder: Path, formats: Sequence[str] = ()) -> list[Path]:
        """Write the SVG, the numbers and the other formats into a folder, under the plot's name; what another program
        drew has no other formats."""
        kinds = dict.fromkeys(["svg", "csv", *(formats if self.drawing else ())])
        return [self.save(folder / f"{self.name}.{kind}") for kind in kinds]

    def _bytes(self, kind: str) -> bytes:
        if kind in ("svg", "csv"):
            return (self.svg if kind == "svg" else self.csv).encode()
        with style():
            return _written(self._drawn(), kind)

    def _drawn(self) -> Any:
        require(self.drawing in DRAWINGS, f"drawing of plot {self.name!r}", self.drawing,
                f"be one of {', '.join(DRAWINGS)} to be drawn again")
        return _draw(self.drawing, self.title, self.data)

    def _repr_html_(self) -> str:
        """In a notebook: the picture and what it shows."""
        return f"<figure>{self.svg}<figcaption>{escape(self.caption)}</figcaption></figure>"


def read_formats(text: str) -> list[str]:
    """The formats in a list such as `pdf,png`."""
    names = [name.strip().lower() for name in text.split(",")]
    for name in names:
        if name not in FORMATS:
            raise IclabError(f"formats must be some of {', '.join(FORMATS)}, got {name!r}{did_you_mean(name, FORMATS)}")
    return names


def recipe(name: str, title: str, caption: str, drawing: str, data: Mapping[str, Any], numbers: str) -> Plot:
    """A plot by one of the `DRAWINGS`, drawn; `numbers` is its CSV text."""
    values = _plain(data)
    with style():
        svg = _written(_draw(drawing, title, values), "svg").decode()
    return Plot(name, title, caption, svg[svg.index("<svg"):], numbers, drawing, values)


def _draw(drawing: str, title: str, data: Mapping[str, Any]) -> Any:
    module, _, function = DRAWINGS[drawing].partition(":")
    draw: Callable[..., Any] = getattr(import_module(f"iclab.figures.{module}"), function)
    return draw(title, **data)


def _plain(value: Any) -> Any:
    """The value as JSON has it; None stands for a number that is not finite."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _written(figure: Any, kind: str) -> bytes:
    """The figure as a file of this kind, the same on every day."""
    buffer, dates = io.BytesIO(), {"svg": "Date", "pdf": "CreationDate"}
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")  # to save it would else lay it out twice more
    figure.savefig(buffer, format=kind, metadata={dates[kind]: None} if kind in dates else {})
    return buffer.getvalue()


def to_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as CSV text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()
