"""Figure 3: error of in-context learning against the number of examples, by alpha' (A), tau_o (B), rho_o (C).

Cost: none beyond `cot.examples`.
"""

from __future__ import annotations

import numpy as np

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.cot.examples import Axis, measure
from iclab.papers.cot.icl import NAMES, varied
from iclab.papers.cot.settings import SIZES, a_run
from iclab.probes import UNIT


def panel(letter: str, name: str, values: list[float], part: Axis) -> Panel:
    """Errors of the answer given at once, along one axis."""
    curves = [Curve(f"{name} = {value:.2g}", part.errors.icl[:, i], vote=part.errors.vote_icl[:, i].mean(axis=0))
              for i, value in enumerate(values)]
    return Panel(f"({letter}) {name}", part.lengths, curves)


def run(lab: Lab) -> Outcome:
    """Draw the figure."""
    by_axis, size = measure(lab), SIZES[lab.scale]
    x = varied(by_axis)
    plot = curve_figure("cot.fig3", "Error of in-context learning with the same model",
                        "Against the number of test examples; tau_o and rho_o are varied through tau and rho, and the "
                        "default is alpha' 0.8, tau 0.5, rho 0.8; dotted: the ideal majority vote.",
                        [panel(letter, name, x[name], by_axis[axis])
                         for letter, (axis, name) in zip("ABC", NAMES.items(), strict=True)],
                        "test examples", "error", log_x=True, within=UNIT)
    gap = max(float(np.abs(part.errors.icl - part.errors.vote_icl).mean(axis=0).max()) for part in by_axis.values())
    return Outcome(
        shown="Error of the same trained model when it sees only inputs and last outputs, and answers at once.",
        paper="More examples are needed when alpha', tau_o or rho_o is small.",
        measured=f"This holds; the model's error is never further than {gap:.3f} from the ideal vote's. Only small "
                 "alpha' tests the training: with many matching examples an untrained model does nearly as well "
                 "(cot.icl).",
        plots=[plot], seeds=lab.seeds(size.seeds),
        settings={"training": to_json(a_run(size.steps)), "prompts": size.prompts})


ENTRY = Entry("cot.fig3", "figure", "Error of in-context learning with the same model", "li2024cot, figure 3", run)
