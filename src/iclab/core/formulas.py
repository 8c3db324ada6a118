"""Formulas in our plain notation (`kappa_a'`, `beta^-2`, `(1 - p_a)^-1`, `sqrt(M)`), recognised in sentences.

    text      a sentence with formulas in it
    formula   term (relation or sign, term)*
    term      factor (/ or * or a space, factor)*
    factor    (number | name | |formula| | (formula) | sqrt(formula) | log factor) [^exponent]
    name      a Greek word or a letter, with _subscript, digits, primes and a star: mu_j, M1, kappa_a', lam*

What is no formula stays text and is escaped. A lone letter counts only if it is one of `LETTERS`, those of the
notation; others, and numbers, only beside an operator: `f / (1/2 - f)^2`. Text between backticks is code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

from markupsafe import Markup

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "eps": "ε", "zeta": "ζ", "eta": "η",
    "theta": "θ", "kappa": "κ", "lambda": "λ", "lam": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ",
    "sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Theta": "Θ", "Omega": "Ω",
    "Delta": "Δ", "Sigma": "Σ",
}
LETTERS = "dKLMTUVBmq"
"""Letters that are symbols wherever they stand alone, besides the article and the numbering `(a)`, `figure 3 B`."""
FUNCTIONS = ("log", "exp", "cos", "min", "max", "poly", "O", "Theta", "Omega")
SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "+-": "±", "->": "→", "-": "−", "*": "·", "~": "∼"}
RELATIONS = ("<=", ">=", "!=", "=", "<", ">", "~")

_NAME = re.compile(r"(?:(?P<greek>" + "|".join(sorted(GREEK, key=len, reverse=True)) + r")(?P<number>\d{0,2})"
                   r"|(?P<indexed>[MSvx])(?P<index>\d{1,2})|(?P<letter>[A-Za-z]))"
                   r"(?:_(?P<sub>[A-Za-z0-9]{1,6}))?(?P<primes>'{1,2}(?!\w))?(?P<star>\*(?![\w(]))?"
                   r"(?!\w|'(?!s\b)|\.\w)")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?(?![\w.]*[A-Za-z_])")
_OPERATOR = re.compile(r" (<=|>=|!=|\+-|[-+=<>~]) |([-+=])")
_FUNCTION = re.compile(rf"({'|'.join(FUNCTIONS)}|sqrt)(?=[({{ ])")
_NUMBERED = re.compile(r"(?:theorem|corollary|proposition|remark|figure|table|panel|equation|section|condition|step|"
                       r"layer|appendix|eq\.|fig\.)s?\s[\dA-Z,.\s]*(?:and\s)?$", re.IGNORECASE)
_LONE = re.compile(r"\([a-zA-Z]\)")


class Node(NamedTuple):
    """A piece of a formula."""

    kind: Literal["name", "number", "operator", "sign", "power", "group", "function", "times"]
    text: str = ""
    sub: str = ""
    marks: str = ""
    """Primes and stars of a name; the closing bracket of a group."""
    parts: tuple[tuple[Node, ...], ...] = ()
    """Of a power: base and exponent; of a group: what it holds."""


Nodes = tuple[Node, ...]


class _Parser:
    """Recursive descent over one text; every method returns what it read and where it stopped, or None."""

    def __init__(self, text: str):
        self.text = text

    def formula(self, at: int, inner: bool = False) -> tuple[Nodes, int] | None:
        """Terms between signs and relations; `inner` allows a sign in front and signs without spaces."""
        nodes: Nodes = ()
        sign = re.compile(r"\+-|[-+]").match(self.text, at)
        if sign and (inner or sign[0] == "+-" or self.text[sign.end():sign.end() + 1].isalpha()):
            nodes, at = (Node("sign", sign[0]),), sign.end()
        term = self.term(at, inner)
        if term is None:
            return None
        nodes, at = nodes + term[0], term[1]
        while operator := _OPERATOR.match(self.text, at):
            term = self.term(operator.end(), inner)
            if term is None:
                negative = re.compile(r" ([=<>~]|<=|>=) -(?=[\d.])").match(self.text, at)
                term = self.term(negative.end(), inner) if negative else None
                if negative is None or term is None:
                    break
                nodes += (Node("operator", negative[1]), Node("sign", "-"))
            else:
                nodes += (Node("operator", operator[1] or operator[2]),)
            nodes, at = nodes + term[0], term[1]
        return nodes, at

    def term(self, at: int, inner: bool) -> tuple[Nodes, int] | None:
        """Factors."""
        first = self.factor(at)
        if first is None:
            return None
        nodes, at = first
        while True:
            operator = re.compile(r" ([/*]) |([/*])").match(self.text, at)
            if operator:
                following = self.factor(operator.end())
                if following is None:
                    return nodes, at
                nodes, at = (*nodes, Node("operator", operator[1] or operator[2]), *following[0]), following[1]
            elif self.text[at:at + 1] == " " and (following := self.factor(at + 1)) and self._multiplied(
                    nodes[-1], following, at + 1):
                nodes, at = (*nodes, Node("times"), *following[0]), following[1]
            else:
                return nodes, at

    def _multiplied(self, before: Node, following: tuple[Nodes, int], at: int) -> bool:
        """Whether a factor after a space is a product with the one before it, rather than the next word."""
        nodes = following[0]
        head = nodes[0].parts[0][0] if nodes[0].kind == "power" else nodes[0]
        if head.kind == "number" or (_LONE.match(self.text, at) and nodes[0].kind == "group"):
            return False
        if head.kind == "group":
            return not _has_relation(head) and (nodes[0].kind == "power" or _is_sure(nodes))
        if head.kind == "name" and not _is_sure((head,)):
            return head.text not in ("a", "A", "I") and before.kind != "number"
        return True

    def factor(self, at: int) -> tuple[Nodes, int] | None:
        """A base and perhaps a power."""
        base = self.base(at)
        if base is None:
            return None
        nodes, at = base
        power = re.compile(r"\^").match(self.text, at)
        exponent = self.exponent(power.end()) if power else None
        if exponent is not None:
            return (*nodes[:-1], Node("power", parts=((nodes[-1],), exponent[0]))), exponent[1]
        return nodes, at

    def exponent(self, at: int) -> tuple[Nodes, int] | None:
        """-2, T, (-2/3)."""
        if self.text[at:at + 1] == "(":
            inside = self.formula(at + 1, inner=True)
            if inside and self.text[inside[1]:inside[1] + 1] == ")":
                return inside[0], inside[1] + 1
            return None
        sign: Nodes = (Node("sign", "-"),) if self.text[at:at + 1] == "-" else ()
        base = self._simple(at + len(sign))
        return None if base is None else ((*sign, *base[0]), base[1])

    def base(self, at: int) -> tuple[Nodes, int] | None:
        """A number, name, function or bracket."""
        function = _FUNCTION.match(self.text, at)
        if function and (at == 0 or not re.match(r"[\w.]", self.text[at - 1])):
            name, at_argument = function[1], function.end()
            brackets = {"(": ")", "{": "}"}
            if self.text[at_argument] in brackets:
                argument = self.group(at_argument, self.text[at_argument], brackets[self.text[at_argument]])
            elif name == "log":
                argument = self.factor(at_argument + 1)
            else:
                argument = None
            if argument is not None:
                if name == "sqrt":
                    return (Node("function", "sqrt", parts=(argument[0][0].parts[0],)),), argument[1]
                return (Node("function", name), *argument[0]), argument[1]
        if self.text[at:at + 1] == "(":
            return None if _LONE.match(self.text, at) else self.group(at, "(", ")")
        if self.text[at:at + 1] == "|":
            return self.group(at, "|", "|")
        return self._simple(at)

    def group(self, at: int, opening: str, closing: str) -> tuple[Nodes, int] | None:
        """A bracket with one formula or several between commas."""
        nodes: Nodes = ()
        at += 1
        while inside := self.formula(at, inner=True):
            nodes, at = nodes + inside[0], inside[1]
            if self.text[at:at + 1] == closing:
                return (Node("group", opening, marks=closing, parts=(nodes,)),), at + 1
            if self.text[at:at + 2] != ", " or opening == "|":
                break
            nodes, at = (*nodes, Node("operator", ",")), at + 2
        return None

    def _simple(self, at: int) -> tuple[Nodes, int] | None:
        number = _NUMBER.match(self.text, at)
        if number:
            return (Node("number", number[0]),), number.end()
        name = _NAME.match(self.text, at)
        if not name:
            return None
        greek = name["greek"]
        sub = name["number"] or name["index"] or name["sub"] or ""
        marks = (name["primes"] or "") + (name["star"] or "")
        return (Node("name", GREEK[greek] if greek else name["indexed"] or name["letter"], sub, marks),), name.end()


def _is_sure(nodes: Sequence[Node], operators: bool = False) -> bool:
    """Whether these can only be a formula: a Greek letter, an index, a letter of the notation, a power, a function; or
    any letter beside an operator."""
    flat = list(_flat(nodes))
    if any(node.kind in ("power", "function") or (node.kind == "name" and (
            node.sub or node.marks or not node.text.isascii() or node.text in LETTERS)) for node in flat):
        return True
    letters = any(node.kind == "name" for node in flat)
    return operators and letters and any(node.kind in ("operator", "sign") and node.text != "," for node in flat)


def _flat(nodes: Sequence[Node]) -> list[Node]:
    return [inner for node in nodes for inner in (node, *(n for part in node.parts for n in _flat(part)))]


def _has_relation(node: Node) -> bool:
    return any(inner.kind == "operator" and inner.text in RELATIONS for inner in _flat([node]))


_START = re.compile(r"(?<![\w.\\#&'-])(?:[A-Za-z]|\d|\(|\||\+-|[-+](?=[A-Za-z]))")
_CODE = re.compile(r"`([^`]+)`")


@cache
def pieces(text: str) -> tuple[str | Nodes | Markup, ...]:
    """The text as strings, formulas and code (as `Markup`, its contents not yet escaped)."""
    result: list[str | Nodes | Markup] = []
    parser, at, plain = _Parser(text), 0, ""

    def put(piece: str | Nodes | Markup) -> None:
        nonlocal plain
        if plain:
            result.append(plain)
        plain = ""
        result.append(piece)

    while at < len(text):
        if code := _CODE.match(text, at):
            put(Markup(code[1]))
            at = code.end()
            continue
        read = parser.formula(at) if _START.match(text, at) else None
        if read and _is_sure(read[0], operators=True) and not _only_a_label(text, at, *read):
            put(read[0])
            at = read[1]
            continue
        word = re.compile(r"\w+|.", re.DOTALL).match(text, at)
        step = word.end() if word else at + 1
        sign = re.compile(r"<=|>=|->|\+-(?=\d)").match(text, at)
        plain += SIGNS[sign[0]] if sign else text[at:step]
        at = sign.end() if sign else step
    if plain:
        result.append(plain)
    return tuple(result)


def _only_a_label(text: str, at: int, nodes: Nodes, end: int) -> bool:
    """`(d)` of a theorem, `figure 3 B`, `theorem 2 T`: no formula, or not from here on."""
    if at > 0 and text[at - 1] == "(" and text[end:end + 1] == ")" and end - at == 1:
        return True
    numbered = _NUMBERED.search(text[max(0, at - 40):at]) is not None
    single = len(nodes) == 1 and nodes[0].kind == "name" and not nodes[0].sub and nodes[0].text in LETTERS
    return numbered and (single or nodes[0].kind == "number")


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
