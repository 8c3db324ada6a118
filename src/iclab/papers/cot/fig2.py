"""Figure 2: error of a chain of thought against the number of examples, by alpha' (A), tau (B), rho (C).

Cost: none beyond `cot.examples`.
"""

from __future__ import annotations

from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.cot.needs import at_default, error_plot, measure, specs_of
from iclab.papers.cot.settings import SIZES


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    needs, default = measure(lab, "cot"), at_default(lab, (8,))
    return Findings(
        shown="Error of the trained model when it reasons step by step, as examples are added.",
        numbers=f"The model's error is never further than {needs.vote_distance:.3f} from the ideal vote's. The curves "
                "are means over the three steps (eq. 7): at the default setting with 8 examples the mean is "
                f"{default.cot.mean():.3f}, the error of the last step alone {default.cot_answer.mean():.3f}.",
        plots=[error_plot("cot.fig2", "Error of a chain of thought", "one setting varied at a time", needs)],
        specs=specs_of(lab, needs))


ENTRY = Entry("cot.fig2", "Error of a chain of thought", "li2024cot, figure 2", run, kind="figure", sizes=SIZES,
              says="More examples are needed when alpha', tau or rho is small.")
