"""Ours: which step hurts. The same tau and rho, with the weak step first, second or third.

Cost: no extra training, about 8 s. Expect: a weak first step spoils all later ones and costs most on average over the
steps; in the last step alone the position matters little.
"""

from __future__ import annotations

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Lab, Outcome, Table
from iclab.papers.cot.settings import SHORT, SIZES, TAU, a_run, default_test
from iclab.papers.cot.trained import asked, errors, models
from iclab.probes import UNIT
from iclab.probes.chains import ChainErrors
from iclab.prompts.transitions import weak_step

RHO, EXAMPLES = 0.4, 16
STEPS = (1, 2, 3)


def measure(lab: Lab) -> ChainErrors:
    """Errors by the position of the weak step."""
    tests = [default_test(transitions=weak_step(TAU, RHO, weak=weak)) for weak in STEPS]
    return errors(lab, "weak", [asked(lab, models(lab), tests, SHORT)])[0]


def run(lab: Lab) -> Outcome:
    """Draw errors by the position of the weak step."""
    chain_errors, size, at = measure(lab), SIZES[lab.scale], SHORT.index(EXAMPLES)
    names = [f"weak step {weak}" for weak in STEPS]

    def curves(part: str, vote: str) -> list[Curve]:
        return [Curve(name, getattr(chain_errors, part)[:, i], vote=getattr(chain_errors, vote)[:, i].mean(axis=0))
                for i, name in enumerate(names)]

    panels = [Panel("CoT, mean over steps", SHORT, curves("cot", "vote"), x_label="test examples"),
              Panel("ICL", SHORT, curves("icl", "vote_icl"), x_label="test examples"),
              Panel(f"each step of CoT, {EXAMPLES} examples", STEPS, [
                  Curve(name, chain_errors.steps[:, i, at], vote=chain_errors.vote_steps[:, i, at].mean(axis=0))
                  for i, name in enumerate(names)], x_label="step")]
    plot = curve_figure("cot.weak", "Which step hurts", f"Error by the position of the weak step, tau {TAU:g} and rho "
                        f"{RHO:g}; dotted: the ideal majority vote.", panels, "", "error",
                        within=UNIT)
    means = [(name, *(f"{value:.3f}" for value in (
        chain_errors.cot[:, i, at].mean(), *chain_errors.steps[:, i, at].mean(axis=0),
        chain_errors.icl[:, i, at].mean()))) for i, name in enumerate(names)]
    return Outcome(
        shown="The same unreliable step, placed first, second or last.",
        paper="The bounds of theorems 2 and 3 do not depend on the position of the weak step.",
        measured=f"With {EXAMPLES} examples and the weak step first, second, last, the error of CoT, averaged over "
                 f"steps, is {means[0][1]}, {means[1][1]}, {means[2][1]}: an early mistake carries forward. The error "
                 f"of the last step alone is {means[0][4]}, {means[1][4]}, {means[2][4]}; that of ICL, which sees only "
                 f"the product of the steps, {means[0][5]}, {means[1][5]}, {means[2][5]}.",
        plots=[plot], seeds=lab.seeds(size.seeds),
        settings={"training": to_json(a_run(size.steps)), "tau": TAU, "rho": RHO},
        tables=[Table("cot.weak", f"Errors with {EXAMPLES} examples",
                      ("", "CoT", "step 1", "step 2", "step 3", "ICL"), means)])


ENTRY = Entry("cot.weak", "figure", "Which step hurts", "ours", run)
