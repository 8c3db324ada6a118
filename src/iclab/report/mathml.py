"""Text with formulas as MathML, which browsers typeset offline."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from iclab.core.formulas import GREEK, SIGNS, Node, Nodes, one_line, pieces


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
