"""Figure 3: error of in-context learning against the number of examples, by alpha' (A), tau_o (B), rho_o (C).

Cost: none beyond `cot.examples`.
"""

from __future__ import annotations

from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.cot.needs import error_plot, measure, specs_of
from iclab.papers.cot.settings import SIZES


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    needs = measure(lab, "icl")
    return Findings(
        shown="Error of the same trained model when it sees only inputs and last outputs, and answers at once.",
        numbers=f"The model's error is never further than {needs.vote_distance:.3f} from the ideal vote's.",
        plots=[error_plot("cot.fig3", "Error of in-context learning with the same model",
                          "tau_o and rho_o are varied through tau and rho", needs)], specs=specs_of(lab, needs))


ENTRY = Entry("cot.fig3", "Error of in-context learning with the same model", "li2024cot, figure 3", run,
              kind="figure", sizes=SIZES, says="More examples are needed when alpha', tau_o or rho_o is small.")
