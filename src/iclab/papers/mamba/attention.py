"""Claim `mamba.attention`: in every layer scores gather on the examples that share the query's pattern.

Rule, written before the run, for the three-layer Mamba on attacked test prompts: in each layer, at the end of training,
the score mass on same-pattern examples is at least 1 (the corollary's constant order), that on the others at most a
tenth of it (the corollary bounds it only from above), and the gap between them is larger than before training. Cost:
no extra training.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iclab.core.identity import to_json
from iclab.figures.plots import Curve, Panel, Plot, curve_figure
from iclab.lab.claims import Check, Claim
from iclab.lab.entries import Entry, Lab, Outcome
from iclab.papers.mamba.deep import DEEP, LAYERS, deep_models, deep_run, mass_along
from iclab.probes import seed_interval
from iclab.sweeps.store import run_id
from iclab.training import Trained, begin, probed

LEAST, OTHER_SHARE = 1.0, 0.1
PAPER_SAYS = ("The score mass on same-pattern examples grows to a constant order, that on the others stays below a "
              "bound, and the gap widens during training.")
STATEMENT = "In every layer attention scores gather on the context examples that share the query's pattern."


def masses_along(models: Sequence[Trained]) -> tuple[np.ndarray, np.ndarray]:
    """Score mass on the same pattern and on others, initially and at every record: (seeds, 1 + records, layers)."""
    before = [probed(mass_along, m.run, begin(m.run).params) for m in models]
    same, other = (np.stack([np.concatenate([[first[name]], (m.probes or {})[name]])
                             for m, first in zip(models, before, strict=True)]) for name in ("same", "other"))
    return same, other


def mass_figure(name: str, steps: Sequence[int], same: np.ndarray, other: np.ndarray, layers: Sequence[int]) -> Plot:
    """Score mass during training, as in figures 3 and 5."""
    panels = [Panel(f"layer {layer + 1}", [0, *steps],
                    [Curve("same pattern as the query", same[..., layer]), Curve("other patterns", other[..., layer])])
              for layer in layers]
    return curve_figure(name, f"Score mass in layer{'s' * (len(layers) > 1)} "
                        f"{' and '.join(str(layer + 1) for layer in layers)} during training",
                        "Three-layer Mamba, attacked test prompts (flip, outlier fraction 0.3): sum of the scores with "
                        "the query over context examples.", panels, "training step", "sum of scores", share_y=False)


def figure_outcome(lab: Lab, name: str, layers: Sequence[int]) -> Outcome:
    """Figure 3 or 5."""
    models = deep_models(lab)["mamba"]
    same, other = masses_along(models)
    numbers = "; ".join(f"layer {layer + 1}: {same[:, 0, layer].mean():.1f} to {same[:, -1, layer].mean():.1f} on the "
                        f"same pattern, {other[:, 0, layer].mean():.1f} to {other[:, -1, layer].mean():.1f} on others"
                        for layer in layers)
    return Outcome(shown="The sum of attention scores with the query, over examples with its pattern and over all "
                         "others, during training; bands are 95 % intervals over seeds.",
                   paper=PAPER_SAYS,
                   measured=f"From before training to its end, {numbers}. The others' mass becomes negative: an "
                            "example of the other pattern votes against its label, which with two patterns is a vote "
                            "for the truth.",
                   plots=[mass_figure(name, models[0].steps.tolist(), same, other, layers)],
                   seeds=[int(m.run.init_seed) for m in models],
                   settings={"training": to_json(models[0].run)})


def checks(same: np.ndarray, other: np.ndarray) -> list[Check]:
    """The rule above, on masses of shape (seeds, 1 + records, layers)."""
    judged = []
    for layer in range(LAYERS):
        gap = same[..., layer] - other[..., layer]
        judged += [Check.of(f"layer {layer + 1}: mass on the same pattern", seed_interval(same[:, -1, layer]), ">=",
                            LEAST),
                   Check.of(f"layer {layer + 1}: mass on others less {OTHER_SHARE:g} of it",
                            seed_interval(other[:, -1, layer] - OTHER_SHARE * same[:, -1, layer]), "<=", 0.0),
                   Check.of(f"layer {layer + 1}: growth of the gap", seed_interval(gap[:, -1] - gap[:, 0]), ">", 0.0)]
    return judged


def run(lab: Lab) -> Outcome:
    """Judge the claim."""
    models = deep_models(lab)["mamba"]
    same, other = masses_along(models)
    claim = Claim(id="mamba.attention", statement=STATEMENT, place="li2025mamba, corollary 1, figures 3, 5",
                  checks=checks(same, other), conditions=[],
                  settings={"training": to_json(deep_run("mamba", DEEP[lab.scale].steps))},
                  seeds=lab.seeds(len(models)), runs=[str(run_id(m.run)) for m in models], scale=lab.scale)
    ends = " / ".join(f"{same[:, -1, layer].mean():.1f} and {other[:, -1, layer].mean():.1f}"
                      for layer in range(LAYERS))
    return Outcome(shown="Each check with a 95 % interval over seeds; the curves are figures 3 and 5.",
                   paper=PAPER_SAYS,
                   measured=f"Verdict: {claim.verdict}. Mass on the same pattern and on the others at the end of "
                            f"training, by layer: {ends}.",
                   claim=claim, seeds=claim.seeds, settings=claim.settings)


ENTRY = Entry("mamba.attention", "claim", "Scores gather on the query's pattern, in every layer",
              "li2025mamba, corollary 1, figures 3, 5", run)
