"""Figure 7: error on unseen tasks, against the number of training tasks. Cost: none beyond `icl.tasks`."""

from __future__ import annotations

import numpy as np

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.icl.tasks import AWAY, NORMS, SIZES, cyclic_name, measure, test_of
from iclab.probes import UNIT, information_floor


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    curves = {}
    for norm in NORMS:
        errors = measure(lab, norm).errors
        for M1 in lab.size.patterns:
            curves[norm, M1] = np.stack([errors[M1, cyclic_name(M1, away)].rates for away in AWAY], 1)
    plot = curve_figure("icl.fig7", "Error on unseen tasks, against the number of training tasks",
                        "The first M1 tasks of the cyclic family show every pattern with both labels; fewer do not.",
                        [Panel(f"M1 = {M1}, |q| = {norm:g}", [M1 + away for away in AWAY], [Curve("softmax", values)],
                               floor=[information_floor(test_of(M1, ()))] * len(AWAY))
                         for (norm, M1), values in curves.items()], "training tasks", "error", within=UNIT)
    return Findings(
        shown="Error on all in-domain tasks outside the training set, as tasks are added to it.",
        numbers="; ".join(f"M1 = {M1}, |q| = {norm:g}: {values[:, AWAY.index(-1)].mean():.3f} with {M1 - 1} tasks, "
                          f"{values[:, AWAY.index(0)].mean():.4f} with {M1}"
                          for (norm, M1), values in curves.items()) + ".", plots=[plot])


ENTRY = Entry("icl.fig7", "How many training tasks are enough", "li2024icl, figure 7", run, kind="figure", sizes=SIZES,
              says="The error is significant with fewer than M1 training tasks and about 0 from M1 on.")
