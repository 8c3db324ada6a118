"""Figure 5: the MLP pruned in three orders (A), and with more decisive examples at test (B), out of domain.

Cost: none beyond `icl.pruning`.
"""

from __future__ import annotations

import numpy as np

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.icl.pruning import RATES, SIZES, TESTED, measure, sorted_norms
from iclab.papers.icl.settings import out_of_domain
from iclab.probes import UNIT, information_floor
from iclab.probes.pruning import ORDERS

NAMES = {"small": "smallest first", "large": "largest first", "random": "random"}


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    (error, _), (hinge, _) = measure(lab)
    norms = sorted_norms(lab)

    def curves(values: np.ndarray) -> list[Curve]:
        return [Curve(NAMES[order], values[i, :, :, 0].T) for i, order in enumerate(ORDERS)]

    x_label, floor = "fraction of neurons pruned", [information_floor(out_of_domain(TESTED[0]))] * len(RATES)
    large = error[ORDERS.index("large")]
    plot = curve_figure(
        "icl.fig5", "Pruning the MLP, out of domain",
        "(A) error and hinge loss against the fraction of neurons pruned, decisive fraction 0.6, and the sorted norms "
        "of the rows of W_O W_V; (B) error, largest neurons first, by the decisive fraction at test.",
        [Panel("(A) error", RATES, curves(error), floor=floor, x_label=x_label, within=UNIT),
         Panel("(A) hinge loss", RATES, curves(hinge), x_label=x_label),
         Panel("(A) norm of a neuron's row", list(range(norms.shape[1])), [Curve("softmax", norms)],
               x_label="neuron, sorted"),
         Panel("(B) error, largest first", RATES, [Curve(f"alpha' = {fraction:g}", large[:, :, i].T)
                                                  for i, fraction in enumerate(TESTED)], x_label=x_label,
               within=UNIT)],
        "", "", share_y=False)
    half, most = (large[RATES.index(rate)].mean(axis=0) for rate in (0.5, 0.7))
    return Findings(
        shown="What pruning neurons costs: smallest first, largest first, or in random order.",
        numbers=f"Largest first, the error at alpha' = 0.6 is {half[0]:.3f} with 50 % pruned and {most[0]:.3f} with "
                f"70 %; at alpha' = 0.8 it is {half[1]:.3f} and {most[1]:.3f}.", plots=[plot])


ENTRY = Entry("icl.fig5", "Pruning the MLP", "li2024icl, figure 5", run, kind="figure", sizes=SIZES,
              says="Pruning costs nothing up to about 15 %, the share of small neurons, then more and more; less with "
                   "a larger alpha'.")
