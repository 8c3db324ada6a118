"""Figure 1: norms of patterns in queries and keys (a), feature and label part of the neurons (b), during training.

Cost: none beyond `selectors.features`.
"""

from __future__ import annotations

from iclab.figures.plots import Curve, Panel, curve_figure
from iclab.lab.entries import Entry, Findings
from iclab.lab.laboratory import Lab
from iclab.papers.selectors.mechanism import along, pattern_norms
from iclab.papers.selectors.settings import SIZES, training_prompts
from iclab.papers.selectors.trained import trained_models


def run(lab: Lab) -> Findings:
    """Draw the figure."""
    models = trained_models(lab)
    steps, norms = [0, *models[0].steps.tolist()], pattern_norms(models)
    features, labels = along(models, "features"), along(models, "labels")
    plot = curve_figure(
        "selectors.fig1", "Patterns in queries and keys, and what the neurons read, during training",
        "(a) mean norms of W_Q mu, W_K mu (relevant) and W_Q nu, W_K nu (irrelevant), nearly the same for queries and "
        "keys; (b) mean input of the neurons that vote for the truth, split into what they read from features and from "
        "labels.",
        [Panel("(a) norms of patterns", steps, [Curve(name, values) for name, values in norms.items()]),
         Panel("(b) neurons before their ReLU", steps, [Curve("feature part", features), Curve("label part", labels)])],
        "training step", "", share_y=False)
    ends = ", ".join(f"{name} {values[:, 0].mean():.2f} to {values[:, -1].mean():.2f}"
                     for name, values in norms.items())
    return Findings(
        shown="How patterns grow in queries and keys, and which part of the attended columns the neurons read.",
        numbers=f"Norms from before training to its end: {ends}. The feature part reaches "
                f"{features[:, -1].mean():.2f}, the label part {labels[:, -1].mean():.2f}.",
        plots=[plot], specs=[(models[0].run, training_prompts())])


ENTRY = Entry("selectors.fig1", "Patterns and neurons during training", "li2024selectors, figure 1", run,
              kind="figure", sizes=SIZES,
              says="Relevant patterns grow, irrelevant ones stay; the label part outgrows the feature part.")
