"""Figure 5: the MLP pruned in three orders (A), and with more decisive examples at test (B), out of domain.

Cost: none beyond `icl.pruning`.
"""

from __future__ import annotations

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.icl.pruned import SIZES, TESTED, Values, measure, sorted_norms
from iclab.papers.icl.settings import out_of_domain
from iclab.probes import UNIT, information_floor
from iclab.probes.pruning import ORDERS

NAMES = {"small": "smallest first", "large": "largest first", "random": "random"}


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    (error, hinge), norms = measure(lab), sorted_norms(lab)
    rates, neurons = list(error.rates), list(range(norms["W_O"].shape[1]))

    def curves(values: Values) -> list[Curve]:
        return [Curve(NAMES[order], values.values[i, :, :, 0].T) for i, order in enumerate(ORDERS)]

    def by_fraction(order: str) -> list[Curve]:
        return [Curve(f"alpha' = {fraction:g}", error.values[ORDERS.index(order), :, :, i].T)
                for i, fraction in enumerate(TESTED)]

    x_label, floor = "fraction of neurons pruned", [information_floor(out_of_domain(TESTED[0]))] * len(rates)
    plot = curve_figure(
        "icl.fig5", "Pruning the MLP, out of domain",
        "(A) error and hinge loss against the fraction of neurons pruned, decisive fraction 0.6; norms of what the "
        "neurons read, the rows of W_O W_V, beside those of the rows of W_O alone, which the paper draws as bars; (B) "
        "error by the decisive fraction at test.",
        [Panel("(A) error", rates, curves(error), floor=floor, x_label=x_label, y_label="error",
               within=UNIT),
         Panel("(A) hinge loss", rates, curves(hinge), x_label=x_label, y_label="hinge loss"),
         Panel("(A) norm of a neuron's row", neurons, [Curve(name, values) for name, values in norms.items()],
               x_label="neuron, sorted", y_label="norm"),
         *(Panel(f"(B) error, {NAMES[order]}", rates, by_fraction(order), x_label=x_label, y_label="error", within=UNIT)
           for order in ("small", "large"))],
        "", "", share_y=False)

    def at(order: str, rate: float) -> str:
        return ", ".join(f"{error.at(order, rate, i).mean():.4f} (alpha' = {fraction:g})"
                         for i, fraction in enumerate(TESTED))

    return Findings(
        shown="What pruning neurons costs: smallest first, largest first, or in random order.",
        numbers=f"Error with 70 % pruned, smallest first: {at('small', 0.7)}; largest first: {at('large', 0.7)}.",
        plots=[plot])


ENTRY = Entry("icl.fig5", "Pruning the MLP", "li2024icl, figure 5", run, kind="figure", sizes=SIZES,
              says="Pruning costs nothing up to about 15 %, the share of small neurons, then more and more; less with "
                   "a larger alpha'.")
