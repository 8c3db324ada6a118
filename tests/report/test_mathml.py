# ruff: noqa: RUF001 - these letters are meant
"""Formulas in plain notation become MathML; everything else stays text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from markupsafe import Markup

from iclab.core.formulas import one_line, pieces, spelled
from iclab.notation import NOTATION
from iclab.report.mathml import typeset


@pytest.mark.parametrize(("text", "read"), [
    ("kappa_a'", "[κ_a′]"),
    ("T ~ eta^-1 (1 - p_a)^-1 beta^-2 M1 iterations", "[T ∼ η^−1 (1 − p_a)^−1 β^−2 M_1] iterations"),
    ("(alpha' tau rho)^-2 log M examples", "[(α′ τ ρ)^−2 log M] examples"),
    ("entries of W_B^T W_C", "entries of [W_B^T W_C]"),
    ("from |q| >= 3 on", "from [|q| ≥ 3] on"),
    ("min(1, p_a l_tr / l_ts)", "[min(1, p_a l_tr/l_ts)]"),
    ("max{eps^-2, M1 / (1 - p_a)} log 1/eps", "[max{ε^−2, M_1/(1 − p_a)} log 1/ε]"),
    ("sqrt(M) / (lam* eta sqrt(1 - tau M1))", "[√(M)/(λ* η √(1 − τ M_1))]"),
    ("T = Theta(M1 alpha^(-2/3)), theorem 1", "[T = Θ(M_1 α^(−2/3))], theorem 1"),
    ("T_M / T_T ~ l_tr", "[T_M/T_T ∼ l_tr]"),
    ("mu_j and mu1' of S1 = -0.5", "[μ_j] and [μ_1′] of [S_1 = −0.5]"),
    ("about (1/2 - f)^-2 f context examples", "about [(1/2 − f)^−2 f] context examples"),
    ("+-1/sqrt(m)", "[±1/√(m)]"),
    ("delta 0.05, |q| 1, T 1000", "[δ] 0.05, [|q|] 1, [T] 1000"),
    ("the length l_ts (l_tr = 20)", "the length [l_ts] [(l_tr = 20)]"),
    (">= c * 12.5 [log M1 / alpha], c unknown", "≥ [c · 12.5] [[log M_1/α]], c unknown"),
    ("along +q or -q", "along [+q] or [−q]"),
    ("K-step reasoning", "[K]-step reasoning"),
])
def test_a_formula_is_recognised(text, read):
    assert "".join(piece if isinstance(piece, str) else f"[{one_line(piece)}]" for piece in pieces(text)) == read


@pytest.mark.parametrize("text", [
    "A model that knows a task", "theorem 2 (d), figure 3 B and figures 2 A, B", "icl.alpha and cot.l_tr",
    "GPT-2, 1-NN", "Mamba's error, the theorem's", "exponent (theorem -2/3)", "0.8 of 3-8 %", "I know", "x_", "",
    "a and b", "alphabet", "figure 2 (C, D)", "gate_per_channel",
])
def test_prose_is_left_alone(text):
    assert typeset(text) == Markup.escape(text)


def test_the_elements():
    assert str(typeset("kappa_a' >= beta^-2")) == (
        '<math alttext="κ_a′ ≥ β^−2"><msubsup><mi>κ</mi><mi>a</mi><mo>′</mo></msubsup><mo>≥</mo>'
        "<msup><mi>β</mi><mrow><mo>−</mo><mn>2</mn></mrow></msup></math>")
    assert str(typeset("see `W_B <b>`")) == "see <code>W_B &lt;b&gt;</code>"
    assert str(typeset(0.25)) == "0.25"
    assert spelled("T <= l_tr") == "T ≤ l_tr"


def test_every_symbol_of_the_notation_is_typeset():
    for symbol in NOTATION:
        text = re.sub(r"<math.*?</math>", "", str(typeset(symbol.symbol)))
        assert re.fullmatch(r"[, ]*", text), symbol.symbol


FRAGMENTS = st.sampled_from(["<script>", "</math>", "alpha", "kappa_a'", "(", ")", "|", "{", "}", "^", "-", "+-", " ",
                             " / ", "*", "`", "M1", "log ", "sqrt(", "&", '"', "'", "<", ">", "<=", "f", "a", "2",
                             ", "])


@given(st.lists(FRAGMENTS, max_size=14).map("".join) | st.text(max_size=40))
def test_no_text_breaks_the_markup(text):
    """Whatever the text, what comes out is well-formed and holds no other elements than those of formulas."""
    assume(all(ord(c) >= 32 and not 0xD800 <= ord(c) < 0xE000 and ord(c) < 0xFFFE for c in text))  # valid in XML
    allowed = {"root", "math", "mi", "mn", "mo", "mrow", "msub", "msup", "msubsup", "msqrt", "code"}
    root = ET.fromstring(f"<root>{typeset(text)}</root>")
    assert {element.tag for element in root.iter()} <= allowed
