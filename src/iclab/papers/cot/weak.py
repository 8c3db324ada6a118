"""Ours: which step hurts. The same tau and rho, with the weak step first, second or third.

Cost: no extra training, about 1 s.
"""

from __future__ import annotations

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Findings, Note, Table
from iclab.lab.laboratory import Lab
from iclab.papers.cot.settings import SIZES, TAU, default_test
from iclab.papers.cot.trained import asked, errors, models
from iclab.probes import UNIT
from iclab.prompts.transitions import weak_step

RHO, EXAMPLES = 0.4, 16
STEPS = (1, 2, 3)


def run(lab: Lab) -> Findings:
    """Draw errors by the position of the weak step."""
    lengths, trained = SIZES[lab.scale].short, models(lab)
    tests = [default_test(transitions=weak_step(TAU, RHO, weak=weak), prompt_length=max(lengths)) for weak in STEPS]
    chain_errors, at = errors(lab, [asked(lab, trained, tests, lengths)])[0], lengths.index(EXAMPLES)
    names = [f"weak step {weak}" for weak in STEPS]

    def curves(part: str, vote: str) -> list[Curve]:
        return [Curve(name, getattr(chain_errors, part)[:, i], vote=getattr(chain_errors, vote)[:, i].mean(axis=0))
                for i, name in enumerate(names)]

    panels = [Panel("CoT, mean over steps", lengths, curves("cot", "vote"), x_label="test examples"),
              Panel("ICL", lengths, curves("icl", "vote_icl"), x_label="test examples"),
              Panel(f"each step of CoT, {EXAMPLES} examples", STEPS, [
                  Curve(name, chain_errors.steps[:, i, at], vote=chain_errors.vote_steps[:, i, at].mean(axis=0))
                  for i, name in enumerate(names)], x_label="step")]
    plot = curve_figure("cot.weak", "Which step hurts", f"Error by the position of the weak step, tau {TAU:g} and rho "
                        f"{RHO:g}; dotted: the ideal majority vote.", panels, "", "error", within=UNIT)
    rows = [(name, *(f"{value:.3f}" for value in (
        chain_errors.cot[:, i, at].mean(), *chain_errors.steps[:, i, at].mean(axis=0),
        chain_errors.icl[:, i, at].mean()))) for i, name in enumerate(names)]
    cot, last, icl = (", ".join(row[column] for row in rows) for column in (1, 4, 5))
    return Findings(
        shown="The same unreliable step, placed first, second or last.",
        numbers=f"With {EXAMPLES} examples and the weak step first, second, last: error of CoT, averaged over steps, "
                f"{cot}; of its last step alone {last}; of ICL, which sees only the product of the steps, {icl}.",
        plots=[plot], specs=[(trained[0].run, test) for test in tests],
        tables=[Table("cot.weak", f"Errors with {EXAMPLES} examples",
                      ("", "CoT", "step 1", "step 2", "step 3", "ICL"), rows)])


ENTRY = Entry("cot.weak", "Which step hurts", "ours", run, kind="figure", sizes=SIZES,
              says="The bounds of theorems 2 and 3 do not depend on the position of the weak step.",
              notes=(Note("2026-11-18", "A mistake in an early step carries forward to the later ones."),))
