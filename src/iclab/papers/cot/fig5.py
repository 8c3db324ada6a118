"""Figure 5: attention on four kinds of column during training, and at each step of the chain of thought.

Cost: none beyond `cot.dynamics`.
"""

from __future__ import annotations

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.cot.dynamics import ENDS, stages
from iclab.papers.cot.mechanism import along
from iclab.papers.cot.settings import SIZES, a_run
from iclab.papers.cot.trained import models
from iclab.probes import UNIT
from iclab.probes.reasoning import KINDS


def run(lab: Lab) -> Outcome:
    """Draw the figure."""
    trained, size = models(lab), SIZES[lab.scale]
    masses, steps, ends = along(trained), trained[0].steps, stages(trained)
    # Records are dense; on a log axis a few of them, geometrically spaced, show as much.
    indices = sorted({min(round(1.25**i), len(steps)) - 1 for i in range(40)})
    x = [int(steps[i]) for i in indices]
    panels = [Panel("all steps", x, [Curve(name, masses[:, indices, i]) for i, name in enumerate(KINDS)],
                    marks=[("end of the first stage", float(ends.first.mean()))])]
    panels.append(Panel("by step of the chain", x, [
        Curve(f"step {k + 1}, {KINDS[0]}", along(trained, k)[:, indices, 0])
        for k in range(a_run(1).prompts.reasoning_steps)]))
    plot = curve_figure("cot.fig5", "Attention during training",
                        "Sum of the attention on context columns of each kind, on test prompts; left: the mean over "
                        "the steps of the chain of thought. The first stage ends when other steps have less than "
                        f"{ENDS[0]:g}.",
                        panels, "iterations", "attention", log_x=True, within=UNIT)
    last = masses[:, -1].mean(axis=0)
    return Outcome(
        shown="Where the query's attention lies during training.",
        paper="Other steps (red, yellow in the paper) fall to 0 first; then the same step and pattern rises to 1.",
        measured="This holds, though the stages overlap (cot.dynamics). At the end: "
                 + ", ".join(f"{name} {value:.3f}" for name, value in zip(KINDS, last, strict=True)) + ".",
        plots=[plot], seeds=lab.seeds(size.seeds), settings={"training": to_json(a_run(size.steps))})


ENTRY = Entry("cot.fig5", "figure", "Attention during training", "li2024cot, figure 5", run)
