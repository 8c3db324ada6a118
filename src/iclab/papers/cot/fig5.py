"""Figure 5: attention on four kinds of column during training, and at each step of the chain of thought.

Cost: none beyond `cot.dynamics`.
"""

from __future__ import annotations

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.cot.dynamics import ENDS, stages
from iclab.papers.cot.mechanism import EXAMPLES, along
from iclab.papers.cot.settings import SIZES, a_run, default_test
from iclab.papers.cot.trained import models
from iclab.probes import UNIT
from iclab.probes.reasoning import KINDS


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    trained = models(lab)
    masses, steps, ends = along(trained), trained[0].steps, stages(trained)
    # Records are dense; on a log axis a few of them, geometrically spaced, show as much.
    indices = sorted({min(round(1.25**i), len(steps)) - 1 for i in range(40)})
    x = [int(steps[i]) for i in indices]
    panels = [Panel("all steps", x, [Curve(name, masses[:, indices, i]) for i, name in enumerate(KINDS)],
                    marks=[("end of the first stage", float(ends.first.mean()))]),
              Panel("by step of the chain", x, [Curve(f"step {k + 1}, {KINDS[0]}", along(trained, k)[:, indices, 0])
                                                for k in range(a_run(1).prompts.reasoning_steps)])]
    plot = curve_figure("cot.fig5", "Attention during training",
                        "Sum of the attention on context columns of each kind, on test prompts; left: the mean over "
                        "the steps of the chain of thought. The first stage ends when other steps have less than "
                        f"{ENDS[0]:g}.", panels, "iterations", "attention", log_x=True, within=UNIT)
    last = masses[:, -1].mean(axis=0)
    return Findings(
        shown="Where the query's attention lies during training.",
        numbers="At the end: " + ", ".join(f"{name} {value:.3f}" for name, value in zip(KINDS, last, strict=True))
                + ". When the stages end is measured in cot.dynamics.",
        plots=[plot], specs=[(trained[0].run, default_test(prompt_length=EXAMPLES))])


ENTRY = Entry("cot.fig5", "Attention during training", "li2024cot, figure 5", run, kind="figure", sizes=SIZES,
              says="Other steps (red, yellow in the paper) fall to 0 first; then the same step and pattern rises to 1.")
