"""Text with formulas as MathML, which browsers typeset offline, as the contents of SVG text, or in Unicode."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from iclab.report.formulas import GREEK, SIGNS, Node, Nodes, pieces


def typeset(text: object) -> Markup:
    """A text with its formulas as MathML, all else escaped; numbers and the like as their text."""
    return Markup("").join(_html(piece) for piece in pieces(str(text)))


def _html(piece: str | Nodes | Markup) -> Markup:
    if isinstance(piece, Markup):
        return Markup("<code>{}</code>").format(str(piece))
    if isinstance(piece, str):
        return escape(piece)
    return Markup('<math alttext="{}">{}</math>').format(one_line(piece), _mathml(piece))


def _mathml(nodes: Sequence[Node]) -> Markup:
    return Markup("").join(_element(node) for node in nodes)


def _row(nodes: Sequence[Node]) -> Markup:
    return _element(nodes[0]) if len(nodes) == 1 else Markup("<mrow>{}</mrow>").format(_mathml(nodes))


def _element(node: Node) -> Markup:
    if node.kind == "number":
        return Markup("<mn>{}</mn>").format(node.text)
    if node.kind in ("operator", "sign"):
        return Markup("<mo>{}</mo>").format(SIGNS.get(node.text, node.text))
    if node.kind == "times":
        return Markup("<mo>\u2062</mo>")
    if node.kind == "power":
        return Markup("<msup>{}{}</msup>").format(_row(node.parts[0]), _row(node.parts[1]))
    if node.kind == "group":
        bracket = '<mo stretchy="false">{}</mo>'  # formulas are one line high, and few fonts stretch well
        return Markup(f"<mrow>{bracket}{{}}{bracket}</mrow>").format(node.text, _mathml(node.parts[0]), node.marks)
    if node.kind == "function" and node.text == "sqrt":
        return Markup("<msqrt>{}</msqrt>").format(_mathml(node.parts[0]))
    if node.kind == "function":
        return Markup("<mi>{}</mi><mo>\u2061</mo>").format(GREEK.get(node.text, node.text))
    base = Markup("<mi>{}</mi>").format(node.text)
    sub = Markup("<mn>{}</mn>" if node.sub.isdigit() else "<mi>{}</mi>").format(node.sub)
    marks = Markup("<mo>{}</mo>").format(node.marks.replace("'", "′"))
    if node.sub and node.marks:
        return Markup("<msubsup>{}{}{}</msubsup>").format(base, sub, marks)
    if node.sub:
        return Markup("<msub>{}{}</msub>").format(base, sub)
    return Markup("<msup>{}{}</msup>").format(base, marks) if node.marks else base


def spelled(text: object) -> str:
    """A text with its formulas in Unicode on one line, `κ_a′ ≥ β^−2`: for attributes, which hold no elements."""
    return "".join(piece if isinstance(piece, str) else one_line(piece) for piece in pieces(str(text)))


def one_line(nodes: Sequence[Node]) -> str:
    """A formula in Unicode."""
    words = "".join(_word(node) for node in nodes)
    return re.sub(r"(log|exp|cos|min|max|poly|O|Θ|Ω) (?=[({])", r"\1", words)


def _word(node: Node) -> str:
    if node.kind == "operator":
        sign = SIGNS.get(node.text, node.text)
        return f"{sign} " if sign == "," else sign if sign == "/" else f" {sign} "
    if node.kind == "sign":
        return SIGNS.get(node.text, node.text)
    if node.kind == "times":
        return " "
    if node.kind == "power":
        exponent = one_line(node.parts[1])
        return f"{one_line(node.parts[0])}^{exponent if len(exponent) < 3 else f'({exponent})'}"
    if node.kind == "group":
        return f"{node.text}{one_line(node.parts[0])}{node.marks}"
    if node.kind == "function":
        return f"√({one_line(node.parts[0])})" if node.text == "sqrt" else f"{GREEK.get(node.text, node.text)} "
    return f"{node.text}{'_' if node.sub else ''}{node.sub}{node.marks}".replace("'", "′")


def svg_text(text: str) -> Markup:
    """The same as the contents of an SVG text element, with raised and lowered spans."""
    spans: list[tuple[str, float, bool]] = []
    for piece in pieces(text):
        if isinstance(piece, str):
            spans.append((str(piece), 0.0, False))
        else:
            _spans(piece, 0.0, spans.append)
    if all(height == 0 and not slanted for _, height, slanted in spans):
        return escape("".join(letters for letters, _, _ in spans))
    result, level = Markup(""), 0.0
    for letters, height, slanted in spans:
        size = 0.72 if height else 1.0
        shift = Markup(' dy="{}em"').format(f"{(level - height) / size:.3g}") if height != level else ""
        small = Markup(' style="font-size: 72%"') if height else ""
        slant = Markup(' font-style="italic"') if slanted else ""
        result += Markup("<tspan{}{}{}>{}</tspan>").format(shift, small, slant, letters)
        level = height
    return result


def _spans(nodes: Sequence[Node], height: float, put: Callable[[tuple[str, float, bool]], None]) -> None:
    for node in nodes:
        if node.kind == "power":
            _spans(node.parts[0], height, put)
            _spans(node.parts[1], height + 0.35, put)
        elif node.kind == "group" or (node.kind == "function" and node.parts):
            put(("√(" if node.kind == "function" else node.text, height, False))
            _spans(node.parts[0], height, put)
            put((node.marks or ")", height, False))
        elif node.kind == "name":
            put((node.text, height, True))
            if node.marks:
                put((node.marks.replace("'", "′"), height, False))
            if node.sub:
                put((node.sub, height - 0.2, len(node.sub) == 1 and node.sub.isalpha()))
        else:
            put((_word(node), height, False))
