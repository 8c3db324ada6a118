"""Ours: longer chains. K from 3 to 7 steps, at equal tau and rho: errors, and what training costs.

The theorem's bound on the iterations grows like K^3, its bound on the examples not at all. Cost: no training beyond
`cot.iterations`; tests about 3 s.
"""

from __future__ import annotations

import numpy as np

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Findings, Note, Table
from iclab.lab.laboratory import Lab
from iclab.papers.cot.iterations import LENGTH, SIZES, measure, run_at, trained
from iclab.papers.cot.settings import default_test
from iclab.papers.cot.trained import asked, errors
from iclab.probes import UNIT

SHOWN = 8
COLUMNS = {"cot": "CoT", "cot_answer": "CoT, last step", "vote": "vote", "icl": "ICL", "vote_icl": "vote at once"}


def run(lab: Lab) -> Findings:
    """Draw errors and iterations against K."""
    chains, models = [int(k) for k in SIZES[lab.scale].axes["K"]], trained(lab)
    tests = {k: default_test(run_at(lab, "K", k).prompts, prompt_length=SHOWN) for k in chains}
    by_chain = errors(lab, [asked(lab, models["K", k, LENGTH], [test], (SHOWN,)) for k, test in tests.items()])
    values = {name: np.stack([getattr(chain_errors, name)[:, 0, 0] for chain_errors in by_chain], axis=1)
              for name in COLUMNS}
    iterations = measure(lab, models).iterations["K"]
    panels = [Panel(f"error with {SHOWN} examples", chains, [
        Curve("CoT, mean over steps", values["cot"], vote=values["vote"].mean(axis=0)),
        Curve("CoT, last step", values["cot_answer"]),
        Curve("ICL", values["icl"], vote=values["vote_icl"].mean(axis=0))], within=UNIT, y_label="error"),
              Panel("iterations to a loss of 0.1", chains, [Curve("softmax", iterations)],
                    y_label="iterations")]
    plot = curve_figure("cot.steps", "Longer chains",
                        "Against the number of steps K; examples with tau 0.5 and rho 0.8 at every K, alpha' 0.8; "
                        "dotted: the ideal majority vote.", panels, "K, steps of a chain", "", share_y=False)
    rows = [(k, *(f"{of[:, i].mean():.3f}" for of in values.values()), f"{iterations[:, i].mean():.0f}")
            for i, k in enumerate(chains)]
    changes = ", ".join(f"{name} {rows[0][i]} to {rows[-1][i]}" for i, name in
                        enumerate((*COLUMNS.values(), "iterations"), 1))
    round_trips = [str(k) for k in chains if k * (k + 1) // 2 % tests[k].patterns == 0]
    return Findings(
        shown="What longer chains cost: errors at equal tau and rho, and iterations of training.",
        numbers=f"From K = {chains[0]} to {chains[-1]}: {changes}."
                + (f" The whole chain leads back to the query at K = {', '.join(round_trips)}." if round_trips else ""),
        plots=[plot], specs=[(run_at(lab, "K", k), test) for k, test in tests.items()],
        tables=[Table("cot.steps", f"By the number of steps, {SHOWN} examples",
                      ("K", *COLUMNS.values(), "iterations"), rows)])


ENTRY = Entry("cot.steps", "Longer chains", "ours", run, kind="figure", sizes=SIZES,
              says="Theorem 1 has K^3 in its bound on the iterations; theorem 2 has no K in its bound on the examples.",
              notes=(Note("2026-11-18", "Where the whole chain leads back to the query, in-context learning errs more "
                          "often than the vote; training never shows such an answer, which may be why "
                          "(cot.condition1)."),))
