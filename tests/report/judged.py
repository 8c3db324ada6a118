"""Finished entries with claims of every verdict, for tests of what is shown and written."""

from __future__ import annotations

import numpy as np

from iclab.figures.heat import heat_figure
from iclab.figures.plots import Curve, Panel, error_figure
from iclab.lab.claims import CheckResult, Claim, Earlier, PartResult, Premise
from iclab.lab.entries import Entry, Note, Outcome, Part, Search, Table
from iclab.lab.outcomes import Finished
from iclab.theory import Constant

NASTY = "</pre></script><script>alert('owned')</script><img src=x onerror=alert(1)>"
MEASURED = {"holds": 0.001, "fails": 0.5, "inconclusive": 0.01}
MET = Premise("Theorem 2 (c): outlier fraction", "< 0.6 [min(1, p_a l_tr / l_ts)]", "0.5", True)
OPEN = Premise("Theorem 1: number of iterations", ">= c * 300 [M1 / (eta (1 - p_a) beta^2)], c unknown", "10000", True,
               "met up to c = 33; asked for: 0.5")
UNMET = Premise("Theorem 2 (b): outlier scale", "<= 3 [V beta / kappa_a]", "6", False)


def a_check(verdict, name=f"error at kappa_a' = 6 {NASTY}"):
    value = MEASURED[verdict]
    return CheckResult(name, "rate", value, "<=", 0.01, value - 0.0005, value + 0.0005, 0.975, 4, {"seed_noise": 0.001},
                       name)


def a_part(kind, place, verdict, premises=(), tight=False, earlier=()):
    checks = [a_check(verdict), a_check("holds", "share of seeds that train")]
    return PartResult(kind, place, f"What {place} says about alpha'. {NASTY}", list(premises), checks,
                      len(earlier) + 1, list(earlier), tight)


def a_claim(name, parts):
    return Claim(name, f"What {name} states about T_M ~ beta^-2 M1. {NASTY}", parts, {"label_rule": NASTY}, [0, 1],
                 ["run"], "quick", 1.5, ["2026-11-18: A note."])


FAILED_BEFORE = Earlier(1, "it asked for too much of rho.", "fails", (a_check("fails", "exponent of rho"),))
CLAIMS = {
    "mamba.robust": [a_part("theorem", "theorem 2 (c)", "holds", (MET, OPEN), earlier=(FAILED_BEFORE,)),
                     a_part("figure", "figure 2", "fails"), a_part("ours", "the whole region", "inconclusive")],
    "mamba.iterations": [a_part("theorem", "theorem 1", "fails", (MET,)),
                         a_part("theorem", "theorem 1, need", "fails", (MET,), tight=True)],
    "cot.icl": [a_part("theorem", "theorem 3 (b)", "holds", (MET, UNMET)),
                a_part("theorem", "theorem 3 (a)", "inconclusive", (MET,)), a_part("remark", "remark 5", "holds")],
    "mine.own": [a_part("ours", "something new", "holds")],
}


def a_plot(name, panels=3):
    x = (0.0, 0.3, 0.6, 0.9)
    rows = np.array([[0.01, 0.02, 0.3, 0.8], [0.0, 0.03, 0.35, 0.82]])
    return error_figure(name, f"Error of {name} {NASTY}", f"A caption. {NASTY}",
                        [Panel(f"panel {i} {NASTY}", x, [Curve("mamba", rows), Curve("linear", 1 - rows)],
                               floor=[0.001] * 4) for i in range(panels)], "kappa_a' / kappa_a")


def a_map(name):
    values = np.linspace(0, 1, 12).reshape(2, 2, 3)
    return heat_figure(f"{name}.map", "A map", "Colours are an image inside the picture.", (1, 2, 3), (1, 2), values,
                       values[0], "x", "y")


def a_finished(name, kind="claim", place="li2025mamba, theorem 2", constants=(), searched=None, path=""):
    claim = a_claim(name, CLAIMS[name]) if kind == "claim" else None
    sentences = " ".join(part.sentence for part in claim.parts) if claim else ""
    outcome = Outcome(
        shown="Errors.", says=f"What {name} states about T_M ~ beta^-2 M1. {NASTY}",
        measured=f"{sentences} They are {NASTY}".strip(), plots=[a_plot(name), a_map(name)],
        tables=[Table(name, "Exponents", ("in beta", "measured"), [(NASTY, "-2.0"), ("M1", 1.25)])], claim=claim,
        settings={"label_rule": NASTY}, seeds=[0, 1], constants=list(constants),
        notes=[Note("2026-11-18", f"W_B^T W_C stays positive. {NASTY}")], searched=searched)
    parts = (Part("ours", "declared", "", lambda measured: []),) if claim else ()
    entry = Entry(name, f"Title of {name}", place, lambda lab: None, kind=kind, parts=parts, path=path)
    return Finished(entry, outcome, 1.5)


FINISHED = [
    a_finished("mamba.fig2", kind="figure", place="li2025mamba, figure 2"), a_finished("mamba.robust"),
    a_finished("mamba.iterations", constants=[Constant("mamba.T", 2.5, 2.0, 3.0, 4, 2, "quick")],
               searched=Search(("delta", "|q|"), 14, 2, "delta 0.05, |q| 1")),
    a_finished("cot.icl"), a_finished("mine.own", place="ours", path="folder/mine.py")]
CLAIMS_JUDGED = [item.outcome.claim for item in FINISHED if item.outcome.claim]
