"""How objects show themselves in a notebook: rows of tokens, small tables, line charts, all in plain HTML and SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#edc948", "#76b7b2", "#ff9da7", "#9c755f")
"""For patterns, in turn."""
CELL = "display:inline-block;min-width:2.2em;padding:.15em .3em;margin:1px;border-radius:4px;text-align:center;"
WIDTH, HEIGHT, LEFT = 360, 110, 56
"""Of a chart: its size, and the room for the numbers beside it."""


class Token(NamedTuple):
    """A token as a notebook shows it: two lines of text, a colour by its kind, and whether it is marked as poisoned."""

    top: str
    bottom: str
    kind: int | None = None
    poisoned: bool = False


def tokens(items: Sequence[Token], caption: str) -> str:
    """A row of coloured tokens; poisoned ones have a dashed red border and say so when pointed at."""
    cells = []
    for item in items:
        colour = "#8882" if item.kind is None else COLOURS[item.kind % len(COLOURS)] + "44"
        border = "2px dashed #d62728" if item.poisoned else "2px solid transparent"
        title = ' title="poisoned"' if item.poisoned else ""
        cells.append(f'<span style="{CELL}background:{colour};border:{border}"{title}>{escape(item.top)}<br>'
                     f"<b>{escape(item.bottom)}</b></span>")
    return f'<div style="line-height:1.25">{"".join(cells)}<div style="opacity:.7">{escape(caption)}</div></div>'


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table of texts."""
    def line(cells: Sequence[Any], tag: str) -> str:
        texts = "".join(f'<{tag} style="text-align:left">{escape(str(cell))}</{tag}>' for cell in cells)
        return f"<tr>{texts}</tr>"

    return f"<table>{line(header, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


def chart(x: Sequence[float], y: Sequence[float], label: str) -> str:
    """A line through the finite points, with its first and last value and the ends of both axes."""
    points = [(float(a), float(b)) for a, b in zip(x, y, strict=True) if math.isfinite(b)]
    if len(points) < 2:
        return ""
    (left, right), (low, high) = (points[0][0], points[-1][0]), (min(b for _, b in points), max(b for _, b in points))
    across, up = (right - left) or 1.0, (high - low) or 1.0
    path = " ".join(f"{LEFT + (a - left) / across * (WIDTH - LEFT - 10):.1f},{8 + (high - b) / up * (HEIGHT - 30):.1f}"
                    for a, b in points)
    bottom = HEIGHT - 6
    texts = ((LEFT - 4, 14, "end", f"{high:.3g}"), (LEFT - 4, HEIGHT - 22, "end", f"{low:.3g}"),
             (LEFT, bottom, "start", f"{left:g}"), (WIDTH - 10, bottom, "end", f"{right:g}"),
             (WIDTH / 2, bottom, "middle", label))
    words = "".join(f'<text x="{at}" y="{down}" text-anchor="{anchor}" font-size="11" fill="currentColor">'
                    f"{escape(text)}</text>" for at, down, anchor, text in texts)
    return (f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{escape(label)}"><polyline points="{path}" '
            f'fill="none" stroke="{COLOURS[0]}" stroke-width="1.5"/>{words}</svg>')
