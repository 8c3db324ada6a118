"""Figure 4: the one-layer Transformer and classical learners, error against the number of context examples.

Cost: none beyond `icl.baselines`.
"""

from __future__ import annotations

import numpy as np

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.icl.baselines import FRACTIONS, ICL, JUDGED, SIZES, WHERE, baselines, measure, setting
from iclab.probes import UNIT, information_floor


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    errors, lengths = measure(lab), lab.size.lengths
    panels = [Panel(f"{where}, decisive fraction {fraction:g}", lengths,
                    [Curve(name, np.stack([errors[setting(where, fraction, n)][name] for n in lengths], 1))
                     for name in (ICL, *baselines())],
                    floor=[information_floor(WHERE[where](fraction, prompt_length=n)) for n in lengths])
              for where in WHERE for fraction in reversed(FRACTIONS)]
    plot = curve_figure("icl.fig4", "The Transformer and classical learners fitted on the context",
                        "Error against the number of context examples; each learner is refitted on every prompt.",
                        panels, "context examples", "error", within=UNIT)

    def comparison(where: str, fraction: float) -> str:
        by_learner = errors[setting(where, fraction, JUDGED)]
        others = [by_learner[name].mean() for name in baselines()]
        return f"{by_learner[ICL].mean():.3f} against {min(others):.3f} to {max(others):.3f} {where} at {fraction:g}"

    return Findings(
        shown="Error of the trained Transformer, and of five learners that see the context examples alone.",
        numbers=f"With {JUDGED} examples: " + ", ".join(comparison(where, fraction) for where in WHERE
                                                        for fraction in reversed(FRACTIONS)) + ".", plots=[plot])


ENTRY = Entry("icl.fig4", "Against classical learners", "li2024icl, figure 4", run, kind="figure", sizes=SIZES,
              says="(A) With decisive fraction 0.8, in-context learning has no significant advantage; (B) with 0.6, it "
                   "needs the fewest examples.")
