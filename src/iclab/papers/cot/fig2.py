"""Figure 2: error of a chain of thought against the number of examples, by alpha' (A), tau (B), rho (C).

Cost: none beyond `cot.examples`.
"""

from __future__ import annotations

import numpy as np

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.cot.examples import Axis, at_default, measure
from iclab.papers.cot.settings import SIZES, a_run
from iclab.probes import UNIT

LETTERS = {"alpha'": "A", "tau": "B", "rho": "C"}


def panel(axis: str, part: Axis) -> Panel:
    """Errors of a chain of thought along one axis."""
    curves = [Curve(f"{axis} = {value:g}", part.errors.cot[:, i], vote=part.errors.vote[:, i].mean(axis=0))
              for i, value in enumerate(part.values)]
    return Panel(f"({LETTERS[axis]}) {axis}", part.lengths, curves)


def run(lab: Lab) -> Outcome:
    """Draw the figure."""
    by_axis, size = measure(lab), SIZES[lab.scale]
    plot = curve_figure("cot.fig2", "Error of a chain of thought",
                        "Against the number of test examples, one setting varied at a time, the others alpha' 0.8, "
                        "tau 0.5, rho 0.8; dotted: the ideal majority vote over the matching examples.",
                        [panel(axis, part) for axis, part in by_axis.items()], "test examples", "error", log_x=True,
                        within=UNIT)
    default = at_default(lab, (8,))
    gap = max(float(np.abs(part.errors.cot - part.errors.vote).mean(axis=0).max()) for part in by_axis.values())
    return Outcome(
        shown="Error of the trained model when it reasons step by step, as examples are added.",
        paper="More examples are needed when alpha', tau or rho is small.",
        measured=f"This holds for all three; the model's error is never further than {gap:.3f} from the ideal vote's. "
                 "The curves are means over the three steps (eq. 7): at the default setting with 8 examples the mean "
                 f"is {default.cot.mean():.3f}, the error of the last step alone {default.cot_answer.mean():.3f}.",
        plots=[plot], seeds=lab.seeds(size.seeds),
        settings={"training": to_json(a_run(size.steps)), "prompts": size.prompts})


ENTRY = Entry("cot.fig2", "figure", "Error of a chain of thought", "li2024cot, figure 2", run)
