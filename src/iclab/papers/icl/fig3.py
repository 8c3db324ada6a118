"""Figure 3: GPT-2 out of domain against the coefficient sum S1 (A) and the number of test examples (B).

Drawn twice: with the paper's K' = 5, and with irrelevant patterns no larger than in training. Cost: none beyond
`icl.ood` and `icl.context`.
"""

from __future__ import annotations

from iclab.core.identity import to_json
from iclab.core.spec import replace
from iclab.figures.plots import Curve, Panel, Plot, curve_figure
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.icl import context, ood
from iclab.papers.icl.settings import GPT2_SIZES, TRAINING_SCALE, gpt2_run
from iclab.probes import UNIT, information_floor

SCALES = {"icl.fig3": ood.PAPER_SCALE, "icl.fig3.tame": TRAINING_SCALE}


def drawn(lab: Lab, name: str, by_sum: ood.Errors) -> Plot:
    """Both parts of the figure at one scale of the irrelevant patterns."""
    scale, lengths = by_sum.scale, context.LENGTHS["gpt2"]
    panels = [Panel("(A) out of domain", ood.SUMS["gpt2"], [Curve("gpt2", by_sum.values)], floor=by_sum.floor,
                    x_label="S1, coefficient sum of the first new pattern",
                    marks=[("theorem 3.4, one layer", 1.0)])]
    for where, errors in context.measure(lab, "gpt2", scale).items():
        hardest = context.test_of("gpt2", where, context.FRACTIONS["gpt2"][0], scale)
        panels.append(Panel(f"(B) {where}", lengths, [Curve(f"alpha' = {fraction:g}", errors[:, i])
                                                      for i, fraction in enumerate(context.FRACTIONS["gpt2"])],
                            floor=[information_floor(replace(hardest, prompt_length=n)) for n in lengths],
                            x_label="test examples"))
    return curve_figure(name, f"GPT-2, irrelevant patterns at K' = {scale:g}",
                        "Error against the coefficient sum of a new pattern (decisive fraction 0.8) and against the "
                        "number of examples, for four decisive fractions; the floor in (B) is that of the smallest.",
                        panels, "", "error", within=UNIT)


def run(lab: Lab) -> Outcome:
    """Draw the figure."""
    by_scale = ood.measure(lab, "gpt2", tuple(SCALES.values()))
    size = GPT2_SIZES[lab.scale]
    return Outcome(
        shown="Error of GPT-2 on patterns that never occurred in training, and how many examples it needs.",
        paper="The error is below 0.01 when S1 >= 1; the fewer examples are decisive, the more are needed.",
        measured=f"At K' = 5, {by_scale[0].said()}: it comes nowhere near 0 in any setting we tried (example 7). At "
                 f"K' = 0.5, {by_scale[1].said()}: it reaches about 0, without a step at 1. Fewer decisive examples "
                 "require more examples in both.",
        plots=[drawn(lab, name, part) for name, part in zip(SCALES, by_scale, strict=True)],
        seeds=lab.seeds(size.seeds), settings={"training": to_json(gpt2_run(size.steps)), "prompts": size.prompts})


ENTRY = Entry("icl.fig3", "figure", "GPT-2 out of domain, and how many test examples it needs", "li2024icl, figure 3",
              run)
