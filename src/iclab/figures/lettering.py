"""Labels of figures: formulas typeset by Matplotlib, long ones on several lines, swept fields in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from iclab.core.formulas import GREEK, Node, one_line, pieces

WIDTH = 0.56
"""Mean width of a letter in a label, as a multiple of its size."""
_COMMANDS = {"<=": r"\leq ", ">=": r"\geq ", "!=": r"\neq ", "+-": r"\pm ", "->": r"\to ", "*": r"\cdot ",
             "~": r"\sim ", ",": r",\, "}


def label(text: str, letters: float = 10_000) -> str:
    """A label with its formulas as Matplotlib's mathtext, on lines of about this many letters."""
    lines, room = [""], letters
    for words, drawn in _words(text):
        if lines[-1] and len(words.rstrip()) > room:
            lines, room = [*lines[:-1], lines[-1].rstrip(), ""], letters
        lines[-1] += drawn
        room -= len(words)
    return "\n".join(lines).rstrip()


def fitting(text: str, inches: float, size: float) -> str:
    """A label of this font size on lines of at most this length."""
    return label(text, max(8, inches * 72 / (WIDTH * size)))


def inches_of(text: str, size: float) -> float:
    """About how wide a label of this font size is on one line."""
    return sum(len(words) for words, _ in _words(text)) * WIDTH * size / 72


def _words(text: str) -> list[tuple[str, str]]:
    """What is not to be broken, with the space after it: as it reads, and as it is written for Matplotlib."""
    words: list[tuple[str, str]] = []
    glued = ""  # a formula or word that goes on without a space
    drawn = ""
    for piece in pieces(text):
        if isinstance(piece, tuple):
            glued, drawn = glued + one_line(piece), f"{drawn}${_mathtext(piece)}$"
            continue
        for part in re.findall(r"\s*\S*\s?", str(piece)):
            glued, drawn = glued + part, drawn + part.replace("$", r"\$")
            if part[-1:].isspace():
                words.append((glued, drawn))
                glued = drawn = ""
    return [*words, (glued, drawn)] if glued else words


def _mathtext(nodes: Sequence[Node]) -> str:
    return "".join(_element(node) for node in nodes)


def _element(node: Node) -> str:
    if node.kind == "number":
        return node.text.replace(",", "{,}")
    if node.kind in ("operator", "sign"):
        return _COMMANDS.get(node.text, node.text)
    if node.kind == "times":
        return r"\,"
    if node.kind == "power":
        return f"{{{_mathtext(node.parts[0])}}}^{{{_mathtext(node.parts[1])}}}"
    if node.kind == "group":
        opening, closing = (mark.replace("{", r"\{").replace("}", r"\}") for mark in (node.text, node.marks))
        return f"{opening}{_mathtext(node.parts[0])}{closing}"
    if node.kind == "function" and node.text == "sqrt":
        return rf"\sqrt{{{_mathtext(node.parts[0])}}}"
    if node.kind == "function":
        return rf"\mathrm{{{GREEK.get(node.text, node.text)}}}\,"
    return _name(node)


def _name(node: Node) -> str:
    sub = node.sub if len(node.sub) == 1 or node.sub.isdigit() else rf"\mathrm{{{node.sub}}}"
    below = f"_{{{sub}}}" if node.sub else ""
    above = "^{" + node.marks.replace("'", r"\prime ") + "}" if node.marks else ""
    return f"{node.text}{below}{above}"


def field_words(path: str) -> str:
    """A swept field in words: `outlier fraction (training)` for `prompts.outlier_fraction`."""
    part, _, field = path.partition(".")
    where = {"prompts": "training", "test": "test", "model": "model", "training": "training"}.get(part, part)
    return f"{field.replace('_', ' ')} ({where})" if field else path.replace("_", " ")
