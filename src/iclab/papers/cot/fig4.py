"""Figure 4: chain of thought against in-context learning, with and without Condition 1.

Two panels are ours. In the third, Condition 1 fails as much as in the second, but the likeliest wrong answer is the
query's pattern; the fourth is the same with a clearer majority for it. Cost: none beyond `cot.condition1`.
"""

from __future__ import annotations

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.cot.condition1 import CASES, by_length, tests
from iclab.papers.cot.settings import SIZES
from iclab.papers.cot.trained import judged_run
from iclab.probes import UNIT
from iclab.theory.cot import quality_of


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    chain_errors, size = by_length(lab), SIZES[lab.scale]
    panels = [Panel(name, size.long, [
        Curve("CoT", chain_errors.cot[:, i], vote=chain_errors.vote[:, i].mean(axis=0)),
        Curve("ICL", chain_errors.icl[:, i], vote=chain_errors.vote_icl[:, i].mean(axis=0))])
              for i, name in enumerate(CASES)]
    plot = curve_figure("cot.fig4", "Chain of thought against in-context learning",
                        "Error against the number of test examples, tau_o 0.4 and rho_o 0.1 (0.3 in the last panel); "
                        "dotted: the ideal majority vote, step by step and at once.",
                        panels, "test examples", "error", log_x=True, within=UNIT)
    first, last = (chain_errors.icl.mean(axis=0)[:, i] for i in (0, -1))
    vote, cases = chain_errors.vote_icl.mean(axis=0)[:, -1], tests(max(size.long))
    return Findings(
        shown="The same trained model on the same examples, reasoning step by step or answering at once.",
        numbers=f"ICL error from 1 to {max(size.long)} examples, and the vote's: " + "; ".join(
            f"{name}: {first[i]:.2f} to {last[i]:.2f}, {vote[i]:.2f}" for i, name in enumerate(CASES)) + ".",
        plots=[plot], specs=[(judged_run(lab), test) for test in cases.values()],
        settings={"steps": {name: quality_of(test)._asdict() | {"right": None, "failing": None}
                            for name, test in cases.items()}})


ENTRY = Entry("cot.fig4", "Chain of thought against in-context learning", "li2024cot, figure 4", run, kind="figure",
              says="With Condition 1 the error of ICL falls with more examples, without it stays large; CoT's always "
                   "falls.", sizes=SIZES)
