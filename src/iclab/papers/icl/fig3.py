"""Figure 3: GPT-2 out of domain against the coefficient sum S1 (A) and the number of test examples (B).

Drawn twice: out of domain with the paper's K' = 5, and with irrelevant patterns no larger than in training; in domain
they are as large as in training in both. Cost: none beyond
`icl.ood` and `icl.context`.
"""

from __future__ import annotations

from iclab.figures.plots import Curve, Panel, Plot, curve_figure
from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.icl import context, ood
from iclab.papers.icl.settings import GPT2_SIZES, NEW_SCALE, TRAINING_SCALE
from iclab.probes import UNIT, information_floor

SCALES = {"icl.fig3": NEW_SCALE, "icl.fig3.tame": TRAINING_SCALE}


def drawn(lab: Lab, name: str, scale: float, by_sum: ood.Errors) -> Plot:
    """Both parts of the figure at one scale of the irrelevant patterns."""
    (fractions, lengths, _), by_domain = context.GRIDS[lab.scale]["gpt2"], context.measure(lab, "gpt2", scale)
    panels = [Panel("(A) out of domain", by_sum.sums, [Curve("gpt2", by_sum.values)], floor=by_sum.floor,
                    x_label="S1, coefficient sum of the first new pattern",
                    marks=[("theorem 3.4, one layer", 1.0)])]
    panels += [Panel(f"(B) {where}", lengths, [Curve(f"alpha' = {fraction:g}", errors[:, i])
                                               for i, fraction in enumerate(fractions)],
                     floor=[information_floor(context.test_of("gpt2", where, fractions[0], scale, n)) for n in lengths],
                     x_label="test examples") for where, errors in by_domain.items()]
    return curve_figure(name, f"GPT-2, irrelevant patterns out of domain at K' = {scale:g}",
                        "Error against the coefficient sum of a new pattern (decisive fraction 0.8) and against the "
                        "number of examples, for four decisive fractions; the floor in (B) is that of the smallest.",
                        panels, "", "error", within=UNIT)


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    by_sum = {scale: ood.measure(lab, "gpt2", scale) for scale in SCALES.values()}
    return Findings(
        shown="Error of GPT-2 on patterns that never occurred in training, and how many examples it needs.",
        numbers=" ".join(f"At K' = {scale:g}, by S1: {errors.words}." for scale, errors in by_sum.items()),
        plots=[drawn(lab, name, scale, by_sum[scale]) for name, scale in SCALES.items()],
        specs=[(ood.models_of(lab, "gpt2")[0].run, test) for test in by_sum[NEW_SCALE].tests])


ENTRY = Entry("icl.fig3", "GPT-2 out of domain, and how many test examples it needs", "li2024icl, figure 3", run,
              kind="figure", sizes=GPT2_SIZES,
              says="The error is below 0.01 when S1 >= 1; the fewer examples are decisive, the more are needed.")
