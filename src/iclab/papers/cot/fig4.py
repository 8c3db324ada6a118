"""Figure 4: chain of thought against in-context learning, with and without Condition 1.

Two panels are ours. In the third, Condition 1 fails as much as in the second, but the likeliest wrong answer is the
query's pattern; the fourth is the same with a clearer majority for it. Cost: none beyond `cot.condition1`.
"""

from __future__ import annotations

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.cot.condition1 import CASES, measure, tests
from iclab.papers.cot.settings import LONG, SIZES, a_run
from iclab.papers.cot.trained import prompts_for
from iclab.probes import UNIT
from iclab.theory.cot import quality_of


def run(lab: Lab) -> Outcome:
    """Draw the figure."""
    chain_errors, size = measure(lab), SIZES[lab.scale]
    panels = [Panel(name, LONG, [Curve("CoT", chain_errors.cot[:, i], vote=chain_errors.vote[:, i].mean(axis=0)),
                                 Curve("ICL", chain_errors.icl[:, i], vote=chain_errors.vote_icl[:, i].mean(axis=0))])
              for i, name in enumerate(CASES)]
    plot = curve_figure("cot.fig4", "Chain of thought against in-context learning",
                        "Error against the number of test examples, tau_o 0.4 and rho_o 0.1 (0.3 in the last panel); "
                        "dotted: the ideal majority vote, step by step and at once.",
                        panels, "test examples", "error", log_x=True, within=UNIT)
    first, last = (chain_errors.icl.mean(axis=0)[:, i] for i in (0, -1))
    vote = chain_errors.vote_icl.mean(axis=0)[:, -1]
    return Outcome(
        shown="The same trained model on the same examples, reasoning step by step or answering at once.",
        paper="With Condition 1 the error of ICL falls with more examples, without it stays large; CoT's always falls.",
        measured=f"ICL error from 1 to {max(LONG)} examples: {first[0]:.2f} to {last[0]:.2f} with Condition 1, "
                 f"{first[1]:.2f} to {last[1]:.2f} without. But in the third panel, where Condition 1 fails as much, "
                 f"it goes from {first[2]:.2f} to {last[2]:.2f}, and the vote's to {vote[2]:.2f}: one wrong turn leads "
                 "to the query's pattern there, and columns with that output, which never occur in training, get less "
                 f"attention. With the clearer majority of the fourth panel: {first[3]:.2f} to {last[3]:.2f}, the vote "
                 f"to {vote[3]:.2f}. See cot.condition1.",
        plots=[plot], seeds=lab.seeds(size.seeds), settings={
            "training": to_json(a_run(size.steps)), "prompts": prompts_for(lab, LONG),
            "steps": {name: quality_of(test)._asdict() | {"right": None, "failing": None}
                      for name, test in tests().items()}})


ENTRY = Entry("cot.fig4", "figure", "Chain of thought against in-context learning", "li2024cot, figure 4", run)
