"""Ours: longer chains. K from 2 to 6 steps, at equal tau and rho: errors, and what training costs.

The theorem's bound on the iterations grows like K^3, its bound on the examples not at all. Cost: no training beyond
`cot.iterations`; tests about 10 s in 4 programs. Expect: at fixed tau longer chains cost a chain of thought nothing,
because each step errs less often. At K = 4 in-context learning is worse than the vote: moving 1 + 2 + 3 + 4 places
among 10 patterns leads back to the query, an answer that training never shows (see `cot.condition1`).
"""

from __future__ import annotations

import numpy as np

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Lab, Outcome, Table
from iclab.papers.cot.iterations import AXES, SEEDS, run_at, steps_to, trained
from iclab.papers.cot.settings import SHORT, default_test
from iclab.papers.cot.trained import asked, errors
from iclab.probes import UNIT

SHOWN = 8
LENGTHS = {"quick": SHORT, "full": (4, SHOWN, 16, 32)}
"""At the quick scale, the lengths whose program exists already."""


def run(lab: Lab) -> Outcome:
    """Draw errors and iterations against K."""
    lengths = LENGTHS[lab.scale]
    chains, models = [int(k) for k in AXES[lab.scale]["K"]], trained(lab)
    errors_by_chain = errors(lab, "steps", [
        asked(lab, models["K", k, 20], [default_test(run_at("K", k).prompts, prompt_length=max(lengths))], lengths)
        for k in chains])
    at = lengths.index(SHOWN)

    def curve(name: str, part: str, vote: str | None = None) -> Curve:
        values = np.stack([getattr(chain_errors, part)[:, 0, at] for chain_errors in errors_by_chain], axis=1)
        reference = None if vote is None else [getattr(chain_errors, vote)[:, 0, at].mean()
                                               for chain_errors in errors_by_chain]
        return Curve(name, values, vote=reference)

    counts = steps_to(models, lab.scale)["K"]
    panels = [Panel(f"error with {SHOWN} examples", chains, [curve("CoT, mean over steps", "cot", "vote"),
                                                             curve("CoT, last step", "cot_answer"),
                                                             curve("ICL", "icl", "vote_icl")], within=UNIT),
              Panel("iterations to a loss of 0.05", chains, [Curve("softmax", counts)])]
    plot = curve_figure("cot.steps", "Longer chains",
                        "Against the number of steps K; examples with tau 0.5 and rho 0.8 at every K, alpha' 0.8; "
                        "dotted: the ideal majority vote.", panels, "K, steps of a chain", "",
                        share_y=False)
    parts = ("cot", "cot_answer", "vote", "icl", "vote_icl")
    rows = [(k, *(f"{getattr(chain_errors, part)[:, 0, at].mean():.3f}" for part in parts),
             f"{counts[:, i].mean():.0f}")
            for i, (k, chain_errors) in enumerate(zip(chains, errors_by_chain, strict=True))]
    first, last = rows[0], rows[-1]
    patterns, places = default_test().patterns, {k: k * (k + 1) // 2 for k in chains}
    round_trips = [(k, row) for k, row in zip(chains, rows, strict=True) if places[k] % patterns == 0]
    back = "".join(f" At K = {k} the whole chain leads back to the query ({places[k]} places among {patterns} "
                   f"patterns), and ICL's error is {row[4]}, the vote's {row[5]}: ICL gives columns whose output is "
                   "the query less attention (cot.condition1)." for k, row in round_trips)
    return Outcome(
        shown="What longer chains cost: errors at equal tau and rho, and iterations of training.",
        paper="Theorem 1 has K^3 in its bound on the iterations; theorem 2 has no K in its bound on the examples.",
        measured=f"From K = {first[0]} to {last[0]} the error of CoT goes from {first[1]} to {last[1]} (its last step "
                 f"from {first[2]} to {last[2]}), that of ICL from {first[4]} to {last[4]}, and the iterations from "
                 f"{first[6]} to {last[6]}, all at the same tau." + back,
        plots=[plot], seeds=lab.seeds(SEEDS[lab.scale]), settings={"base": to_json(run_at("K", 3))},
        tables=[Table("cot.steps", f"By the number of steps, {SHOWN} examples",
                      ("K", "CoT", "CoT, last step", "vote", "ICL", "vote at once", "iterations"), rows)])


ENTRY = Entry("cot.steps", "figure", "Longer chains", "ours", run)
